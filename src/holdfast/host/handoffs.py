"""What an actor must know that takes the turn, or comes back: what others did meanwhile (A6).

Each actor has two points in the session's record: where it last held the turn, and where it last
looked. What happened since is read from the journal; what the shell's own state became is the
difference between its snapshots then and now. They are on disk, for a daemon that comes after.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from typing import TYPE_CHECKING

from holdfast.adapters import files
from holdfast.adapters.segments import JournalReader
from holdfast.adapters.shell import state_path
from holdfast.adapters.shell_state import read_state
from holdfast.core.handoff import changes
from holdfast.host.clock import now
from holdfast.host.commands import TYPED_BLIND
from holdfast.host.levels import bell_path
from holdfast.journal import entries
from holdfast.model.info import CommandRecord
from holdfast.model.limits import (
    HANDOFF_COMMANDS,
    HANDOFF_MOVES,
    HANDOFF_POINTS,
    HANDOFF_RECORDS,
)
from holdfast.model.record import Malformed, Record
from holdfast.model.shell_state import ShellState
from holdfast.model.turn_info import Handoff, TurnMove

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.host.live import LiveSession
    from holdfast.host.operator import Operator


class Point(Record):
    """Where an actor stood: the last journal record then, and the shell's state."""

    seq: int
    at: float
    shell: ShellState | None = None


class _Points(Record):
    held: dict[str, Point]
    looked: dict[str, Point]


