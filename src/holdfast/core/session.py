"""The one mutator of a session: an event in, effects out.

Everything done to a session by anybody comes through `SessionMachine.handle`, one event at a time,
and so has one order (A1, A3). Each is judged here, at that moment, against the envelopes as they
are then (A2) and against the turn. A refused event raises a typed error and changes nothing. Bulk
output does not come here: PTY -> ring -> operators is its own short path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.attachments import Attachments, Seat
from holdfast.core.events import TurnStep as TurnStep
from holdfast.core.forwards import Forwards
from holdfast.core.gate.approvals import Approval, Approvals, ApprovalStatus
from holdfast.core.gate.commit_bytes import interrupts
from holdfast.core.gate.gated_input import GatedInput, SavedGatedInput, Stage
from holdfast.core.gate.verdicts import refusal_text
from holdfast.core.input_machine import InputMachine
from holdfast.core.session_state import RUNNING, State, StateStep
from holdfast.core.turn import events as turn
from holdfast.core.turn.machine import TurnMachine
from holdfast.core.turn.policy import policy
from holdfast.model.checkpoint import Waking
from holdfast.model.envelope import Right
from holdfast.model.errors import (
    CheckpointFailed,
    Fenced,
    GateHeld,
    GateRefused,
    HoldfastError,
    NotPermitted,
    SessionHalted,
    SessionMoving,
    TurnHeld,
    session_over,
)
from holdfast.model.gate import EffectKind, Outcome, ProposedEffect, Verdict
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId, SessionId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending, signal_name

RESIZED = "WINCH"  # the signal that a new size is judged as


class _Decision(NamedTuple):
    """The last input that was judged and found to change nothing but what is typed. It holds for
    the next key of the same operator, until anything else happens."""

    operator: OperatorId
    actor: ActorId
    until: float
    version: int  # of the authority


_ONLY_IF_ASKED = Waking()


class SavedGate(Record):
    """What waits at the gate of one session, to carry over a daemon's restart."""

    input: SavedGatedInput | None = None
    held_by: str = ""  # the approval that its commit waits for
    approvals: tuple[Approval, ...] = ()
    released: Approval | None = None  # the commit of `released_number` was approved by these
    released_number: int = 0
    walked_history: bool = True  # keys may have fetched it from the shell's history


class Passing(Record):
    """A commit that was judged and may be taken."""

    number: int
    effect: ProposedEffect
    verdict: Verdict


