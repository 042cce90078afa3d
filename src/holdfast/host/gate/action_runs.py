"""A session's structured actions: each is followed to its end, measured, recorded and scored.

The first look is taken before the line is typed and is kept by this daemon alone. If the daemon is
replaced meanwhile, the result of the command is known, because its shell reports it, but its
effects are not, and that is recorded. Nothing is measured that another command might have done.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.core.gate import action_effects
from holdfast.core.gate.action_effects import Look
from holdfast.core.gate.action_score import INVALID, REFUSED, UNKNOWN, score, unmeasured
from holdfast.core.gate.file_globs import Glob
from holdfast.host.clock import now
from holdfast.host.gate.session_look import SessionLook
from holdfast.host.session.exec_runs import Execution
from holdfast.host.session.record import SessionRecord
from holdfast.host.session.shell_commands import ShellCommands
from holdfast.journal import entries
from holdfast.model.action import Action
from holdfast.model.ids import SessionId
from holdfast.model.limits import (
    ACTION_HELD_LOOK_S,
    ACTION_PORT_WAIT_S,
    ACTION_SETTLE_S,
    UNINTENDED_COMMAND_CHARS,
    UNINTENDED_NAMED,
)
from holdfast.model.measured import ActionScore, Deviation, UnintendedEffects
from holdfast.model.record import Record

log = logging.getLogger(__name__)

_LOOK_SHARE = 20  # while a line is held, so much more time passes between looks than in them
_REPLACED = "the daemon was replaced while it ran: what it did was not measured"
_ENDED = "the session ended with it: what it did was not measured"
_OVERLAPPED = "another command began before it was measured: its effects may be among these"


class CountScores(Protocol):
    def add(
        self, actor: str, one: ActionScore, unintended: UnintendedEffects | None = None
    ) -> None: ...


class Begun(Record):
    """An action, as it was when its line was about to be typed."""

    action: Action
    actor: str
    at: float  # of the request, by the monotonic clock
    before: Look
    roots: tuple[str, ...]  # directories in which every file counts
    globs: tuple[str, ...]  # of declared files, absolute


class ActionRuns:
    """Those of one session."""

    def __init__(
        self,
        session: SessionId,
        directory: str,
        look: SessionLook,
        commands: ShellCommands,
        record: SessionRecord,
        scores: CountScores,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        save: Callable[[], None],
        is_over: Callable[[], bool],
    ) -> None:
        self.look, self._session = look, session
        self._directory, self._commands, self._journal = directory, commands, record
        self._scores, self._spawn, self._save, self._is_over = scores, spawn, save, is_over
        self._runs: dict[str, _Run] = {}

    def carry_on(self) -> None:
        """What an earlier daemon began and did not measure."""
        for execution in self._commands.executions.unmeasured():
            self.follow(execution, None)

    def follow(self, execution: Execution, begun: Begun | None) -> None:
        """Until it is measured. Without `begun` only its result can be recorded."""
        run = _Run(execution, begun, self._over, self._held)
        self._runs[execution.record.action] = run
        run.wake()

    async def measured(self, action: str) -> None:
        """Until it is recorded what this action did; returns at once if it is none of those that
        are followed."""
        run = self._runs.get(action)
        if run is not None:
            await run.done.wait()

    def _held(self, run: _Run) -> None:
        self._spawn(self._look_again(run))

    async def _look_again(self, run: _Run) -> None:
        """What happens while the line waits for approval is not its doing: the session is inspected
        again and again until the line is released, so the first look is at most one such pause
        old."""
        while run.begun is not None and run.waits:
            began = time.monotonic()
            before = await self.look.look(run.begun.roots, run.begun.globs)
            if not run.waits:
                return  # it may have begun while this look was taken
            run.begun = run.begun.replace(before=before)
            took = time.monotonic() - began
            await asyncio.sleep(max(ACTION_HELD_LOOK_S, _LOOK_SHARE * took))

    def _over(self, run: _Run) -> None:
        if self._is_over():  # what the session was is about to be recorded: now or never
            self._record_result(run, _ENDED)
            self._finish(run)
        else:
            self._spawn(self._measure(run))

    async def _measure(self, run: _Run) -> None:
        try:
            if run.begun is None:
                await self._measure_late(run)
            elif run.execution.record.failure:
                self._record_result(run, "")
            else:
                await self._record_effects(run, run.begun)
        except Exception as error:  # whoever waits for the trace must get one
            log.exception("action %s could not be measured", run.execution.record.action)
            self._record_result(run, f"what it did could not be measured: {error}")
        self._finish(run)

    def _finish(self, run: _Run) -> None:
        run.execution.is_measured()
        self._runs.pop(run.execution.record.action, None)
        run.done.set()
        if not self._is_over():
            self._save()

    # -- recording ----------------------------------------------------------------------------

    async def _record_effects(self, run: _Run, begun: Begun) -> None:
        record, expect = run.execution.record, begun.action.expect
        number = record.command or 0
        after = await self.look.look(begun.roots, begun.globs, number)
        after = await self._settled(begun, after)
        last = self._commands.last
        if last is not None and last.seq > number:
            after = after._replace(partial=(*after.partial, _OVERLAPPED))
        if self._is_over():
            self._record_result(run, _ENDED)
            return
        globs = [Glob(glob) for glob in begun.globs]
        found = action_effects.difference(begun.before, after, self.look.own, begun.roots, globs)
        missing = action_effects.missing(expect, globs, found, after, record.status)
        unexpected = action_effects.unexpected(expect, globs, found)
        self._record(
            run,
            begun.actor,
            entries.ActionMeasured(
                record.action,
                number,
                record.status,
                record.seconds,
                time.monotonic() - begun.at,
                score(missing, unexpected),
                action_effects.shown(found),
                action_effects.named(missing),
                action_effects.named(unexpected),
            ),
            self._unintended(record.action, begun.action, unexpected),
        )

    def _unintended(
        self, action: str, declared: Action, found: Sequence[Deviation]
    ) -> UnintendedEffects | None:
        if not found:
            return None
        command = declared.line or " ".join(declared.words)
        named = action_effects.named(found)[:UNINTENDED_NAMED]
        command = command[:UNINTENDED_COMMAND_CHARS]
        return UnintendedEffects(now(), self._session, action, command, named, len(found))

    async def _settled(self, begun: Begun, after: Look) -> Look:
        """A process that ends in this moment was not left running, and a server that was takes a
        moment to listen."""
        until = time.monotonic() + ACTION_PORT_WAIT_S
        own, first = self.look.own, after
        while True:
            found = action_effects.difference(begun.before, after, own, ())
            waits = {*begun.action.expect.ports} - action_effects.listening(after.processes)
            if not found.left or (after is not first and not (waits and time.monotonic() < until)):
                return after
            await asyncio.sleep(ACTION_SETTLE_S)
            processes, _ = await self.look.processes()
            there = {each.pid for each in first.processes}
            workers = {each.pid for each in processes if each.ppid in there}
            kept = tuple(each for each in processes if each.pid in there | workers)
            after = after._replace(processes=kept)

    async def _measure_late(self, run: _Run) -> None:
        """Of an action that an earlier daemon began: the journal says whose it is, and what it
        declared."""
        self._journal.flush()
        action = run.execution.record.action
        run.late = await asyncio.to_thread(_declared, self._directory, action)
        if run.late is not None:
            self._record_result(run, _REPLACED)

    def _record_result(self, run: _Run, why: str) -> None:
        """Without effects."""
        record = run.execution.record
        code, message = record.failure[:2] if record.failure else ("", why)
        actor, expected = "", 0
        if run.begun is not None:
            actor, expected = run.begun.actor, run.begun.action.expect.status
        elif run.late is not None:
            actor, expected = run.late
        if code in INVALID:
            judged = REFUSED
        else:
            judged = UNKNOWN if code else unmeasured(record.status, expected)
        latency = time.monotonic() - (run.begun.at if run.begun is not None else record.began)
        body = entries.ActionMeasured(
            record.action,
            record.command or 0,
            None if code else record.status,
            record.seconds,
            latency,
            judged,
            code=code,
            message=action_effects.cut(message),
        )
        self._record(run, actor, body)

    def _record(
        self,
        run: _Run,
        actor: str,
        body: entries.ActionMeasured,
        unintended: UnintendedEffects | None = None,
    ) -> None:
        self._journal.record_best_effort(actor, body)
        self._scores.add(actor, body.score, unintended)


class _Run:
    """One action on its way."""

    def __init__(
        self,
        execution: Execution,
        begun: Begun | None,
        over: Callable[[_Run], None],
        held: Callable[[_Run], None],
    ) -> None:
        self.execution, self.begun = execution, begun
        self._held: Callable[[_Run], None] | None = held
        self.late: tuple[str, int] | None = None  # whose it is, and the status it declared
        self.done = asyncio.Event()
        self._over: Callable[[_Run], None] | None = over
        execution.followers.add(self)

    @property
    def waits(self) -> bool:
        """Whether a policy holds its line."""
        record = self.execution.record
        return bool(self.execution.held_by) and record.command is None and not self.execution.over

    def wake(self) -> None:
        if self.waits and self._held is not None:
            held, self._held = self._held, None
            held(self)
        if self.execution.over and self._over is not None:
            over, self._over = self._over, None
            over(self)


def _declared(directory: str, action: str) -> tuple[str, int] | None:
    """Whose action it is, and which exit status it declared; None if it was measured after all, or
    was never asked for."""
    found = None
    for entry in JournalReader(directory).entries():
        match entry.body:
            case entries.ActionEntry(action=this) as body if this == action:
                found = entry.actor, declared_of(body).expect.status
            case entries.ActionMeasured(action=this) if this == action:
                return None
    return found


def declared_of(body: entries.ActionEntry) -> Action:
    """The action that an entry declares."""
    return Action.parsed(json.loads(body.declared))