class Handoffs:
    """The points of one session's actors, and what happened since."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._path = f"{live.daemon.store.directory(live.spec.id)}/seen.json"
        self._points = self._load()

    # -- points -------------------------------------------------------------------------------

    def held_until_now(self, actor: str) -> None:
        """This actor held the turn until now. That is no look: who only sends a line has seen
        nothing of what others did. But who never looked has at least a point to begin at."""
        self._points.held[actor] = here = self._here()
        self._points.looked.setdefault(actor, here)
        self._keep()

    def left(self, operator: Operator, channel: int) -> None:
        """This channel is about to close. Its operator looked until now, if that was its last one
        with a terminal. To read bytes is no look: programs poll like that, and show nobody."""
        seats = self._live.core.attachments.seats()
        shown = [seat.channel for seat in seats if seat.operator == operator.id and not seat.raw]
        if shown == [channel] and not self._live.is_over:
            self._looked(operator.actor.id, self._here())

    def _looked(self, actor: str, until: Point) -> None:
        self._points.looked[actor] = until
        self._keep()

    def _here(self) -> Point:
        return Point(self._live.journal.seq, now(), self._shell())

    def _shell(self) -> ShellState | None:
        live = self._live
        if not live.spec.shell:
            return None
        path = state_path(bell_path(live.daemon.home, live.spec.mark))
        return read_state(path, live.spec.nonce, live.spec.uid)

    def _load(self) -> _Points:
        with contextlib.suppress(OSError, ValueError, Malformed), open(self._path, "rb") as file:
            return _Points.unpack(json.loads(file.read()))
        return _Points({}, {})

    def _keep(self) -> None:
        for points in (self._points.held, self._points.looked):
            while len(points) > HANDOFF_POINTS:
                del points[min(points, key=lambda actor: points[actor].at)]
        with contextlib.suppress(OSError):  # it helps people; nothing rests on it
            files.replace(self._path, json.dumps(self._points.pack()).encode())

    # -- what happened since ------------------------------------------------------------------

    async def for_actor(
        self, actor: str, since_seq: int | None = None, *, look: bool = False
    ) -> Handoff:
        """Since this actor last held the turn; with `look`, since it last looked, and it looks.
        Who says since when wants that stretch again, or another: that is no look."""
        points = self._points.looked if look else self._points.held
        point = points.get(actor)
        first = max(1, (point.seq if point else 0) + 1 if since_seq is None else since_seq)
        unsubmitted, authors = await self._unsubmitted()
        live = self._live
        live.journal.flush()
        here = self._here()  # what is recorded from now on is for the next one
        directory = live.daemon.store.directory(live.spec.id)
        found = await asyncio.to_thread(_gathered, directory, first, here.seq)
        handoff = self._made(found, point, here)
        if look and since_seq is None:
            self._looked(actor, here)
        return handoff.replace(unsubmitted=unsubmitted, unsubmitted_by=authors)

    def _made(self, found: _Gathered, point: Point | None, here: Point) -> Handoff:
        live, name = self._live, self._live.daemon.actors.name
        shell = here.shell
        before = point.shell if point else None
        commands = [
            record.replace(actor=name(record.actor), authors=tuple(map(name, record.authors)))
            for record in found.commands.values()
        ]
        moves = [
            move.replace(before=name(move.before), holder=name(move.holder)) for move in found.moves
        ]
        return Handoff(
            since_seq=found.first - 1,
            through_seq=here.seq,
            since_at=found.cut_at or (point.at if point else None),
            commands=tuple(commands),
            commands_left_out=found.commands_left_out,
            moves=tuple(moves),
            refused=found.refused,
            blind_bytes=found.blind_bytes,
            cwd=shell.cwd if shell else live.info().cwd,
            changes=changes(before, shell) if shell else (),
            changes_known=before is not None and shell is not None,
            jobs=tuple(shell.jobs.values()) if shell else (),
            halted=live.core.halted,
        )

    async def _unsubmitted(self) -> tuple[str, tuple[str, ...]]:
        """The text that stands at the prompt without its Enter, and who typed there. Being asked,
        the shell tells its whole state too, with the bodies of its functions."""
        live = self._live
        shell = self._shell()
        names_only = shell is not None and "" in shell.functions.values()
        if not (live.commands.typed_since_prompt or names_only):
            return "", ()
        text = await live.commands.line()
        if text and live.commands.blind:
            text = TYPED_BLIND
        name = live.daemon.actors.name
        return text or "", tuple(name(actor) for actor in live.typist.authors) if text else ()


def _gathered(directory: str, first: int, last: int) -> _Gathered:
    """From `first` through `last`, but not more of them than the latest HANDOFF_RECORDS."""
    begin = max(first, last - HANDOFF_RECORDS + 1)
    return _Gathered(JournalReader(directory).entries(begin, last), begin, cut=begin > first)


class _Gathered:
    """What matters of a stretch of the journal."""

    def __init__(self, found: Iterable[entries.Entry], first: int, *, cut: bool) -> None:
        """`cut`: there is more before the first of these, which is not read."""
        self.first = first
        self.cut_at: float | None = None  # when the first of these was recorded
        self.commands: dict[int, CommandRecord] = {}
        self.commands_left_out = 0
        self.moves: deque[TurnMove] = deque(maxlen=HANDOFF_MOVES)
        self.refused = 0
        self.blind_bytes = 0
        for entry in found:
            if cut and self.cut_at is None:
                self.cut_at = entry.at
            self._take(entry)

    def _take(self, entry: entries.Entry) -> None:
        match entry.body:
            case entries.CommandBegan(number=number, text=text, cwd=cwd, offset=offset) as body:
                self.commands[number] = CommandRecord(
                    number, text, cwd, entry.at, offset, actor=entry.actor, authors=body.authors
                )
                if len(self.commands) > HANDOFF_COMMANDS:
                    del self.commands[next(iter(self.commands))]
                    self.commands_left_out += 1
            case entries.CommandEnded(number=number, status=status, offset=offset):
                if number in self.commands:
                    self.commands[number] = self.commands[number].replace(
                        status=status, ended_at=entry.at, ended_offset=offset
                    )
            case entries.TurnMoved(step=step, before=before, holder=holder, reason=reason):
                self.moves.append(TurnMove(entry.at, step, before, holder, reason))
            case entries.Refused(count=count):
                self.refused += count
            case entries.BlindInput(size=size):
                self.blind_bytes += size
