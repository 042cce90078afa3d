"""The one mutator of a session: an event in, effects out.

Everything done to a session by anybody comes through `Session.handle`, one event at a time, and
so has one order (A1, A3). Each is judged here, at that moment, against the envelopes as they are
then (A2) and against the turn. A refused event raises a typed error and changes nothing. Bulk
output does not come here: PTY -> ring -> operators is its own short path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.attachments import Attachments, Seat
from holdfast.core.events import TurnStep as TurnStep
from holdfast.core.forwards import Forwards
from holdfast.core.input_machine import Intake, Swift
from holdfast.core.session_state import TRANSITIONS, Phase, StateStep
from holdfast.core.turn import events as turn
from holdfast.core.turn.machine import TurnMachine
from holdfast.core.turn.policy import policy
from holdfast.model.envelope import Right
from holdfast.model.errors import Fenced, NotPermitted, SessionEnded, SessionHalted
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId, SessionId
from holdfast.model.size import Size
from holdfast.model.state import Ending


class SessionMachine:
    """Lifecycle, attachments, authority, turn and intake of one incarnation."""

    def __init__(
        self,
        session: SessionId,
        labels: tuple[str, ...],
        size: Size,
        authority: Authority,
        held: TurnMachine,
        taken: dict[OperatorId, int] | None = None,
        *,
        halted: bool = False,
        halted_actors: frozenset[str] = frozenset(),
        fenced: bool = False,
    ) -> None:
        self.id = session
        self.labels = labels
        self.phase = Phase.RUNNING
        self.size = size
        self.halted = halted  # asked for: input is refused from that moment on
        self.frozen = halted  # and confirmed by the kernel
        self.fenced = fenced  # its lease is lost: nothing may be done here but to end it
        self.halted_actors = halted_actors  # whose processes alone are
        self.ending: Ending | None = None
        self.attachments = Attachments()
        self.attachments.turn_with(held.holder or HOST_ACTOR)
        self.authority = authority
        self.forwards = Forwards(session, labels, authority)
        self.turn = held
        self.intake = Intake(taken or {})
        self.swift: Swift | None = None

    def handle(self, event: ev.SessionEvent) -> list[ev.Effect]:
        """The only way in."""
        self.swift = None
        if self.fenced and isinstance(event, _ACTS):
            raise Fenced(
                "this host lost the session's lease; what runs here is frozen",
                hint="`hold show` says how it stands; it may live on another host",
            )
        return _HANDLERS[type(event)](self, event)

    # -- coming and going -----------------------------------------------------------------------

    def _opened(self, event: ev.ChannelOpened) -> list[ev.Effect]:
        self._check(event.actor, Right.OBSERVE, event.now)
        if not event.seat.observe:
            self._check(event.actor, Right.INPUT, event.now)
        if event.size is not None:
            event.size.checked()
        self.turn.handle(turn.Return(ActorId(event.actor)))
        before = self.attachments.answerer
        self.attachments.open(event.seat, event.size)
        resized = self._resize_for(event.actor) if event.size is not None else []
        return [*resized, *self._answerer_since(before), ev.AnnounceOperators()]

    def _left(self, event: ev.ChannelClosed) -> list[ev.Effect]:
        before = self.attachments.answerer
        if self.attachments.close(event.operator, event.channel) is None:
            return []
        return [*self._answerer_since(before), ev.AnnounceOperators()]

    def _gone(self, event: ev.ActorDisconnected) -> list[ev.Effect]:
        return self._turn(turn.LeaveStep(ActorId(event.actor), event.now))

    # -- input ----------------------------------------------------------------------------------

    def _offered(self, event: ev.InputOffered) -> list[ev.Effect]:
        actor, operator, seq, size = event.actor, event.operator, event.seq, len(event.data)
        if not self.intake.is_new(operator, seq, size):
            return [ev.Repeat(operator, seq)]
        took = self._write(actor, operator, Right.INPUT, event.now, size)
        self.intake.offer(operator, seq, size)
        before = self.attachments.answerer
        if self.attachments.latest != operator:
            self.attachments.typed(operator)
            took += self._resize_for(actor)
        if actor != HOST_ACTOR:
            self._remember_swift(actor, operator, event.now)
        take = ev.Take(actor, operator, seq, event.data, event.form, event.intent)
        return [*took, *self._answerer_since(before), take]

    def next_at_once(self, operator: OperatorId, now: float) -> int:
        """The number of the key press for which the only effect of `handle(Offered)` would be to
        take it; `took_at_once` follows if it comes. 0 decides nothing: ask `handle`."""
        swift = self.swift
        if swift is None or swift.operator != operator or not self.still(swift, now):
            return 0
        return self.intake.next(operator) if self.turn.may_write(swift.actor) else 0

    def still(self, swift: Swift, now: float) -> bool:
        """Whether nothing has happened since, but the keys of that operator."""
        current = swift is self.swift and swift.version == self.authority.version
        return current and now < swift.until

    def took_at_once(self, operator: OperatorId, seq: int, now: float) -> None:
        """The key press of this number is taken."""
        self.intake.take_next(operator, seq)
        self.turn.wrote_at_once(now)

    def _remember_swift(self, actor: str, operator: OperatorId, now: float) -> None:
        """Everything but the sequence is as it should be: until something happens, it stays so."""
        allowance = self.authority.allowance(ActorId(actor), self.id, self.labels, now)
        if allowance.limits is None:
            until, version = allowance.valid_until, allowance.version
            self.swift = Swift(operator, ActorId(actor), until, version)

    def _size_asked(self, event: ev.SizeAsked) -> list[ev.Effect]:
        event.size.checked()
        if event.channel is not None:
            before = self.attachments.answerer
            self.attachments.has_size(event.operator, event.channel, event.size)
            return [*self._resize_for(event.actor), *self._answerer_since(before)]
        took = self._write(event.actor, event.operator, Right.RESIZE, event.now)
        return [*took, *self._resize(event.size)]

    def _signal_asked(self, event: ev.SignalAsked) -> list[ev.Effect]:
        took = self._write(event.actor, event.operator, Right.SIGNAL, event.now)
        return [*took, ev.SendSignal(event.signal)]

    def _nudged(self, _event: ev.RepaintAsked) -> list[ev.Effect]:
        return [] if self.stands_still or self.ending else [ev.Repaint()]

    def _write(
        self, actor: str, operator: OperatorId, right: Right, now: float, size: int = 0
    ) -> list[ev.Effect]:
        """Raise unless this actor may write now, and then the turn is its own: a free one is taken
        by writing. The host's own answers need no turn."""
        if operator in self.attachments.only_observing:
            raise NotPermitted(
                "this operator only observes", hint="attach without --observe to write"
            )
        self._alive()
        if actor != HOST_ACTOR:
            self._check(actor, right, now)
        self.check_runs(actor)
        if actor == HOST_ACTOR:
            return []
        if not self.turn.may_write(ActorId(actor)):
            self._check(actor, Right.TURN_REQUEST, now)
        allowance = self.authority.allowance(ActorId(actor), self.id, self.labels, now)
        if allowance.limits is not None:
            self.authority.charge(ActorId(actor), self.id, allowance.limits, size, now)
        return self._turn(turn.WroteStep(ActorId(actor), now))

    def check_runs(self, actor: str) -> None:
        """Raise if what this actor says would only be taken when a halt is over."""
        if self.halted or actor in self.halted_actors:
            raise SessionHalted(
                f"{'what you started here' if not self.halted else 'the session'} is halted; input "
                "is refused, not kept for later",
                hint="`hold resume` lets it run on",
            )

    def _forward_asked(self, event: ev.ForwardAsked) -> list[ev.Effect]:
        self._alive()
        self.forwards.judge(event)
        self.check_runs(event.actor)
        return self.forwards.open(event)

    # -- the turn -------------------------------------------------------------------------------

    def _turn_step(self, event: TurnStep) -> list[ev.Effect]:
        self._alive()
        step = event.step
        right = turn.RIGHTS.get(type(step))
        if right is not None and event.actor != HOST_ACTOR:
            self._check(event.actor, right, event.now)
        if isinstance(step, turn.RequestStep):
            self._check(event.actor, Right.INPUT, event.now)
        if isinstance(step, turn.GrantStep | turn.HandOff) and step.to is not None:
            self._check(step.to, Right.INPUT, event.now)
        return self._turn(step)

    def _turn(self, step: turn.TurnEvent) -> list[ev.Effect]:
        blind, before = self.turn.blind, self.attachments.answerer
        outcomes = self.turn.handle(step)
        if not outcomes:
            return []
        news: list[ev.Effect] = [ev.TurnNotice(outcome) for outcome in outcomes]
        sight: list[ev.Effect] = []
        if blind is not self.turn.blind:
            sight = [ev.SetBlindOutput(self.turn.blind)]
        holder = self.turn.holder or HOST_ACTOR
        self.attachments.turn_with(holder)
        # The size moves with the turn.
        return [*sight, *news, *self._resize_for(holder), *self._answerer_since(before)]

    def _policy_asked(self, event: ev.PolicyAsked) -> list[ev.Effect]:
        self._alive()
        self._check(event.actor, Right.GRANT, event.now)
        self.turn.policy = policy(event.policy)
        return self._turn(turn.TurnTick(event.now))

    def tick(self, now: float) -> list[ev.Effect]:
        """Time has passed: an idle holder may have lost the turn, an envelope may have ended."""
        self.swift = None
        if self.phase is Phase.ENDED:
            return []
        return [*self._turn(turn.TurnTick(now)), *self._without_rights(HOST_ACTOR, now)]

    def wakes_at(self, now: float) -> float | None:
        """When `tick` would do something, if nothing else happens."""
        actors = {seat.actor for seat in self.attachments.seats()}
        actors |= {self.turn.holder or HOST_ACTOR, *(one.actor for one in self.turn.queue)}
        actors |= self.forwards.actors()
        ends = [
            self.authority.standing(ActorId(actor), self.id, self.labels, now).valid_until
            for actor in actors - {HOST_ACTOR}
        ]
        due = self.turn.wakes_at()
        return min((at for at in (*ends, due) if at is not None and at != _NEVER), default=None)

    # -- halt -----------------------------------------------------------------------------------

    def _seize_asked(self, event: ev.SeizeAsked) -> list[ev.Effect]:
        self._alive()
        self._check(event.actor, Right.SEIZE, event.now)
        if event.halt or event.only:
            self._check(event.actor, Right.HALT, event.now)
        seized = self._turn(turn.SeizeTurn(ActorId(event.actor), event.now, event.reason))
        return [*seized, *(self._halt(event) if event.halt or event.only else [])]

    def _halt_asked(self, event: ev.HaltAsked) -> list[ev.Effect]:
        self._alive()
        self._check(event.actor, Right.HALT, event.now)
        return self._halt(event)

    def _halt(self, event: ev.SeizeAsked | ev.HaltAsked) -> list[ev.Effect]:
        if event.only:
            self.halted_actors |= {event.only}
        else:
            self.halted = True
        return [ev.Freeze(event.only, event.reason)]

    def _resume_asked(self, event: ev.ResumeAsked) -> list[ev.Effect]:
        self._alive()
        self._check(event.actor, Right.HALT, event.now)
        return [ev.Thaw()]

    def _froze(self, event: ev.FreezeReported) -> list[ev.Effect]:
        self.frozen = event.frozen
        return [ev.AnnounceOperators()]

    def _thawed(self, _event: ev.Thawed) -> list[ev.Effect]:
        self.halted = self.frozen = False
        self.halted_actors = frozenset()
        return [ev.AnnounceOperators()]

    # -- lease ----------------------------------------------------------------------------------

    @property
    def stands_still(self) -> bool:
        return self.halted or self.fenced

    def _lease_lost(self, event: ev.LeaseLost) -> list[ev.Effect]:
        if self.fenced or self.phase is Phase.ENDED:
            return []
        self.fenced = True
        return [ev.Fence(event.cause), ev.AnnounceOperators(), *self.forwards.fenced()]

    def _lease_held(self, event: ev.LeaseHeld) -> list[ev.Effect]:
        if not self.fenced or self.phase is not Phase.RUNNING:  # what ends does not run again
            return []
        self.fenced = False
        return [ev.Unfence(event.epoch), ev.AnnounceOperators()]

    # -- authority ------------------------------------------------------------------------------

    def _check(self, actor: str, right: Right, now: float) -> None:
        self.authority.check(ActorId(actor), right, self.id, self.labels, now)

    def _authority_changed(self, event: ev.AuthorityChanged) -> list[ev.Effect]:
        return self._without_rights(event.actor, event.now)

    def _without_rights(self, by: str, now: float) -> list[ev.Effect]:
        """Take the turn from a holder that may not write any more, a place in the queue from who
        may not wait, the view from who may not watch, a connection from who may not have it."""
        effects: list[ev.Effect] = []
        holder = self.turn.holder
        if holder and Right.INPUT not in self._standing(holder, now):
            effects += self._turn(turn.RevokeStep(by, now, "its envelope does not allow it now"))
        for waiting in self.turn.queue:
            if not {Right.INPUT, Right.TURN_REQUEST} <= self._standing(waiting.actor, now):
                effects += self._turn(turn.WithdrawStep(waiting.actor))
        for seat in self.attachments.seats():
            allowed = self._rights(seat.actor, now)
            if Right.OBSERVE not in allowed or not (seat.observe or Right.INPUT in allowed):
                effects.append(ev.DismissOperator(seat.operator, seat.channel))
        return effects + self.forwards.without_rights(now)

    def _rights(self, actor: str, now: float) -> frozenset[Right]:
        return self.authority.rights(ActorId(actor), self.id, self.labels, now)

    def _standing(self, actor: str, now: float) -> frozenset[Right]:
        return self.authority.standing(ActorId(actor), self.id, self.labels, now).rights

    # -- size, and the end ------------------------------------------------------------------------

    def _resize_for(self, actor: str) -> list[ev.Effect]:
        """The size of this actor's terminal becomes the canonical one, if the turn is its own or
        nobody's."""
        size = self.attachments.size_of(actor)
        if size is None or self.turn.holder not in (actor, None):
            return []
        return self._resize(size)

    def _resize(self, size: Size) -> list[ev.Effect]:
        if size == self.size or self.phase is Phase.ENDED:
            return []
        self.size = size
        return [ev.SetSize(size), ev.AnnounceOperators()]

    def _end_asked(self, event: ev.EndAsked) -> list[ev.Effect]:
        if event.actor != HOST_ACTOR:
            self._check(event.actor, Right.END, event.now)
        if self.phase is Phase.ENDED:
            return []
        self.phase = TRANSITIONS[self.phase, StateStep.END_ASKED]
        return [ev.EndTree()]

    def _main_ended(self, event: ev.MainEnded) -> list[ev.Effect]:
        ending = event.ending
        if self.phase is Phase.ENDED:
            return []
        step = StateStep.HOST_LOST if ending.lost is not None else StateStep.MAIN_ENDED
        self.phase = TRANSITIONS[self.phase, step]
        self.ending = ending
        return [ev.CloseEnded(ending)]

    def _answerer_since(self, before: Seat | None) -> list[ev.Effect]:
        now = self.attachments.answerer
        return [] if now == before else [ev.SetAnswerer(now)]

    def _alive(self) -> None:
        if self.phase is Phase.ENDED:
            raise SessionEnded(f"the session has ended: {self.ending}")


