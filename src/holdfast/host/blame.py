"""Every line of the scrollback, traced to the command and actor that produced it.

The output that is held is shown to a fresh screen, command by command: the lines that are there
when a command's output ends, and were not when it began, are that command's. A line that a later
command painted over is the later one's. Output of a job in the background counts for the command in
the foreground: a terminal has one stream, and nothing in it says who wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.segments import JournalReader
from holdfast.journal import entries
from holdfast.model.info import BlameLine
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.ports.screen import Screen

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.live import LiveSession
    from holdfast.host.store import Stored

_LINE_BYTES = 128  # of a line in an answer, besides its texts


class Gathered(Record):
    """What blaming needs of a session, taken at one moment: the rest is done in a thread."""

    held: bytes
    held_from: int
    size: Size
    make_screen: Callable[[Size], Screen]
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


def gathered(live: LiveSession) -> Gathered:
    live.output.drain()
    live.journal.flush()
    ring, actors = live.ring, live.daemon.actors.authority.actors()
    return Gathered(
        held=ring.copy(ring.tail, ring.head),
        held_from=ring.tail,
        size=live.core.size,
        make_screen=live.daemon.make_tall_screen,
        directory=live.daemon.store.directory(live.spec.id),
        through=live.journal.seq,
        names={actor.id: actor.name for actor in actors},
    )


def gathered_ended(daemon: Daemon, stored: Stored) -> Gathered:
    """Of an ended session: what was held at its end."""
    info = stored.info
    with daemon.store.open_output(info.id) as file:
        held = file.read()
    return Gathered(
        held=held,
        held_from=info.held_from,
        size=info.size,
        make_screen=daemon.make_tall_screen,
        directory=daemon.store.directory(info.id),
        through=None,
        names={actor.id: actor.name for actor in daemon.actors.authority.actors()},
    )


def fitting(lines: list[BlameLine], max_bytes: int) -> list[BlameLine]:
    """As many as one answer has room for; one at least."""
    size = 0
    for index, line in enumerate(lines):
        size += _LINE_BYTES + 4 * (len(line.text) + len(line.command_text) + len(line.actor))
        if index and size > max_bytes:
            return lines[:index]
    return lines


def lines(of: Gathered) -> list[BlameLine]:
    """Every line that the output held makes, from the top."""
    screen = of.make_screen(of.size)
    blamed: list[tuple[str, _Stretch]] = []
    fed = 0
    for stretch in _stretches(of):
        end = min(stretch.end - of.held_from, len(of.held))
        if end <= fed:
            continue
        screen.feed(of.held[fed:end])
        fed = end
        blamed = _after(blamed, screen.text(scrollback=True).split("\n"), stretch)
    while blamed and not blamed[-1][0]:
        blamed.pop()
    return [
        BlameLine(
            number,
            text,
            of.names.get(stretch.actor, stretch.actor),
            stretch.number,
            stretch.text,
            stretch.at,
        )
        for number, (text, stretch) in enumerate(blamed, start=1)
    ]


def _after(
    before: list[tuple[str, _Stretch]], now: list[str], stretch: _Stretch
) -> list[tuple[str, _Stretch]]:
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
                of.held_from + len(of.held), body.number, body.text, entry.actor, entry.at
            )
        elif isinstance(body, entries.CommandEnded) and body.number in running:
            found.append(running.pop(body.number).replace(end=body.offset))
    return [*found, *running.values(), _Stretch(of.held_from + len(of.held))]
