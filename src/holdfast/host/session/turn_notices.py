"""A session's turn as others see it: every step recorded, kept, and told; time passing noticed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.core import events as ev
from holdfast.core.turn import events as turn
from holdfast.core.turn.table import TurnStepKind
from holdfast.host.clock import now
from holdfast.journal import entries
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.turn_info import Receipt, TurnInfo, WaitingInfo
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.live_session import LiveSession

# The turn was taken from them; they did not give it. A request or a write takes it from an idle
# holder.
_INVOLUNTARY = {TurnStepKind.SEIZE, TurnStepKind.REVOKE, TurnStepKind.EXPIRE, TurnStepKind.REQUEST}
_SYSTEM_CALL = (
    "a system call that was under way may still complete; what it had begun is not undone"
)


class TurnNotices:
    """Tells what becomes of one session's turn."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._awaited: float | None = None  # when the timer is to go off

    def info(self) -> TurnInfo:
        held, actors = self._live.core.turn, self._live.daemon.actors
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
        )

    def receipt(self, scope: str) -> Receipt:
        """Where things stand at this moment: to be taken before a seizure, and completed after.
        `scope` is what will be halted: "session", an actor's id, or ""."""
        live, actors = self._live, self._live.daemon.actors
        live.journal.flush()
        last = live.custody
        return Receipt(
            at=now(),
            before=actors.name(live.core.turn.holder),
            scope=scope if scope in ("", "session") else f"actor {actors.name(scope)}",
            frozen=False,
            journal_seq=live.journal.seq,
            last_input_by=actors.name(last.last_actor),
            last_input_at=last.last_input_at or None,
            output_offset=live.ring.head,
            caveat=_SYSTEM_CALL,
        )

    # -- what happened --------------------------------------------------------------------------

    def record(self, outcome: turn.TurnOutcome, by: str) -> None:
        """Before it is kept or told."""
        live = self._live
        if isinstance(outcome, turn.Moved):
            body = entries.TurnMoved(
                outcome.step, outcome.before or "", outcome.holder or "", outcome.reason
            )
            live.journal.happened(outcome.by, body, forced=True)
        elif isinstance(outcome, turn.Asked):
            live.journal.happened(outcome.actor, entries.TurnAsked())
        elif isinstance(outcome, turn.Blinded):
            live.journal.happened(outcome.holder, entries.BlindTurn(outcome.blind))
        elif isinstance(outcome, turn.Withdrawn):
            live.journal.happened(by, entries.TurnWithdrawn(outcome.actor))

    def notify(self, outcome: turn.TurnOutcome, by: str) -> None:
        """To everybody who is here or watches."""
        live, actors = self._live, self._live.daemon.actors
        at, step, reason = now(), "withdraw", ""
        if isinstance(outcome, turn.Moved):
            at, step, reason, by = outcome.at, outcome.step, outcome.reason, outcome.by
        elif isinstance(outcome, turn.Asked):
            step, reason, by = "request", outcome.message, outcome.actor
        elif isinstance(outcome, turn.Blinded):
            step, by = "blind" if outcome.blind else "not blind", outcome.holder
        info, name = self.info(), actors.name(by)
        for operator in live.recipients():
            yours = info.holder == operator.actor.id
            operator.event(
                turn_messages.TurnMessage(live.spec.id, step, at, name, info, yours, reason)
            )
        if isinstance(outcome, turn.Moved):
            self._tell_those_concerned(outcome, name)

    def _tell_those_concerned(self, moved: turn.Moved, by: str) -> None:
        live = self._live
        lost = moved.step in _INVOLUNTARY and moved.holder != moved.before
        if moved.step is TurnStepKind.REQUEST:  # also one that waited until the holder was idle
            by = live.daemon.actors.name(moved.holder)
        for operator in live.recipients():
            if lost and operator.actor.id == moved.before:
                operator.event(
                    turn_messages.TurnLostMessage(
                        live.spec.id, by or "the host", moved.at, moved.reason
                    )
                )
        if moved.holder is not None and moved.holder != moved.before:
            heirs = [o for o in live.audience if o.actor.id == moved.holder]
            if heirs:
                live.spawn(self._hand_over(moved.holder, heirs))

    async def _hand_over(self, holder: str, heirs: list[OperatorConnection]) -> None:
        handoff = await self._live.handoffs.for_actor(holder)
        for operator in heirs:
            operator.event(turn_messages.HandedOver(self._live.spec.id, handoff))

    # -- time -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Once at the beginning: rights may have gone while no daemon was there to act on it."""
        self._loop.call_soon(self._due)

    def schedule(self) -> None:
        """Wake when time alone would change something. The holder's keys only put that off.

        A moment once waited for is not let go before it was acted on: asked a little later, when it
        has just passed, the session names only what comes after it."""
        due = self._live.core.wakes_at(now())
        if self._awaited is not None and (due is None or self._awaited < due):
            due = self._awaited
        self._awaited = due
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due is not None and self._live.core.ending is None:
            self._timer = self._loop.call_later(max(0.05, due - now()), self._due)

    def _due(self) -> None:
        self._timer, awaited = None, self._awaited
        if self._live.is_over:
            return
        if awaited is not None and awaited <= now():  # timers go by another clock: it may be early
            self._awaited = None
        self._live.handle(ev.TimePassed(HOST_ACTOR, now()))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