class SessionMachine:
    """State, attachments, authority, turn and inputs of one incarnation."""

    def __init__(
        self,
        session: SessionId,
        labels: tuple[str, ...],
        size: Size,
        authority: Authority,
        held: TurnMachine,
        in_custody: dict[OperatorId, int] | None = None,
        *,
        state: State = RUNNING,
        halted_actors: frozenset[str] = frozenset(),
        in_force: Callable[[], bool] | None = None,
        gate: SavedGate | None = None,
        now: float = 0.0,
        pinned: bool = False,
        keys_rebound: Callable[[], bool] = lambda: False,
        resize_runs: Callable[[], bool] = lambda: False,
        asleep_in: str = "",
        waking: Waking = _ONLY_IF_ASKED,
    ) -> None:
        """`in_force`: whether a policy applies here; `gate`: what waited at the gate;
        `keys_rebound`: whether keys at the prompt may do anything; `resize_runs`: whether somebody
        made the shell run something when its terminal gets another size; `asleep_in`: the
        checkpoint with which the tree is being ended."""
        self.id = session
        self.labels = labels
        self.state = state
        self.size = size
        self.halted_actors = halted_actors  # whose processes alone are
        self._resuming_actors: frozenset[str] = frozenset()  # those, when a resume was asked for
        self.pinned = pinned  # it is not reaped (core.continuity.idle)
        self.ending: Ending | None = None
        self.asleep_in, self.waking = asleep_in, waking
        self.attachments = Attachments()
        self.attachments.turn_with(held.holder or HOST_ACTOR)
        self.authority = authority
        self.forwards = Forwards(session, labels, authority)
        self.turn = held
        gate = gate or SavedGate()
        self.inputs = InputMachine(in_custody or {}, in_force, gate.input, now, keys_rebound)
        # Until it is known what became of that.
        self.inputs.paused = bool(asleep_in) or state.is_checkpointing or state.is_moving
        self._resize_runs = resize_runs
        self.approvals = Approvals(gate.approvals)
        self._held_by = gate.held_by if self.inputs.gated is not None else ""
        self._released, self._released_number = gate.released, gate.released_number
        self.passing: Passing | None = None  # to be recorded before it is taken
        if (gated := self.inputs.gated) is not None and self.approvals.get(self._held_by):
            gated.stage = Stage.APPROVAL
        self._decision: _Decision | None = None

    def handle(self, event: ev.SessionEvent) -> list[do.Effect]:
        """The only way in."""
        if type(event) is not ev.InputOffered:
            self._decision = None
            if self.state.is_fenced and isinstance(event, REFUSED_WHEN_FENCED):
                raise _fenced()
            if self.state.is_moving and isinstance(event, REFUSED_WHEN_MOVING):
                raise _moving()
        return _HANDLERS[type(event)](self, event)

    def _step(self, step: StateStep) -> None:
        self.state = self.state.after(step)

    # -- coming and going -----------------------------------------------------------------------

    def _opened(self, event: ev.ChannelOpened) -> list[do.Effect]:
        self._check(event.actor, Right.OBSERVE, event.now)
        if not event.seat.observe:
            self._check(event.actor, Right.INPUT, event.now)
        if event.size is not None:
            event.size.checked()
        self.turn.handle(turn.Return(ActorId(event.actor)))
        before = self.attachments.answerer
        self.attachments.open(event.seat, event.size)
        resized = self._resize_for(event.actor) if event.size is not None else []
        answerer = self._answerer_since(before)
        return [*resized, *answerer, do.AnnounceOperators(), do.ScheduleTick()]

    def _left(self, event: ev.ChannelClosed) -> list[do.Effect]:
        before = self.attachments.answerer
        if self.attachments.close(event.operator, event.channel) is None:
            return []
        return [*self._answerer_since(before), do.AnnounceOperators()]

    def _gone(self, event: ev.ActorDisconnected) -> list[do.Effect]:
        return self._turn(turn.LeaveStep(ActorId(event.actor), event.now), event.actor)

    # -- input ----------------------------------------------------------------------------------

    def _offered(self, event: ev.InputOffered) -> list[do.Effect]:
        if self.state.is_fenced:
            raise _fenced()
        if not self.inputs.is_new(event):
            return [do.Repeat(event.operator, event.seq)]
        if self.inputs.gated is not None and event.actor != HOST_ACTOR:
            return self._offered_behind_gate(event, self.inputs.gated)
        took = self._judged(event)
        self.inputs.offer(event)
        took.append(_TAKE)
        return took

    def _offered_behind_gate(self, event: ev.InputOffered, gated: GatedInput) -> list[do.Effect]:
        """Something waits at the gate: ^C takes it back; behind what waits for approval nothing of
        its own actor is kept."""
        withdraws = interrupts(event.data)
        if event.actor == gated.whole.actor and self._held_by and not withdraws:
            raise GateHeld(
                "the line before it waits for approval",
                hint=f"{self._waits_for()}; ^C withdraws it",
            )
        took = self._judged(event)  # if that moves the turn, nothing waits there any more
        if withdraws:
            withdrawn = GateRefused(f"{self.authority.name(ActorId(event.actor))} withdrew it")
            took += self._refused(lambda waiting: waiting.actor != HOST_ACTOR, withdrawn)
        self.inputs.offer(event)
        took.append(_TAKE)
        return took

    def _judged(self, event: ev.InputOffered) -> list[do.Effect]:
        """What comes of this input besides being taken; raises if it is not allowed."""
        actor, operator, now, decided = event.actor, event.operator, event.now, self._decision
        if (
            decided is not None
            and decided.operator == operator
            and decided.actor == actor
            and decided.version == self.authority.version
            and now < decided.until
            and self.turn.may_write(decided.actor)
        ):
            self.turn.wrote(now)
            return []
        self._decision = None
        took = self._write(actor, operator, Right.INPUT, now, len(event.data))
        before = self.attachments.answerer
        if self.attachments.latest != operator:
            self.attachments.typed(operator)
            took += self._resize_for(actor)
        took += self._answerer_since(before)
        if actor != HOST_ACTOR and not took:
            allowance = self.authority.allowance(ActorId(actor), self.id, self.labels, now)
            if allowance.limits is None:  # else each input is charged
                until, version = allowance.valid_until, allowance.version
                self._decision = _Decision(operator, ActorId(actor), until, version)
        return took

    def _size_asked(self, event: ev.SizeAsked) -> list[do.Effect]:
        event.size.checked()
        if self._resize_runs():
            self._check_passed(event, EffectKind.SIGNAL, RESIZED)
        if event.channel is not None:
            before = self.attachments.answerer
            self.attachments.has_size(event.operator, event.channel, event.size)
            return [*self._resize_for(event.actor), *self._answerer_since(before)]
        took = self._write(event.actor, event.operator, Right.RESIZE, event.now)
        return [*took, *self._resize(event.size)]

    def _signal_asked(self, event: ev.SignalAsked) -> list[do.Effect]:
        self._check_passed(event, EffectKind.SIGNAL, signal_name(event.signal))
        took = self._write(event.actor, event.operator, Right.SIGNAL, event.now)
        return [*took, do.SendSignal(event.signal)]

    def _check_passed(
        self,
        event: ev.SizeAsked | ev.SignalAsked | ev.EndAsked | ev.CheckpointAsked,
        kind: EffectKind,
        text: str,
    ) -> None:
        """While a policy is in force, nothing that it was not asked about happens: whoever hands in
        such an event has to ask first (host/gate/session_gate.py)."""
        if event.actor == HOST_ACTOR or not self.inputs.policy_in_force:
            return
        passed = event.passed
        if passed is not None and passed.verdict.outcome is Outcome.ALLOW:
            effect = passed.effect
            judged = effect.session, effect.actor, effect.kind, effect.text
            if judged == (self.id, event.actor, kind, text):
                return
        raise GateRefused("no policy was asked about it", hint="`hold policy show` lists them")

    def _write(
        self, actor: str, operator: OperatorId, right: Right, now: float, size: int = 0
    ) -> list[do.Effect]:
        """Raise unless this actor may write now, and then the turn is its own: a free one is taken
        by writing. The host's own answers need no turn."""
        if operator in self.attachments.only_observing:
            raise NotPermitted(
                "this operator only observes", hint="attach without --observe to write"
            )
        self._alive()
        if actor != HOST_ACTOR:
            self._check(actor, right, now)
        self.check_not_halted(actor)
        if actor == HOST_ACTOR:
            return []
        if not self.turn.may_write(ActorId(actor)):
            self._check(actor, Right.TURN_REQUEST, now)
        self.authority.charge(ActorId(actor), self.id, self.labels, size, now)
        return self._turn(turn.WroteStep(ActorId(actor), now), actor)

    def may_type(self, actor: str, now: float) -> bool:
        """Whether the host may type on this actor's behalf, to ask the shell something."""
        return Right.INPUT in self.authority.rights(ActorId(actor), self.id, self.labels, now)

    def check_not_halted(self, actor: str) -> None:
        """Raise if what this actor writes would only be read when a halt is over."""
        halted = self.state.is_halted
        if halted or actor in self.halted_actors:
            raise SessionHalted(
                f"{'the session' if halted else 'what you started here'} is halted; input is "
                "refused, not kept for later",
                hint="`hold resume` lets it run on",
            )

    def _refuse_waiting(self) -> list[do.Effect]:
        """What waits for custody was allowed before; refuse what is not any longer. What the host
        itself wants to type stays."""
        if self.state.is_over:
            return self._refused(
                lambda _: True,
                session_over("the session", self.ending, how="ended before it took the input"),
            )
        if self.state.is_fenced:
            lost = Fenced("the session's lease was lost before it took the input")
            return self._refused(lambda waiting: waiting.actor != HOST_ACTOR, lost)
        halted = SessionHalted("the session was halted before it took the input")
        if self.state.is_halted:
            return self._refused(lambda waiting: waiting.actor != HOST_ACTOR, halted)
        holder, gated = self.turn.holder, self.inputs.gated
        # A turn that is nobody's takes nothing away from who asked for approval and left.
        stays = None if holder is not None or gated is None else gated.whole
        moved = TurnHeld(
            f"{self.turn.name(holder)} holds the turn now; it moved before the input was taken",
            hint=f"`hold turn {self.turn.session} request` asks for it",
        )
        return [
            *self._refused(lambda waiting: waiting.actor in self.halted_actors, halted),
            *self._refused(
                lambda waiting: waiting.actor not in (HOST_ACTOR, holder) and waiting is not stays,
                moved,
            ),
        ]

    def _refused(
        self, which: Callable[[ev.InputOffered], bool], error: HoldfastError
    ) -> list[do.Effect]:
        gated = self.inputs.gated
        refused = self.inputs.refuse(which)
        if not refused:
            return []
        if gated is None or self.inputs.gated is not None:
            return [do.RefuseInputs(refused, error)]
        self.inputs.remember_refusal(gated.whole, error)
        closed = self._withdrawn(self._held_by)
        self._held_by, self.passing = "", None
        return [*closed, do.RefuseInputs(refused, error), do.SaveParcel(), do.ScheduleTick()]

    # -- the gate -------------------------------------------------------------------------------

    def gate_kept(self) -> SavedGate | None:
        """For the parcel; None while nothing waits."""
        gated, approvals = self.inputs.gated, self.approvals.pending
        if gated is None and not approvals:
            return None
        saved = None if gated is None else gated.saved()
        return SavedGate(saved, self._held_by, approvals, self._released, self._released_number)

    @property
    def held(self) -> Approval | None:
        """The approval that a line waits for."""
        return self.approvals.get(self._held_by)

    def released(self, number: int) -> Approval | None:
        """The approval by which the commit of this number was released, to be judged again."""
        return self._released if number == self._released_number else None

    def _waits_for(self) -> str:
        held = self.held
        if held is None:
            return "it is being judged"
        return f"`hold approve {held.id}` by {' or '.join(held.approvers) or 'somebody else'}"

    def _unjudged(self, number: int) -> GatedInput | None:
        gated = self.inputs.unjudged
        return gated if gated is not None and gated.number == number else None

    def _paste_checked(self, event: ev.PasteChecked) -> list[do.Effect]:
        gated = self._unjudged(event.number)
        if gated is None or gated.stage is not Stage.PASTE:
            return []
        gated.paste_is_text(event.is_text)
        return [_TAKE]

    def _commit_judged(self, event: ev.CommitJudged) -> list[do.Effect]:
        gated = self._unjudged(event.number)
        if gated is None or gated.stage is not Stage.COMMIT:
            return []  # it was refused meanwhile
        effect, verdict = event.effect, event.verdict
        try:
            if Right.INPUT not in self._standing(gated.whole.actor, event.now):
                self._check(gated.whole.actor, Right.INPUT, event.now)
            if verdict.outcome is Outcome.HOLD:
                return self._hold(event, gated)
        except HoldfastError as why:
            verdict = verdict.replace(outcome=Outcome.REFUSE, reason=why.message)
            return [do.RecordJudged(effect, verdict), *self._refuse_commit(gated, why, effect)]
        if verdict.outcome is Outcome.ALLOW:
            gated.stage = Stage.PASS
            self.passing = Passing(event.number, effect, verdict)
            return [_TAKE]
        refusal = GateRefused(
            refusal_text(verdict),
            hint=f"it is a policy of {verdict.policy}" if verdict.policy else "",
        )
        return [do.RecordJudged(effect, verdict), *self._refuse_commit(gated, refusal, effect)]

    def _hold(self, event: ev.CommitJudged, gated: GatedInput) -> list[do.Effect]:
        effect, verdict = event.effect, event.verdict
        approval = self.approvals.ask(
            event.approval, effect, verdict, event.now, event.expires_at, event.offset
        )
        gated.stage, self._held_by = Stage.APPROVAL, approval.id
        behind = GateHeld("the line before it waits for approval", hint=self._waits_for())
        return [
            do.RecordJudged(effect, verdict),
            do.AskApproval(approval, event.number),
            *self._refused(
                lambda waiting: waiting.actor == gated.whole.actor and waiting is not gated.whole,
                behind,
            ),
            do.SaveParcel(),
            do.AnswerHeld(gated.whole),
            do.ScheduleTick(),
        ]

    def _refuse_commit(
        self, gated: GatedInput, error: HoldfastError, effect: ProposedEffect | None = None
    ) -> list[do.Effect]:
        """It, and what its actor sent behind it, which would otherwise overtake it."""
        in_program = effect is not None and effect.kind is EffectKind.INPUT
        actor = gated.whole.actor
        refused = self._refused(lambda waiting: waiting.actor == actor, error)
        return [do.ClearLine(in_program), *refused, _TAKE]

    def _commit_failed(self, event: ev.CommitFailed) -> list[do.Effect]:
        gated = self.inputs.gated
        if gated is None or gated.number != event.number:
            return []
        return self._refuse_commit(gated, event.error)

    def _commit_waits(self, event: ev.CommitWaits) -> list[do.Effect]:
        gated = self._unjudged(event.number)
        return [] if gated is None else [do.SaveParcel(), do.AnswerHeld(gated.whole)]

    def _approval_decided(self, event: ev.ApprovalDecided) -> list[do.Effect]:
        self._alive()
        self._check(event.actor, Right.APPROVE, event.now)
        actor = self.authority.actor(ActorId(event.actor))
        assert actor is not None, "it has rights"
        decide = self.approvals.approve if event.approve else self.approvals.deny
        approval = decide(event.id, actor.id, actor.name, actor.kind)
        closed = do.CloseApproval(approval, event.actor, event.note, event.saw)
        if approval.id != self._held_by or approval.status is ApprovalStatus.PENDING:
            return [closed, do.SaveParcel(), do.ScheduleTick()]
        gated = self.inputs.gated
        assert gated is not None, "that is what waits for it"
        self._held_by = ""
        if approval.status is ApprovalStatus.APPROVED:
            gated.stage = Stage.COMMIT
            self._released, self._released_number = approval, gated.number
            return [closed, do.SaveParcel(), do.JudgeCommit(), do.ScheduleTick()]
        note = f": {event.note}" if event.note else ""
        return [closed, *self._refuse_commit(gated, GateRefused(f"{actor.name} denied it{note}"))]

    def _effect_held(self, event: ev.EffectHeld) -> list[do.Effect]:
        """Not a line: whoever asked waits for the decision."""
        self._alive()
        approval = self.approvals.ask(
            event.id, event.effect, event.verdict, event.now, event.expires_at, event.offset
        )
        judged = do.RecordJudged(event.effect, event.verdict)
        return [judged, do.AskApproval(approval, 0), do.SaveParcel(), do.ScheduleTick()]

    def _effect_dropped(self, event: ev.EffectDropped) -> list[do.Effect]:
        closed = self._withdrawn(event.id)
        return [*closed, do.SaveParcel(), do.ScheduleTick()] if closed else []

    def _decided_in_another_life(self, event: ev.DecidedInAnotherLife) -> list[do.Effect]:
        """What was approved there has happened, and what was denied was to stay so: what waits here
        for the same decision is refused. Whoever wants it asks again."""
        gated = self.inputs.gated
        if gated is not None and event.id == self._held_by:
            error = GateRefused(
                "it was decided on after the checkpoint that the session was restored from",
                hint="enter it again to ask again",
            )
            return self._refuse_commit(gated, error)
        closed = self._withdrawn(event.id)
        return [*closed, do.SaveParcel(), do.ScheduleTick()] if closed else []

    def _withdrawn(self, id: str) -> list[do.Effect]:
        approval = self.approvals.withdraw(id)
        return [] if approval is None else [do.CloseApproval(approval, HOST_ACTOR)]

    def _gate_policy_changed(self, event: ev.GatePolicyChanged) -> list[do.Effect]:
        """What waits for approval is judged by what is in force now."""
        gated = self.inputs.awaits_approval
        if gated is None:
            return []
        closed, self._held_by = self._withdrawn(self._held_by), ""
        gated.stage = Stage.COMMIT
        return [*closed, do.SaveParcel(), do.JudgeCommit(), do.ScheduleTick()]

    def _approvals_expired(self, now: float) -> list[do.Effect]:
        steps: list[do.Effect] = []
        for approval in self.approvals.expire(now):
            steps.append(do.CloseApproval(approval, HOST_ACTOR))
            gated = self.inputs.awaits_approval
            if approval.id == self._held_by and gated is not None:
                self._held_by = ""
                steps += self._refuse_commit(gated, GateRefused("nobody approved it in time"))
            steps.append(do.SaveParcel())
        return steps

    def _forward_asked(self, event: ev.ForwardAsked) -> list[do.Effect]:
        self._alive()
        self.forwards.judge(event)
        self.check_not_halted(event.actor)
        return [*self.forwards.open(event), do.ScheduleTick()]

    # -- the turn -------------------------------------------------------------------------------

    def _turn_step(self, event: TurnStep) -> list[do.Effect]:
        self._alive()
        step = event.step
        right = turn.RIGHTS.get(type(step))
        if right is not None and event.actor != HOST_ACTOR:
            self._check(event.actor, right, event.now)
        if isinstance(step, turn.RequestStep | turn.RenewStep):
            self._check(event.actor, Right.INPUT, event.now)
        if isinstance(step, turn.GrantStep | turn.HandOff) and step.to is not None:
            self._check(step.to, Right.INPUT, event.now)
        return self._turn(step, event.actor)

    def _turn(self, step: turn.TurnEvent, by: str) -> list[do.Effect]:
        """Recorded first, then saved, then announced; the size moves with the turn."""
        blind, before = self.turn.blind, self.attachments.answerer
        declared = self.turn.explicit, self.turn.held_until
        outcomes = self.turn.handle(step)
        if not outcomes:
            changed = declared != (self.turn.explicit, self.turn.held_until)
            return [do.SaveParcel(), do.ScheduleTick()] if changed else []
        steps: list[do.Effect] = []
        for outcome in outcomes:
            steps.append(do.RecordTurn(outcome, by))
            if isinstance(outcome, turn.Moved):
                steps += self._refuse_waiting()
                if outcome.before:
                    steps.append(do.NoteTurnGivenUp(outcome.before))
        steps.append(do.SaveParcel())
        if blind is not self.turn.blind:
            steps.append(do.SetBlindOutput(self.turn.blind))
        steps += [do.NotifyTurn(outcome, by) for outcome in outcomes]
        holder = self.turn.holder or HOST_ACTOR
        self.attachments.turn_with(holder)
        sized = self._resize_for(holder)
        return [*steps, *sized, *self._answerer_since(before), do.ScheduleTick()]

    def _policy_asked(self, event: ev.PolicyAsked) -> list[do.Effect]:
        self._alive()
        self._check(event.actor, Right.GRANT, event.now)
        self.turn.policy = policy(event.policy)
        moved = self._turn(turn.TurnTick(event.now), event.actor)
        return [do.RecordPolicy(event.policy), do.SaveParcel(), *moved, do.ScheduleTick()]

    def _command_runs(self, event: ev.CommandRuns) -> list[do.Effect]:
        self.turn.handle(turn.CommandStep(ActorId(event.by) if event.by else None, event.now))
        return [do.SaveParcel(), do.ScheduleTick()] if self.turn.explicit else []

    def _time_passed(self, event: ev.TimePassed) -> list[do.Effect]:
        """An idle holder may have lost the turn, an envelope may have ended."""
        if self.state.is_over or self.state.is_moving:
            return []
        moved = self._turn(turn.TurnTick(event.now), HOST_ACTOR)
        lost = self._without_rights(HOST_ACTOR, event.now)
        expired = self._approvals_expired(event.now)
        return [*moved, *lost, *expired, do.CheckFollowers(), do.ScheduleTick()]

    def wakes_at(self, now: float) -> float | None:
        """When TimePassed would do something, if nothing else happens."""
        actors = {seat.actor for seat in self.attachments.seats()}
        actors |= {self.turn.holder or HOST_ACTOR, *(one.actor for one in self.turn.queue)}
        actors |= self.forwards.actors()
        ends = [
            self.authority.allowance_while_away(
                ActorId(actor), self.id, self.labels, now
            ).valid_until
            for actor in actors - {HOST_ACTOR}
        ]
        due = self.turn.wakes_at(), self.approvals.next_expiry()
        return min((at for at in (*ends, *due) if at is not None and at != _NEVER), default=None)

    # -- halt -----------------------------------------------------------------------------------

    def _seize_asked(self, event: ev.SeizeAsked) -> list[do.Effect]:
        self._alive()
        self._check(event.actor, Right.SEIZE, event.now)
        if event.halt or event.only:
            self._check(event.actor, Right.HALT, event.now)
        actor = ActorId(event.actor)
        seized = self._turn(turn.SeizeTurn(actor, event.now, event.reason), actor)
        return [*seized, *(self._halt(event) if event.halt or event.only else [])]

    def _halt_asked(self, event: ev.HaltAsked) -> list[do.Effect]:
        self._alive()
        self._check(event.actor, Right.HALT, event.now)
        return self._halt(event)

    def _halt(self, event: ev.SeizeAsked | ev.HaltAsked) -> list[do.Effect]:
        if event.only:
            self.halted_actors |= {event.only}
            self._resuming_actors -= {event.only}
        else:
            self._step(StateStep.HALT_ASKED)
        recorded = do.RecordHalt(event.only, event.reason)
        return [recorded, *self._refuse_waiting(), do.SaveParcel(), do.Freeze(event.only)]

    def _resume_asked(self, event: ev.ResumeAsked) -> list[do.Effect]:
        self._alive()
        self._check(event.actor, Right.HALT, event.now)
        self._step(StateStep.RESUME_ASKED)
        self._resuming_actors = self.halted_actors
        return [do.Thaw()]

    def check_may_observe(self, actor: str, now: float) -> None:
        self._check(actor, Right.OBSERVE, now)

    def check_right(self, actor: str, right: Right, now: float) -> None:
        """Before a policy is asked about something that the actor may not do anyway."""
        self._alive()
        self._check(actor, right, now)

    def check_may_force_lease(self, actor: str, now: float) -> None:
        """To act without the lease's word that nobody else does: as grave as granting rights."""
        self._check(actor, Right.GRANT, now)

    def _froze(self, event: ev.FreezeReported) -> list[do.Effect]:
        self._step(StateStep.FREEZE_CONFIRMED if event.frozen else StateStep.FREEZE_FAILED)
        return [do.AnnounceOperators()]

    def _thawed(self, event: ev.Thawed) -> list[do.Effect]:
        self._step(StateStep.THAW_CONFIRMED if event.runs else StateStep.THAW_FAILED)
        if event.runs:
            self.halted_actors -= self._resuming_actors
        return [do.AnnounceOperators()]

    # -- checkpoints ----------------------------------------------------------------------------

    def _checkpoint_asked(self, event: ev.CheckpointAsked) -> list[do.Effect]:
        self._alive()
        if event.actor != HOST_ACTOR:
            self._check(event.actor, Right.CHECKPOINT, event.now)
            if event.ends:
                self._check(event.actor, Right.END, event.now)
        if self.state.is_checkpointing:
            raise CheckpointFailed("it is being checkpointed", hint="try again in a moment")
        if self.state.is_halted or self.halted_actors:
            raise SessionHalted(
                "what is halted cannot be checkpointed", hint="`hold resume` lets it run on"
            )
        self._check_passed(event, EffectKind.CHECKPOINT, "end" if event.ends else "")
        before = self.state
        self._step(StateStep.CHECKPOINT_ASKED)
        if self.state is before:
            raise CheckpointFailed(f"it is {before.phase}")
        self.inputs.paused = True
        return [do.HoldTyping()]

    def _checkpoint_stored(self, event: ev.CheckpointStored) -> list[do.Effect]:
        if not self.state.is_checkpointing:
            raise CheckpointFailed(f"it is {self.state.phase} by now, so it was not ended")
        self.asleep_in, self.waking = event.checkpoint, event.waking
        return [do.SaveParcel()]

    def _checkpoint_over(self, event: ev.CheckpointOver) -> list[do.Effect]:
        if self.state.is_over:
            return []
        self._step(StateStep.CHECKPOINT_OVER)
        self.asleep_in, self.waking, self.inputs.paused = "", _ONLY_IF_ASKED, False
        return [do.SaveParcel(), do.ReleaseTyping(), _TAKE, do.AnnounceOperators()]

    def _move_sealed(self, event: ev.MoveSealed) -> list[do.Effect]:
        before = self.state
        self._step(StateStep.MOVE_SEALED)
        if self.state is before:
            raise CheckpointFailed(f"it is {before.phase} by now")
        return []

    # -- lease ----------------------------------------------------------------------------------

    def _lease_lost(self, event: ev.LeaseLost) -> list[do.Effect]:
        if self.state.is_fenced or self.state.is_over:
            return []
        self._step(StateStep.LEASE_LOST)
        fence = [do.Fence(event.cause), *self._refuse_waiting(), do.RecordFence(event.cause)]
        return [*fence, do.SaveParcel(), do.AnnounceOperators(), *self.forwards.fenced()]

    def _lease_held(self, event: ev.LeaseHeld) -> list[do.Effect]:
        before = self.state
        self._step(StateStep.LEASE_HELD)
        if self.state is before:
            return []
        return [do.Unfence(event.epoch), do.AnnounceOperators()]

    # -- authority ------------------------------------------------------------------------------

    def _check(self, actor: str, right: Right, now: float) -> None:
        self.authority.check(ActorId(actor), right, self.id, self.labels, now)

    def _authority_changed(self, event: ev.AuthorityChanged) -> list[do.Effect]:
        lost = self._without_rights(event.actor, event.now)
        return [*lost, do.CheckFollowers(), do.ScheduleTick()]

    def _without_rights(self, by: str, now: float) -> list[do.Effect]:
        """Take the turn from a holder that may not write any more, a place in the queue from who
        may not wait, the view from who may not watch, a connection from who may not have it."""
        lost: list[do.Effect] = []
        holder = self.turn.holder
        if holder and Right.INPUT not in self._standing(holder, now):
            lost += self._turn(turn.RevokeStep(by, now, "its envelope does not allow it now"), by)
        for waiting in self.turn.queue:
            if not {Right.INPUT, Right.TURN_REQUEST} <= self._standing(waiting.actor, now):
                lost += self._turn(turn.WithdrawStep(waiting.actor), by)
        gated = self.inputs.gated
        if gated is not None and Right.INPUT not in self._standing(gated.whole.actor, now):
            name = self.authority.name(ActorId(gated.whole.actor))
            lost += self._refused(
                lambda waiting: waiting.actor == gated.whole.actor,
                NotPermitted(f"{name} lost the right to input before it was entered"),
            )
        for seat in self.attachments.seats():
            allowed = self._rights(seat.actor, now)
            if Right.OBSERVE not in allowed or not (seat.observe or Right.INPUT in allowed):
                lost.append(do.DismissOperator(seat.operator, seat.channel))
        return lost + self.forwards.without_rights(now)

    def _rights(self, actor: str, now: float) -> frozenset[Right]:
        return self.authority.rights(ActorId(actor), self.id, self.labels, now)

    def _standing(self, actor: str, now: float) -> frozenset[Right]:
        return self.authority.allowance_while_away(ActorId(actor), self.id, self.labels, now).rights

    # -- size, and the end ------------------------------------------------------------------------

    def _resize_for(self, actor: str) -> list[do.Effect]:
        """The size of this actor's terminal becomes the canonical one, if the turn is its own or
        nobody's."""
        size = self.attachments.size_of(actor)
        if size is None or self.turn.holder not in (actor, None):
            return []
        return self._resize(size)

    def _resize(self, size: Size) -> list[do.Effect]:
        if size == self.size or self.state.is_over:
            return []
        self.size = size
        return [do.SetSize(size), do.AnnounceOperators()]

    # -- name and terminals -----------------------------------------------------------------------

    def _rename_asked(self, event: ev.RenameAsked) -> list[do.Effect]:
        """As grave as its end for whoever addresses it by its name."""
        self._alive()
        self._check(event.actor, Right.END, event.now)
        return [do.ChangeName(event.name), do.SaveParcel()]

    def _written_from_inside(self, event: ev.WrittenFromInside) -> list[do.Effect]:
        self.turn.add_writers(event.actors)
        return [do.SaveParcel()]

    def _pin_asked(self, event: ev.PinAsked) -> list[do.Effect]:
        """It uses the host's memory for as long as it is pinned: whoever may write may say so."""
        self._alive()
        self._check(event.actor, Right.INPUT, event.now)
        if self.pinned == event.pinned:
            return []
        self.pinned = event.pinned
        return [do.RecordPin(event.pinned), do.SaveParcel()]

    def _detach_asked(self, event: ev.DetachAsked) -> list[do.Effect]:
        """Everybody may detach terminals of its own; those of others need the right to seize."""
        self._alive()
        self._check(event.actor, Right.OBSERVE, event.now)
        seats = self.attachments.terminals()
        if event.others and seats:
            attached = {seat.operator for seat in seats}
            kept = event.operator if event.operator in attached else seats[-1].operator
            seats = tuple(seat for seat in seats if seat.operator != kept)
        own = tuple(seat for seat in seats if seat.actor == event.actor)
        if Right.SEIZE not in self._rights(event.actor, event.now):
            if seats and not own:
                self._check(event.actor, Right.SEIZE, event.now)
            seats = own
        return [do.DismissOperator(seat.operator, seat.channel, detached=True) for seat in seats]

    def _end_asked(self, event: ev.EndAsked) -> list[do.Effect]:
        if event.actor != HOST_ACTOR:
            self._check(event.actor, Right.END, event.now)
        if self.state.is_over:
            return []
        self._check_passed(event, EffectKind.END, "")
        self._step(StateStep.END_ASKED)
        return [do.EndTree()]

    def _main_ended(self, event: ev.MainEnded) -> list[do.Effect]:
        ending = event.ending
        if self.state.is_over:
            return []
        if ending.lost is not None:
            self._step(StateStep.HOST_LOST)
        elif self.asleep_in:
            self._step(StateStep.ENDED_IN_CHECKPOINT)
            ending = Ending(checkpoint=self.asleep_in)
        else:
            self._step(StateStep.MAIN_ENDED)
        self.ending = ending = ending.typed()
        waiting = self._refuse_waiting()
        for approval in self.approvals.pending:
            waiting += self._withdrawn(approval.id)
        return [*waiting, do.CloseEnded(ending)]

    def _answerer_since(self, before: Seat | None) -> list[do.Effect]:
        now = self.attachments.answerer
        return [] if now == before else [do.SetAnswerer(now)]

    def _alive(self) -> None:
        if self.state.is_over:
            raise session_over("the session", self.ending)


