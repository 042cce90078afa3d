"""Requests about the turn, seize, halt and resume: each becomes one event."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from holdfast.core import events as ev
from holdfast.core.session import SessionMachine, TurnStep
from holdfast.core.turn import events as steps
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.session.halt_control import HaltControl
from holdfast.host.session.lease import SessionLease
from holdfast.host.session.presence import Presence
from holdfast.host.session.turn_notices import TurnNotices
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import TURN_TEXT_MAX_CHARS
from holdfast.model.turn_info import Receipt
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages


class TurnTarget(Protocol):
    """A live session, as far as its turn and its halt are concerned."""

    core: SessionMachine
    turning: TurnNotices
    halts: HaltControl
    presence: Presence
    leasing: SessionLease | None  # None: it is pinned to its host

    def handle(self, event: ev.SessionEvent) -> object: ...


class TurnRequests:
    """Handlers of one host."""

    def __init__(self, actors: ActorBook) -> None:
        self._actors = actors

    # -- the turn -----------------------------------------------------------------------------

    def turn(
        self, operator: OperatorConnection, request: turn_messages.GetTurn, live: TurnTarget
    ) -> m.Answer:
        return self._shown(request.id, operator, live)

    def step(
        self, operator: OperatorConnection, request: _StepRequest, live: TurnTarget
    ) -> m.Answer:
        """One row for every request that is one step of the turn machine."""
        step = self._step_of(operator, request)
        live.presence.note_connection(operator)
        live.handle(TurnStep(operator.actor.id, now(), step))
        return self._shown(request.id, operator, live)

    def _step_of(self, operator: OperatorConnection, request: _StepRequest) -> steps.TurnEvent:
        actor, at = operator.actor.id, now()
        match request:
            case turn_messages.RequestTurn():
                if request.renew:
                    return steps.RenewStep(actor, at, request.hold_s)
                return steps.RequestStep(actor, at, request.message, hold_s=request.hold_s)
            case turn_messages.WithdrawTurn():
                return steps.WithdrawStep(actor)
            case turn_messages.GrantTurn():
                to = self._actors.find(operator.actor, request.to).id if request.to else None
                return steps.GrantStep(actor, to, at)
            case turn_messages.YieldTurn():
                return steps.YieldStep(actor, at)
            case turn_messages.HandOffTurn():
                to = self._actors.find(operator.actor, request.to).id
                return steps.HandOff(actor, to, at, request.message)
            case turn_messages.RevokeTurn():
                return steps.RevokeStep(actor, at, request.reason)
            case turn_messages.SetBlind():
                return steps.BlindStep(actor, request.blind)

    def set_blind(
        self, operator: OperatorConnection, request: turn_messages.SetBlind, live: TurnTarget
    ) -> m.Answer:
        """A free turn is taken first: only its holder may hide what it types."""
        if request.blind and live.core.turn.holder is None:
            asked = steps.RequestStep(operator.actor.id, now())
            live.handle(TurnStep(operator.actor.id, now(), asked))
        return self.step(operator, request, live)

    def set_turn_policy(
        self, operator: OperatorConnection, request: turn_messages.SetTurnPolicy, live: TurnTarget
    ) -> m.Answer:
        live.handle(ev.PolicyAsked(operator.actor.id, now(), request.policy))
        return self._shown(request.id, operator, live)

    def _shown(self, request: int, operator: OperatorConnection, live: TurnTarget) -> m.Answer:
        return turn_messages.TurnShown(
            request, live.turning.info(), live.core.turn.holder == operator.actor.id
        )

    # -- seize and halt -----------------------------------------------------------------------

    def seize(
        self, operator: OperatorConnection, request: turn_messages.Seize, live: TurnTarget
    ) -> Awaitable[m.Answer]:
        actor = operator.actor.id
        only = self._only(operator, live, request.only_actor)
        live.presence.note_connection(operator)
        receipt = live.turning.receipt(only or ("session" if request.halt else ""))
        live.handle(ev.SeizeAsked(actor, now(), request.reason, request.halt, only))
        return self._halted(request.id, live, receipt)

    def halt(
        self, operator: OperatorConnection, request: turn_messages.Halt, live: TurnTarget
    ) -> Awaitable[m.Answer]:
        actor = operator.actor.id
        only = self._only(operator, live, request.only_actor)
        receipt = live.turning.receipt(only or "session")
        live.handle(ev.HaltAsked(actor, now(), request.reason, only))
        return self._halted(request.id, live, receipt)

    async def _halted(self, request: int, live: TurnTarget, receipt: Receipt) -> m.Answer:
        return turn_messages.Halted(request, await live.halts.complete_receipt(receipt))

    def resume(
        self, operator: OperatorConnection, request: turn_messages.Resume, live: TurnTarget
    ) -> Awaitable[m.Answer]:
        if request.force_lease:
            return self._force_lease(operator, live, request)
        live.handle(ev.ResumeAsked(operator.actor.id, now()))

        async def resumed() -> m.Answer:
            await live.halts.resumed()
            return m.Done(request.id)

        return resumed()

    def _force_lease(
        self, operator: OperatorConnection, live: TurnTarget, request: turn_messages.Resume
    ) -> Awaitable[m.Answer]:
        actor, leasing = operator.actor.id, live.leasing
        live.core.check_may_force_lease(actor, now())
        if leasing is None:
            raise InvalidArgument("the session is pinned to its host, and has no lease to force")

        async def forced() -> m.Answer:
            await leasing.force(actor, request.force_lease[:TURN_TEXT_MAX_CHARS])
            return m.Done(request.id)

        return forced()

    def _only(self, operator: OperatorConnection, live: TurnTarget, name: str) -> str:
        if not name:
            return ""
        live.halts.check_leaves()
        return self._actors.find(operator.actor, name).id


_StepRequest = (
    turn_messages.RequestTurn
    | turn_messages.WithdrawTurn
    | turn_messages.GrantTurn
    | turn_messages.YieldTurn
    | turn_messages.HandOffTurn
    | turn_messages.RevokeTurn
    | turn_messages.SetBlind
)