_NEVER = float("inf")
# What a fenced incarnation refuses: all that somebody does to it, but to stop or to end it.
_ACTS = (
    *(ev.InputOffered, ev.ChannelOpened, ev.SizeAsked, ev.SignalAsked, ev.PolicyAsked),
    *(ev.SeizeAsked, ev.ResumeAsked, ev.ForwardAsked, TurnStep),
)

_HANDLERS: dict[type[ev.SessionEvent], Callable[[SessionMachine, Any], list[ev.Effect]]] = {
    ev.InputOffered: SessionMachine._offered,
    ev.ChannelOpened: SessionMachine._opened,
    ev.ChannelClosed: SessionMachine._left,
    ev.ActorDisconnected: SessionMachine._gone,
    ev.SizeAsked: SessionMachine._size_asked,
    ev.SignalAsked: SessionMachine._signal_asked,
    ev.RepaintAsked: SessionMachine._nudged,
    ev.PolicyAsked: SessionMachine._policy_asked,
    ev.SeizeAsked: SessionMachine._seize_asked,
    ev.HaltAsked: SessionMachine._halt_asked,
    ev.ResumeAsked: SessionMachine._resume_asked,
    ev.FreezeReported: SessionMachine._froze,
    ev.Thawed: SessionMachine._thawed,
    ev.LeaseLost: SessionMachine._lease_lost,
    ev.LeaseHeld: SessionMachine._lease_held,
    ev.AuthorityChanged: SessionMachine._authority_changed,
    ev.EndAsked: SessionMachine._end_asked,
    ev.MainEnded: SessionMachine._main_ended,
    ev.ForwardAsked: SessionMachine._forward_asked,
    ev.ForwardLeft: lambda self, event: self.forwards.close(event),
    TurnStep: SessionMachine._turn_step,
}
