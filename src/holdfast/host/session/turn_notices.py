"""A session's turn as others see it: every step is recorded, and everybody is notified."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core.turn import events as turn
from holdfast.core.turn.machine import TurnMachine
from holdfast.core.turn.table import TurnStepKind
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.session.line_attribution import LastInput
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo, WaitingInfo
from holdfast.wire.messages import turn as turn_messages

# The turn was taken from them; they did not give it. A request or a write takes it from an idle
# holder.
_INVOLUNTARY = {TurnStepKind.SEIZE, TurnStepKind.REVOKE, TurnStepKind.EXPIRE, TurnStepKind.REQUEST}
_SYSTEM_CALL = (
    "a system call that was under way may still complete; what it had begun is not undone"
)
_ACTORS_GROUP = "; a root program that moved itself out of the actor's group is not found by this"


class TurnNotices:
    """Records and reports what happens to one session's turn."""

    def __init__(
        self,
        session: SessionId,
        held: TurnMachine,
        actors: ActorBook,
        record: SessionRecord,
        ring: Ring,
        *,
        last_input: Callable[[], LastInput],
        recipients: Callable[[], Iterable[OperatorConnection]],
        attached: Callable[[], Iterable[OperatorConnection]],
        handoff: Callable[[str], Awaitable[Handoff]],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        """`recipients`: everybody who hears what happens here; `attached`: of these, who has a
        channel; `handoff`: what an actor missed."""
        self._session, self._turn, self._actors, self._journal = session, held, actors, record
        self._ring, self._last_input = ring, last_input
        self._recipients, self._attached = recipients, attached
        self._handoff, self._spawn = handoff, spawn

    def info(self) -> TurnInfo:
        held, actors = self._turn, self._actors
        holder = actors.get(held.holder or HOST_ACTOR)
        return TurnInfo(
            holder=str.__str__(held.holder or ""),
            holder_name=actors.name(held.holder),
            holder_kind=holder.kind if holder else "",
            since=held.since,
            seized=held.seized,
            blind=held.blind,
            policy=held.policy.name,
            queue=tuple(
                WaitingInfo(one.actor, actors.name(one.actor), one.since, one.message)
                for one in held.queue
            ),
            held_until=held.held_until,
        )

    def receipt(self, scope: str) -> Receipt:
        """Where things stand at this moment: to be taken before a seizure, and completed after.
        `scope` is what will be halted: "session", an actor's id, or ""."""
        name, last = self._actors.name, self._last_input()
        self._journal.flush()
        return Receipt(
            at=now(),
            before=name(self._turn.holder),
            scope=scope if scope in ("", "session") else f"actor {name(scope)}",
            frozen=False,
            journal_seq=self._journal.seq,
            last_input_by=name(last.actor),
            last_input_at=last.at or None,
            output_offset=self._ring.head,
            caveat=_SYSTEM_CALL + ("" if scope in ("", "session") else _ACTORS_GROUP),
        )

    # -- what happened --------------------------------------------------------------------------

    def record(self, outcome: turn.TurnOutcome, by: str) -> None:
        """Before it is saved or anybody hears of it."""
        journal = self._journal
        if isinstance(outcome, turn.Moved):
            body = entries.TurnMoved(
                outcome.step, outcome.before or "", outcome.holder or "", outcome.reason
            )
            journal.happened(outcome.by, body, forced=True)
        elif isinstance(outcome, turn.Asked):
            journal.happened(outcome.actor, entries.TurnAsked())
        elif isinstance(outcome, turn.Blinded):
            journal.happened(outcome.holder, entries.BlindTurn(outcome.blind))
        elif isinstance(outcome, turn.Withdrawn):
            journal.happened(by, entries.TurnWithdrawn(outcome.actor))

    def notify(self, outcome: turn.TurnOutcome, by: str) -> None:
        """Everybody who is here or watches."""
        at, step, reason = now(), "withdraw", ""
        if isinstance(outcome, turn.Moved):
            at, step, reason, by = outcome.at, outcome.step, outcome.reason, outcome.by
        elif isinstance(outcome, turn.Asked):
            step, reason, by = "request", outcome.message, outcome.actor
        elif isinstance(outcome, turn.Blinded):
            step, by = "blind" if outcome.blind else "not blind", outcome.holder
        info, name = self.info(), self._actors.name(by)
        for operator in self._recipients():
            yours = info.holder == operator.actor.id
            operator.event(
                turn_messages.TurnMessage(self._session, step, at, name, info, yours, reason)
            )
        if isinstance(outcome, turn.Moved):
            self._notify_parties(outcome, name)

    def _notify_parties(self, moved: turn.Moved, by: str) -> None:
        """Who lost the turn, and who has it now."""
        lost = moved.step in _INVOLUNTARY and moved.holder != moved.before
        if moved.step is TurnStepKind.REQUEST:  # also one that waited until the holder was idle
            by = self._actors.name(moved.holder)
        for operator in self._recipients():
            if lost and operator.actor.id == moved.before:
                operator.event(
                    turn_messages.TurnLostMessage(
                        self._session, by or "the host", moved.at, moved.reason
                    )
                )
        if moved.holder is not None and moved.holder != moved.before:
            heirs = [o for o in self._attached() if o.actor.id == moved.holder]
            if heirs:
                self._spawn(self._hand_over(moved.holder, heirs))

    async def _hand_over(self, holder: str, heirs: list[OperatorConnection]) -> None:
        handoff = await self._handoff(holder)
        for operator in heirs:
            operator.event(turn_messages.HandedOver(self._session, handoff))