_NEVER = float("inf")
_TAKE = do.TakeInputs()


def _fenced() -> Fenced:
    return Fenced(
        "this host lost the session's lease; what runs here is frozen",
        hint="`hold show` shows the state of the lease; it may live on another host",
    )


def _moving() -> SessionMoving:
    return SessionMoving(
        "the session is moving to another host at this moment",
        hint="try again in a moment; `hold show` shows how far it is",
    )


# What waits until it is known where it goes on. Input waits by itself (host/session/executor.py).
REFUSED_WHEN_MOVING = (
    *(ev.ChannelOpened, ev.SizeAsked, ev.SignalAsked, ev.PolicyAsked, ev.SeizeAsked, ev.HaltAsked),
    *(ev.ResumeAsked, ev.ForwardAsked, ev.RenameAsked, ev.PinAsked, TurnStep, ev.EndAsked),
    *(ev.ApprovalDecided, ev.EffectHeld, ev.CheckpointAsked, ev.DetachAsked),
)

# What a fenced incarnation refuses: all that somebody does to it, but to stop or to end it.
REFUSED_WHEN_FENCED = (
    *(ev.InputOffered, ev.ChannelOpened, ev.SizeAsked, ev.SignalAsked, ev.PolicyAsked),
    *(ev.SeizeAsked, ev.ResumeAsked, ev.ForwardAsked, ev.RenameAsked, ev.PinAsked, TurnStep),
    *(ev.ApprovalDecided, ev.EffectHeld, ev.CheckpointAsked),
)

