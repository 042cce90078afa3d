"""What an actor must know that takes the turn, or comes back: what others did meanwhile (A6).

Each actor has two points in the session's record: where it last held the turn, and where it last
looked. What happened since is read from the journal; what the shell's own state became is the
difference between its snapshots then and now. They are on disk, for a daemon that comes after.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
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
from holdfast.model.limits import HANDOFF_COMMANDS, HANDOFF_MOVES, HANDOFF_POINTS
from holdfast.model.record import Malformed, Record
from holdfast.model.shell_state import ShellState
from holdfast.model.turn_info import Handoff, TurnMove

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.host.live import LiveSession


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

    def looked_until_now(self, actor: str) -> None:
        """This actor was attached, or asked, until now."""
        self._points.looked[actor] = self._here()
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
        """Since this actor last held the turn; with `look`, since it last looked, and it looks."""
        points = self._points.looked if look else self._points.held
        point = points.get(actor)
        first = (point.seq if point else 0) + 1 if since_seq is None else since_seq
        unsubmitted, authors = await self._unsubmitted()
        live = self._live
        live.journal.flush()
        through = live.journal.seq
        reader = JournalReader(live.daemon.store.directory(live.spec.id))
        gathered = await asyncio.to_thread(_Gathered, reader.entries(first, through))
        handoff = self._made(gathered, first - 1, through, point)
        if look:
            self.looked_until_now(actor)
        return handoff.replace(unsubmitted=unsubmitted, unsubmitted_by=authors)

    def _made(self, found: _Gathered, since: int, through: int, point: Point | None) -> Handoff:
        live, name = self._live, self._live.daemon.actors.name
        shell = self._shell()
        before = point.shell if point else None
        commands = [
            record.replace(actor=name(record.actor), authors=tuple(map(name, record.authors)))
            for record in found.commands.values()
        ]
        moves = [
            move.replace(before=name(move.before), holder=name(move.holder))
            for move in found.moves[-HANDOFF_MOVES:]
        ]
        return Handoff(
            since_seq=since,
            through_seq=through,
            since_at=point.at if point else None,
            commands=tuple(commands[-HANDOFF_COMMANDS:]),
            commands_left_out=max(0, len(commands) - HANDOFF_COMMANDS),
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


class _Gathered:
    """What matters of a stretch of the journal."""

    def __init__(self, found: Iterable[entries.Entry]) -> None:
        self.commands: dict[int, CommandRecord] = {}
        self.moves: list[TurnMove] = []
        self.refused = 0
        self.blind_bytes = 0
        for entry in found:
            self._take(entry)

    def _take(self, entry: entries.Entry) -> None:
        match entry.body:
            case entries.CommandBegan(number=number, text=text, cwd=cwd, offset=offset) as body:
                self.commands[number] = CommandRecord(
                    number, text, cwd, entry.at, offset, actor=entry.actor, authors=body.authors
                )
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
