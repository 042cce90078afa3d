"""The client's own commands among the keys that are typed."""

from __future__ import annotations

import pytest

from holdfast.cli.attach.prefix_keys import (
    HELP,
    PREFIX,
    UNKNOWN,
    PrefixCommand,
    PrefixKeys,
    chosen,
    key_name,
    one_by_one,
)
from holdfast.model.errors import InvalidArgument

_UNKNOWN = [PrefixCommand.HELP, PrefixCommand.UNKNOWN]


@pytest.mark.parametrize(
    "key", (b"c", b"\x1c", b"\x0e", b"\x1b[A", b"\x1b[1;5D", b"\x1bOP", b"\x1bx", "é".encode())
)
def test_an_unknown_key_after_the_prefix_is_dropped_whole(key: bytes) -> None:
    assert PrefixKeys().take(b"a\x1c" + key + b"b") == (b"ab", _UNKNOWN)


def test_a_backslash_after_the_prefix_types_the_prefix() -> None:
    assert PrefixKeys().take(b"\x1c\\")[0] == b"\x1c"
    assert PrefixKeys(0x01).take(b"\x01\\")[0] == b"\x01"


def test_another_prefix_leaves_the_usual_one_to_the_program() -> None:
    keys = PrefixKeys(0x01)
    assert keys.take(b"\x1c\x01d") == (b"\x1c", [PrefixCommand.HELP, PrefixCommand.DETACH])


def test_the_prefix_is_chosen_by_option_then_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(None) == PREFIX and key_name(PREFIX) == "C-\\"
    monkeypatch.setenv("HOLDFAST_PREFIX", "C-a")
    assert chosen(None) == 0x01 and key_name(0x01) == "C-a"
    assert chosen("^]") == 0x1D and key_name(0x1D) == "C-]"


@pytest.mark.parametrize("word", ("a", "C-m", "C-i", "C-j", "C-", "C-ab", "M-a", "C-1"))
def test_a_key_that_is_no_control_key_or_an_enter_is_refused_as_prefix(word: str) -> None:
    with pytest.raises(InvalidArgument):
        chosen(word)


@pytest.mark.parametrize("line", (HELP, UNKNOWN))
def test_the_keys_are_shown_whole_in_80_columns(line: str) -> None:
    assert len(f" {line} ") <= 80


@pytest.mark.parametrize("key", (b"n", b"p", b"w"))
def test_what_is_typed_behind_a_key_that_goes_elsewhere_is_not_for_this_session(key: bytes) -> None:
    keys = PrefixKeys()
    kept, commands = keys.take(b"here\x1c" + key + b"there\x1cd")
    assert (kept, keys.behind) == (b"here", b"there\x1cd")
    assert len(commands) == 2 and commands[-1] is not PrefixCommand.UNKNOWN
    assert keys.take(b"more") == (b"more", []) and keys.behind == b""


def test_keys_are_told_apart() -> None:
    assert one_by_one(b"a\x1b[B\x1bOA\r\xc3\xa9") == [
        *(b"a", b"\x1b[B", b"\x1bOA", b"\r", b"\xc3\xa9"),
    ]
