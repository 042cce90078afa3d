"""Every line of the scrollback, traced to the command and actor that produced it.

The output that is held is shown to a fresh screen, piece by piece: the lines that are there after
a piece of a command's output, and were not before it, are that command's. A line that a later
command painted over is the later one's. Output of a job in the background counts for the command in
the foreground: a terminal has one stream, and nothing in it says who wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.core.vt_boundary import complete_prefix
from holdfast.host.gate.command_book import of_entry
from holdfast.journal import entries
from holdfast.model.info import BlameLine
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.ports.screen import ScreenPort

if TYPE_CHECKING:
    _Blamed = tuple[str, "_Stretch"]  # a line, and whose it is

_LINE_BYTES = 128  # of a line in an answer, besides its texts
_PIECE_BYTES = 16 << 10  # fed at once: at most so many lines are above the screen
_ALTERNATE = (47, 1047, 1049)  # DEC private modes, each of which shows the alternate screen
_CLEAR_ABOVE = b"\x1b[3J"


class Gathered(Record):
    """What blaming needs of a session, taken at one moment: the rest is done in a thread."""

    held: bytes
    held_from: int
    size: Size
    make_screen: Callable[[Size], ScreenPort]
    directory: str
    through: int | None
    names: dict[str, str]


class _Stretch(Record):
    """Output up to an offset, and whose it is: prompt, the line typed there, what came of it."""

    end: int
    number: int | None = None
    text: str = ""
    actor: str = ""
    at: float | None = None
    originators: tuple[str, ...] = ()  # everybody behind it, that one first


def fitting(lines: list[BlameLine], max_bytes: int) -> list[BlameLine]:
    """As many as one answer has room for; one at least."""
    size = 0
    for index, line in enumerate(lines):
        size += _LINE_BYTES + len(f"{line.text}{line.command_text}{line.actor}".encode())
        if index and size > max_bytes:
            return lines[:index]
    return lines


def lines(of: Gathered) -> list[BlameLine]:
    """Every line that the output held makes, from the top."""
    page = _Page(of.make_screen(of.size), of.size.rows)
    fed = 0
    for stretch in _stretches(of):
        end = min(stretch.end - of.held_from, len(of.held))
        while fed < end:
            piece = of.held[fed : min(end, fed + _PIECE_BYTES)]
            # What is cut in the middle of a sequence waits for the rest of it.
            whole = complete_prefix(piece, len(piece))
            if not whole and fed + len(piece) == end:
                break
            page.feed(piece[: whole or len(piece)], stretch)
            fed += whole or len(piece)
    return [
        BlameLine(
            number,
            text,
            of.names.get(stretch.actor, stretch.actor),
            stretch.number,
            stretch.text,
            stretch.at,
            of.names.get(stretch.actor, stretch.actor),
            tuple(of.names.get(actor, actor) for actor in stretch.originators),
        )
        for number, (text, stretch) in enumerate(page.all(), start=1)
    ]


class _Page:
    """The lines so far, each with its origin. Only what the screen shows can still change, so what
    scrolls off it is put aside and cleared there: each look costs one screen and one piece, however
    much was printed before."""

    def __init__(self, screen: ScreenPort, rows: int) -> None:
        self._screen, self._rows = screen, rows
        self._aside: list[_Blamed] = []
        self._shown: list[_Blamed] = []
        self._last = _Stretch(0)

    def feed(self, data: bytes, stretch: _Stretch) -> None:
        self._screen.feed(data)
        self._last = stretch
        if self._on_alternate():
            return  # the primary screen comes back as it was
        above = self._screen.scrolled()
        now = self._screen.text(scrollback=True).split("\n")
        now += [""] * (above - len(now))  # blank lines at the end are not in the text
        blamed = _after(self._shown, now, stretch)
        self._aside += blamed[:above]
        self._shown = blamed[above:]
        if above:
            self._screen.feed(_CLEAR_ABOVE)

    def all(self) -> list[_Blamed]:
        shown = self._shown
        if self._on_alternate():
            shown = [(text, self._last) for text in self._screen.text().split("\n")]
        found = [*self._aside, *shown]
        while found and not found[-1][0]:
            found.pop()
        return found

    def _on_alternate(self) -> bool:
        return any(map(self._screen.mode, _ALTERNATE))


def _after(before: list[_Blamed], now: list[str], stretch: _Stretch) -> list[_Blamed]:
    """A line that stands as it stood keeps its origin; every other is this stretch's."""
    kept = [
        old if old[0] == text else (text, stretch) for old, text in zip(before, now, strict=False)
    ]
    return [*kept, *((text, stretch) for text in now[len(before) :])]


def _stretches(of: Gathered) -> list[_Stretch]:
    """In the order of the output. What comes after the last command's end is nobody's yet."""
    found: list[_Stretch] = []
    running: dict[int, _Stretch] = {}
    for entry in JournalReader(of.directory).entries(1, of.through):
        body = entry.body
        if isinstance(body, entries.CommandBegan):
            running[body.number] = _Stretch(
                of.held_from + len(of.held),
                body.number,
                body.text,
                entry.actor,
                entry.at,
                of_entry(entry, body).actors,
            )
        elif isinstance(body, entries.InputEntry | entries.BlindInput) and entry.actor:
            for number, stretch in running.items():  # typed into what runs
                actors = dict.fromkeys((*stretch.originators, entry.actor))
                running[number] = stretch.replace(originators=tuple(actors))
        elif isinstance(body, entries.CommandEnded) and body.number in running:
            found.append(running.pop(body.number).replace(end=body.offset))
    return [*found, *running.values(), _Stretch(of.held_from + len(of.held))]
