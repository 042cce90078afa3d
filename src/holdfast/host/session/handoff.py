"""What others did while an actor was away: for one that takes the turn, or comes back (A6).

Each actor has two points in the session's record: where it last held the turn, and where it last
looked. What happened since is read from the journal; how the shell's own state changed is the
difference between its snapshots then and now. The points are on disk, for the next daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterable

from holdfast.adapters import atomic_file
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.core.shell_changes import changes
from holdfast.host.clock import now
from holdfast.host.session.record import SessionRecord
from holdfast.host.session.shell_commands import TYPED_BLIND, ShellCommands
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


class SeenPoint(Record):
    """How much an actor has seen: the last journal record then, and the shell's state."""

    seq: int
    at: float
    shell: ShellState | None = None


class KeyedLook(Record):
    """An actor's last look that had a key, and its point before: the answer may be lost."""

    key: str
    before: SeenPoint | None = None


class _Points(Record):
    held: dict[str, SeenPoint]
    looked: dict[str, SeenPoint]
    looks: dict[str, KeyedLook]


class Handoffs:
    """The points of one session's actors, and what happened since."""

    def __init__(
        self,
        directory: str,
        record: SessionRecord,
        commands: ShellCommands,
        *,
        shell_state: Callable[[], ShellState | None],
        cwd: Callable[[], str],
        is_halted: Callable[[], bool],
        name: Callable[[str], str],
    ) -> None:
        self._directory, self._journal, self._commands = directory, record, commands
        self._shell_state, self._cwd, self._is_halted = shell_state, cwd, is_halted
        self._name = name
        self._path = f"{directory}/seen.json"
        self._points = self._load()

    # -- points -------------------------------------------------------------------------------

    def turn_given_up(self, actor: str) -> None:
        """This actor held the turn until now. That is no look: who only sends a line has seen
        nothing of what others did. But who never looked has at least a point to begin at."""
        self._points.held[actor] = here = self._point_now()
        self._points.looked.setdefault(actor, here)
        self._keep()

    def looked(self, actor: str) -> None:
        """This actor looked until now."""
        self._looked(actor, self._point_now())

    def _looked(self, actor: str, until: SeenPoint) -> None:
        self._points.looked[actor] = until
        self._keep()

    def _point_now(self) -> SeenPoint:
        return SeenPoint(self._journal.seq, now(), self._shell_state())

    def _load(self) -> _Points:
        unreadable = (OSError, ValueError, TypeError, Malformed)
        with contextlib.suppress(*unreadable), open(self._path, "rb") as file:
            return _Points.unpack({"looks": {}, **json.loads(file.read())})  # once without
        return _Points({}, {}, {})

    def _keep(self) -> None:
        for points in (self._points.held, self._points.looked):
            while len(points) > HANDOFF_POINTS:
                del points[min(points, key=lambda actor: points[actor].at)]
        for gone in self._points.looks.keys() - self._points.looked.keys():
            del self._points.looks[gone]
        with contextlib.suppress(OSError):  # it helps people; nothing rests on it
            atomic_file.replace(self._path, json.dumps(self._points.pack()).encode())

    # -- what happened since ------------------------------------------------------------------

    async def for_actor(
        self, actor: str, since_seq: int | None = None, *, look: bool = False, key: str = ""
    ) -> Handoff:
        """Since this actor last held the turn; with `look`, since it last looked, and it looks.
        Who says since when wants that stretch again, or another: that is no look. Who looks again
        with the `key` of its last look was not told then: it begins where that one began."""
        points = self._points.looked if look else self._points.held
        point, last = points.get(actor), self._points.looks.get(actor)
        if look and key and last is not None and last.key == key:
            point = last.before
        first = max(1, (point.seq if point else 0) + 1 if since_seq is None else since_seq)
        self._journal.flush()
        came = self._journal.seq
        # Whoever took the turn by typing knows what that was.
        own = not look and self._commands.typed.authors() == (actor,)
        unsubmitted, authors = await self._unsubmitted(actor, own=own)
        self._journal.flush()
        here = self._point_now()  # what is recorded from now on is for the next one
        if not look:
            here = here.replace(seq=came)  # since then it is its own
        found = await asyncio.to_thread(_gathered, self._directory, first, here.seq)
        handoff = self._made(found, point, here)
        if look and since_seq is None:
            if key:
                self._points.looks[actor] = KeyedLook(key, point)
            self._looked(actor, here)
        known = unsubmitted is not None
        return handoff.replace(
            unsubmitted=unsubmitted or "", unsubmitted_by=authors, unsubmitted_known=known
        )

    def _made(self, found: _Gathered, point: SeenPoint | None, here: SeenPoint) -> Handoff:
        name, shell = self._name, here.shell
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
            cwd=shell.cwd if shell else self._cwd(),
            changes=changes(before, shell) if shell else (),
            changes_known=before is not None and shell is not None,
            jobs=tuple(shell.jobs.values()) if shell else (),
            halted=self._is_halted(),
        )

    async def _unsubmitted(self, actor: str, *, own: bool) -> tuple[str | None, tuple[str, ...]]:
        """The text at the prompt without its Enter, and who typed there; None when there may be one
        and the shell does not say, or is not asked because this actor may not write. `own`: this
        actor typed what may be there itself, and needs no telling. Being asked, the shell reports
        its whole state too, with the bodies of its functions."""
        commands, shell = self._commands, self._shell_state()
        names_only = shell is not None and "" in shell.functions.values()
        if not (names_only or (commands.typed.prompt_may_have_text and not own)):
            return "", ()
        if commands.may_ask(actor):
            text = await commands.read_prompt_line()
        else:
            text = None if commands.typed.at_prompt else ""
        if own or text == "" or not (text or commands.typed.prompt_may_have_text):
            return "", ()
        if text and commands.typed.blind:
            text = TYPED_BLIND
        return text, tuple(map(self._name, commands.typed.authors()))


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
            case entries.RefusedEntry(count=count):
                self.refused += count
            case entries.BlindInput(size=size):
                self.blind_bytes += size
