"""Where a host's own relay listens, as people write it."""

from __future__ import annotations

import pytest

from holdfast.model.errors import InvalidArgument
from holdfast.model.listening import RelayListen, listening


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", RelayListen("127.0.0.1")),
        ("off", None),
        ("localhost", RelayListen("127.0.0.1")),
        ("localhost:9000", RelayListen("127.0.0.1", 9000)),
        ("0.0.0.0", RelayListen("0.0.0.0")),
        (" 192.168.1.5:7420\n", RelayListen("192.168.1.5", 7420)),
        ("::", RelayListen("::")),
        ("[::]", RelayListen("::")),
        ("[fd00::1]:7420", RelayListen("fd00::1", 7420)),
    ],
)
def test_a_place_is_read(text: str, expected: RelayListen | None) -> None:
    assert listening(text) == expected


@pytest.mark.parametrize(
    "text",
    ["OFF", "7420", ":7420", "0.0.0.0:", "0.0.0.0:0", "0.0.0.0:65536", "0.0.0.0:²", "[::]:", "[::",
     "[::]7420", "[::1]x:1", "relay.example", "1.2.3", "http://0.0.0.0"],
)  # fmt: skip
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        listening(text)


def test_a_place_knows_who_can_reach_it_and_how_this_machine_does() -> None:
    for text, loopback, near in (
        ("127.0.0.1", True, "127.0.0.1"),
        ("127.5.0.1", True, "127.5.0.1"),
        ("::1", True, "::1"),
        ("0.0.0.0", False, "127.0.0.1"),
        ("::", False, "::1"),
        ("192.168.1.5", False, "192.168.1.5"),
    ):
        place = listening(text)
        assert place is not None
        assert (place.loopback, place.near) == (loopback, near)
