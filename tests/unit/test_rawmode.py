"""The operator's terminal after a session: every mode the screen library knows is as it was."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from holdfast.adapters.ghostty.screen import GhosttyScreen
from holdfast.cli.attach.raw_terminal import RESET
from holdfast.model.size import Size
from holdfast.model.terminal_reset import KEEP

SIZE = Size(30, 6)
Mode = tuple[bool, int]  # whether it is a private one, and its number
NUMBERS = range(3000)  # beyond the highest that any terminal has
# Not modes that stay: 1048 is an act (the cursor is saved), 3 and 117 this library does not keep.
ACTS = {(True, 3), (True, 117), (True, 1048)}


def sequence(mode: Mode, final: str) -> bytes:
    private, number = mode
    return f"\x1b[{'?' * private}{number}{final}".encode()


def modes(screen: GhosttyScreen, of: Iterable[Mode]) -> dict[Mode, bool]:
    """Those of the modes that the library knows, as a program is told of them (DECRQM)."""
    found = {}
    for mode in of:
        told = screen.feed(sequence(mode, "$p"))
        if told.endswith((b";1$y", b";2$y")):
            found[mode] = told.endswith(b";1$y")
    return found


@pytest.fixture(scope="module")
def usual() -> dict[Mode, bool]:
    every = {(private, number) for private in (True, False) for number in NUMBERS}
    return modes(GhosttyScreen(SIZE), sorted(every - ACTS))


def used(*output: bytes) -> GhosttyScreen:
    """A terminal in which `hold attach` began, a program wrote, and `hold attach` left."""
    screen = GhosttyScreen(SIZE)
    for piece in (KEEP, *output, RESET):
        screen.feed(piece)
    return screen


def test_every_mode_a_program_can_change_is_put_back(usual: dict[Mode, bool]) -> None:
    assert len(usual) > 30
    changes = [sequence(mode, "l" if on else "h") for mode, on in usual.items()]
    changed = GhosttyScreen(SIZE)
    for change in changes:
        changed.feed(change)
    # Of the mouse's modes the last one set counts, of the screens the last one entered.
    assert sum(on != usual[mode] for mode, on in modes(changed, usual).items()) > 30
    assert modes(used(*changes), usual) == usual
    for change in changes:
        assert modes(used(change), usual) == usual, change


def test_a_mode_that_was_not_as_usual_before_is_as_it_was_before(usual: dict[Mode, bool]) -> None:
    screen = GhosttyScreen(SIZE)
    screen.feed(b"\x1b[?1007l\x1b[?2027h")  # as some terminals have them from the start
    before = modes(screen, usual)
    for piece in (KEEP, b"\x1b[?1007h\x1b[?2027l", RESET):
        screen.feed(piece)
    assert modes(screen, usual) == before != usual


@pytest.mark.parametrize(
    "left_behind",
    [
        b"\x1b]8;;http://x\x1b\\link",
        b"\x1b(0",
        b"\x1b)0\x0e",
        b"\x1b*0\x1bn",
        b"\x1b+0\x1bo",
        b"\x1b[1;3;4:3;41m\x1b[31m",
        b"\x1b[2;4r",
        b"\x1b[?69h\x1b[5;9s",
        b"\x1b[3g",
        b"\x1b[>5u",
        b"\x1b[?1049h\x1b[>5u",
        b"\x1b[>4;2m",
        b"\x1b[5 q",
        b'\x1b[1"q',
        b"\x1b=",
        b"\x1b]8;;http://not-ended",
        b"\x1bP$q",
    ],
)
def test_what_is_printed_afterwards_is_printed_as_ever(left_behind: bytes) -> None:
    """The same text and questions in a terminal that was used and one that was not."""
    pen, margins, shape = (b"\x1bP$q%b\x1b\\" % name for name in (b"m", b"r", b" q"))
    # In every character set, to a tab stop, down a line; and the keys of both screens.
    text = b"\x1b[H\x1b[2J~q\x0e~q\x0f\x1bN~\x1bO~\ta\x0b"
    asked = b"\x1b[?u" + pen + margins + shape + b"\x1b[?1049h\x1b[?u\x1b[?1049l"
    then, fresh = used(left_behind), GhosttyScreen(SIZE)
    for each in (then, fresh):
        each.feed(text)
    assert then.snapshot(scrollback=False) == fresh.snapshot(scrollback=False)
    assert then.feed(asked) == fresh.feed(asked)
