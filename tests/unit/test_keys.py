"""Key names become what terminals send."""

from __future__ import annotations

import pytest

from holdfast.core.key_names import NAMES, key_bytes, pasted
from holdfast.model.errors import InvalidArgument


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("a", b"a"),
        ("é", "é".encode()),
        ("Enter", b"\r"),
        ("C-c", b"\x03"),
        ("^C", b"\x03"),
        ("C-Space", b"\0"),
        ("C-?", b"\x7f"),
        ("C-[", b"\x1b"),
        ("M-x", b"\x1bx"),
        ("M-C-a", b"\x1b\x01"),
        ("S-Tab", b"\x1b[Z"),
        ("Up", b"\x1b[A"),
        ("C-Left", b"\x1b[1;5D"),
        ("F1", b"\x1bOP"),
        ("F5", b"\x1b[15~"),
        ("S-F5", b"\x1b[15;2~"),
        ("F12", b"\x1b[24~"),
        ("PageDown", b"\x1b[6~"),
        ("-", b"-"),
        ("C--", None),
    ],
)
def test_a_key_is_what_a_terminal_sends_for_it(name: str, sent: bytes | None) -> None:
    if sent is None:
        with pytest.raises(InvalidArgument):
            key_bytes(name)
    else:
        assert key_bytes(name) == sent


def test_cursor_keys_follow_the_application_mode() -> None:
    assert key_bytes("Up", application_cursor=True) == b"\x1bOA"
    assert key_bytes("C-Up", application_cursor=True) == b"\x1b[1;5A"


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        key_bytes("Hyperspace")
    assert "pagedown" in refusal.value.hint


def test_every_known_name_gives_bytes() -> None:
    assert all(key_bytes(name) for name in NAMES)


@pytest.mark.parametrize(
    "text", [b"a\x1b[201~b", b"\x1b[20\x1b[201~1~\rrm -rf ~\r", b"\x1b[2\x1b[20\x1b[201~1~01~"]
)
def test_nothing_in_a_paste_can_end_it(text: bytes) -> None:
    sent = pasted(text)
    assert sent.startswith(b"\x1b[200~") and sent.index(b"\x1b[201~") == len(sent) - 6
