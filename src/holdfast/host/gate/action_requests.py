"""Requests to carry out a structured action, for its trace, and for an actor's score.

An action is an `exec` that says more: it is checked whole before anything runs, the session is
inspected before and after, and what it did is recorded beside what it declared. The line goes the
way of every input, and is refused or held like any other.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.core import events as ev
from holdfast.core.gate.action_score import INVALID, REFUSED
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.clock import now
from holdfast.host.gate.action_runs import ActionRuns, Begun
from holdfast.host.gate.action_trace import find_action
from holdfast.host.gate.score_book import ScoreBook
from holdfast.host.gate.session_look import absolute_globs
from holdfast.host.session.input_requests import InputRequests, InputTarget, check_channel_free
from holdfast.host.session.record import SessionRecord
from holdfast.host.session_store import SessionStore, Stored, journal_of
from holdfast.model.action import Action, DeclaredAction
from holdfast.model.actor import Actor
from holdfast.model.errors import (
    HoldfastError,
    InvalidArgument,
    SessionBusy,
    session_over,
)
from holdfast.model.ids import SessionId
from holdfast.model.limits import ACTION_MAX_BYTES, ACTION_RETRIES_MAX, SCORE_DAYS
from holdfast.model.measured import ActionTrace
from holdfast.model.shell_line import below_shell, joined
from holdfast.wire.messages import gate_actions as ga
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.exec_runs import Execution

_CODE_CHARS = 40  # of the code of an error


class ActionTarget(InputTarget, Protocol):
    """A live session, as far as actions are carried out in it."""

    journal: SessionRecord
    actions: ActionRuns

    @property
    def is_closed(self) -> bool: ...


Found = ActionTarget | Stored


class ActionRequests:
    """Handlers of one host."""

    def __init__(
        self,
        ways_in: InputRequests,
        store: SessionStore,
        actors: ActorBook,
        scores: ScoreBook,
        may_see: Callable[[Actor, SessionId], bool],
    ) -> None:
        self._ways_in, self._store = ways_in, store
        self._actors, self._scores, self._may_see = actors, scores, may_see

    # -- carrying out -------------------------------------------------------------------------

    async def act(
        self, operator: OperatorConnection, request: ga.Act, live: ActionTarget
    ) -> m.Answer | None:
        check_channel_free(operator, request.id)
        asked_at = time.monotonic()
        try:
            action = parsed(request.action)
            execution, repeated = await self._carried_out(operator, request, live, action, asked_at)
        except HoldfastError as error:
            self._note_refusal(operator, request, live, error)
            raise
        check_channel_free(operator, request.id)
        taken = ga.ActionTaken(request.id, execution.record.action, repeated)
        self._ways_in.follow_exec(operator, request.id, live, execution, taken)
        return None

    async def _carried_out(
        self,
        operator: OperatorConnection,
        request: ga.Act,
        live: ActionTarget,
        action: Action,
        asked_at: float,
    ) -> tuple[Execution, bool]:
        """And whether it had been before."""
        commands, who, actor = live.commands, operator.identity, operator.actor.id
        line = line_of(action, fish=commands.shells.kind == "fish")
        asked = m.Exec(request.id, request.session, request.seq, line, action.key, action.intent)
        execution = commands.executions.find(actor, who, asked)
        if execution is None and live.core.inputs.is_behind(who, request.seq):
            self._ways_in.begin_exec(live, operator, asked)  # which says that it is not known
        if execution is None:
            _check_seen(live)
            if commands.typed.prompt_may_have_text:
                await commands.after_prompt_check(actor, who, request.seq, lambda: None)
                _check_not_over(live)
            live.core.check_not_halted(actor)
            commands.check_can_run()
            begun = None
            if live.core.may_type(actor, now()):  # else it is refused below
                begun = await _begin(live, action, actor, asked_at)
            execution = commands.executions.find(actor, who, asked)
            if execution is None:
                return self._typed(operator, request, live, asked, action, begun), False
        if not execution.record.action:
            raise InvalidArgument(
                "this key was used for a command line that is no action",
                hint="a key names one act; take another for another",
            )
        return execution, True

    def _typed(
        self,
        operator: OperatorConnection,
        request: ga.Act,
        live: ActionTarget,
        asked: m.Exec,
        action: Action,
        begun: Begun | None,
    ) -> Execution:
        _check_not_over(live)
        if live.core.inputs.is_behind(operator.identity, request.seq):
            raise SessionBusy("an input sent after this action was typed before it")
        _check_seen(live)
        retried = tuple(code[:_CODE_CHARS] for code in request.retried[-ACTION_RETRIES_MAX:])
        form = json.dumps(action.form(), ensure_ascii=False)
        declared = DeclaredAction(secrets.token_hex(8), form, retried)
        execution = self._ways_in.begin_exec(live, operator, asked, declared)
        live.actions.follow(execution, begun)
        return execution

    def _note_refusal(
        self,
        operator: OperatorConnection,
        request: ga.Act,
        live: ActionTarget,
        error: HoldfastError,
    ) -> None:
        """One that is the actor's own doing counts; what the session machine refused it has
        recorded."""
        if error.code not in INVALID:
            return
        actor = operator.actor.id
        self._scores.add(actor, REFUSED)
        if isinstance(error, InvalidArgument) and not live.is_closed:
            offered = ev.InputOffered(actor, now(), operator.identity, request.seq, b"", "exec")
            live.journal.refused(offered, error.code)

    # -- looking ------------------------------------------------------------------------------

    async def trace(
        self, operator: OperatorConnection, request: ga.GetTrace, found: Found
    ) -> m.Answer:
        trace = await self._trace(operator, request, found)
        if request.wait and trace.state == "running" and not isinstance(found, Stored):
            await found.actions.measured(trace.id)
            trace = await self._trace(operator, request.replace(action=trace.id), found)
        return ga.TraceShown(request.id, trace)

    async def _trace(
        self, operator: OperatorConnection, request: ga.GetTrace, found: Found
    ) -> ActionTrace:
        session, through = journal_of(found)
        reader = JournalReader(self._store.directory(session))
        return await asyncio.to_thread(
            lambda: find_action(
                reader.entries(1, through),
                request.action,
                session=session,
                asker=operator.actor.id,
                is_over=isinstance(found, Stored),
                name=self._actors.name,
            )
        )

    def score(self, operator: OperatorConnection, request: ga.GetScore) -> m.Answer:
        if not 1 <= request.days <= SCORE_DAYS:
            raise InvalidArgument(f"days: from 1 to {SCORE_DAYS}, which is what is kept")
        asker = operator.actor
        actor = self._actors.find(asker, request.actor) if request.actor else asker
        found = self._scores.of(actor.id, request.days)
        sessions = {each.session for each in found.unintended}
        seen = {session for session in sessions if self._may_see(asker, session)}
        unintended = tuple(each for each in found.unintended if each.session in seen)
        return ga.ScoreShown(request.id, found.replace(unintended=unintended))


def parsed(text: str) -> Action:
    """The action that this JSON describes, or the refusal: which field, and what to do."""
    if len(text.encode(errors="replace")) > ACTION_MAX_BYTES:
        raise InvalidArgument(
            f"the action has more than {ACTION_MAX_BYTES} bytes; nothing was run",
            hint="put a long script into a file, and run that",
        )
    try:
        form = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"the action is not JSON: {error}; nothing was run",
            hint='such as {"intent": "run the tests", "command": "make test"}',
        ) from None
    return Action.parsed(form)


def line_of(action: Action, *, fish: bool) -> str:
    """What the session's shell gets."""
    line = action.line or joined(action.words, fish=fish)
    return below_shell(line, action.cwd, {}, fish=fish) if action.cwd else line


def _check_seen(live: ActionTarget) -> None:
    if live.core.turn.blind:
        raise SessionBusy(
            "the turn is blind: what is done in it is not recorded, and an action is a record",
            hint="end the blind turn, or use exec",
        )


def _check_not_over(live: ActionTarget) -> None:
    """After a wait, in which it may have ended or fallen asleep: its descriptors are closed."""
    if live.core.ending is not None:
        how = "ended before it took the action"
        raise session_over("the session", live.core.ending, how=how)


async def _begin(live: ActionTarget, action: Action, actor: str, asked_at: float) -> Begun:
    """The session before the action."""
    look = live.actions.look
    roots = look.roots(action.cwd)
    globs = absolute_globs(action.expect.files, action.cwd or look.cwd)
    before = await look.look(roots, globs)
    return Begun(action, actor, asked_at, before, roots, globs)