_HANDLERS: dict[type[ev.SessionEvent], Callable[[SessionMachine, Any], list[do.Effect]]] = {
    ev.InputOffered: SessionMachine._offered,
    ev.RoomMade: lambda _self, _event: [_TAKE],
    ev.TimePassed: SessionMachine._time_passed,
    ev.CommandRuns: SessionMachine._command_runs,
    ev.ChannelOpened: SessionMachine._opened,
    ev.ChannelClosed: SessionMachine._left,
    ev.ActorDisconnected: SessionMachine._gone,
    ev.SizeAsked: SessionMachine._size_asked,
    ev.SignalAsked: SessionMachine._signal_asked,
    ev.PolicyAsked: SessionMachine._policy_asked,
    ev.SeizeAsked: SessionMachine._seize_asked,
    ev.HaltAsked: SessionMachine._halt_asked,
    ev.ResumeAsked: SessionMachine._resume_asked,
    ev.FreezeReported: SessionMachine._froze,
    ev.Thawed: SessionMachine._thawed,
    ev.CheckpointAsked: SessionMachine._checkpoint_asked,
    ev.CheckpointStored: SessionMachine._checkpoint_stored,
    ev.CheckpointOver: SessionMachine._checkpoint_over,
    ev.MoveSealed: SessionMachine._move_sealed,
    ev.LeaseLost: SessionMachine._lease_lost,
    ev.LeaseHeld: SessionMachine._lease_held,
    ev.AuthorityChanged: SessionMachine._authority_changed,
    ev.RenameAsked: SessionMachine._rename_asked,
    ev.WrittenFromInside: SessionMachine._written_from_inside,
    ev.PinAsked: SessionMachine._pin_asked,
    ev.DetachAsked: SessionMachine._detach_asked,
    ev.EndAsked: SessionMachine._end_asked,
    ev.MainEnded: SessionMachine._main_ended,
    ev.ForwardAsked: SessionMachine._forward_asked,
    ev.PasteChecked: SessionMachine._paste_checked,
    ev.CommitJudged: SessionMachine._commit_judged,
    ev.CommitFailed: SessionMachine._commit_failed,
    ev.CommitWaits: SessionMachine._commit_waits,
    ev.ApprovalDecided: SessionMachine._approval_decided,
    ev.EffectHeld: SessionMachine._effect_held,
    ev.DecidedInAnotherLife: SessionMachine._decided_in_another_life,
    ev.EffectDropped: SessionMachine._effect_dropped,
    ev.GatePolicyChanged: SessionMachine._gate_policy_changed,
    ev.ForwardLeft: lambda self, event: self.forwards.close(event),
    TurnStep: SessionMachine._turn_step,
}
