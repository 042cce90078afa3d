"""The turn of one session: the right to write now, held by at most one actor (A3, A4, A5).

An event that the table (`table.py`) or the holder forbids raises a typed error and changes
nothing. All connections of one actor are one hand. Whether an actor's envelope allows a step is
judged before it comes here (`authority.py`); who is next and how long a holder may be idle is the
policy's (`policy.py`). What is typed does not come here, only that something was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from holdfast.core.turn import events as ev
from holdfast.core.turn.policy import DEFAULT_POLICY, POLICIES, TurnPolicy, Waiting, policy
from holdfast.core.turn.table import CONTESTED, FREE, HELD, TRANSITIONS, TurnPhase, TurnStepKind
from holdfast.model.errors import InvalidArgument, LimitReached, TurnHeld, TurnNotHeld
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import (
    TURN_HOLD_MAX_S,
    TURN_HOLDERS_MAX,
    TURN_NEVER_LONGER_S,
    TURN_QUEUE_MAX,
    TURN_TEXT_MAX_CHARS,
)
from holdfast.model.record import Record

_IDLE = "idle"  # why a holder lost it by the policy


class SavedTurn(Record):
    """All of a turn, to carry over a daemon's restart."""

    policy: str
    holder: ActorId | None
    since: float
    last_active: float
    explicit: bool
    seized: bool
    blind: bool
    away: bool
    queue: tuple[Waiting, ...]
    holders: tuple[ActorId, ...] = ()
    held_until: float = 0.0
    command_of: ActorId | None = None


class TurnMachine:
    """Who may write. `names` gives the name by which people know an actor, `session` the name by
    which they know the session; both are for messages only."""

    def __init__(
        self,
        policy_name: str = DEFAULT_POLICY,
        *,
        names: Callable[[ActorId], str] = str,
        session: str = "NAME",
    ) -> None:
        self.policy: TurnPolicy = policy(policy_name)
        self.holder: ActorId | None = None
        self.since = 0.0  # when the holder got it
        self.last_active = 0.0  # when the holder last wrote or asked
        self.explicit = False  # got by asking or being given, not by simply writing
        self.seized = False  # taken, so explicit; no policy, pause, leave or request moves it
        self.blind = False  # what is typed now is kept nowhere
        self.away = False  # the holder's last connection went
        self.held_until = 0.0  # the holder said that it needs it until then
        self.command_of: ActorId | None = None  # whose command line the shell runs
        self.queue: tuple[Waiting, ...] = ()
        # Everybody that ever held it, and `add_writers`; at most TURN_HOLDERS_MAX.
        self.holders: tuple[ActorId, ...] = ()
        self._names = names
        self.session = session

    @property
    def state(self) -> TurnPhase:
        if self.holder is None:
            return FREE
        return CONTESTED if self.queue else HELD

    def name(self, actor: ActorId | None) -> str:
        """By which people know this actor."""
        return "nobody" if actor is None else self._names(actor)

    def may_write(self, actor: ActorId) -> bool:
        return self.holder == actor

    def has_written(self, actors: Collection[ActorId]) -> bool:
        """Whether all of these are known to have a part in what was written."""
        return len(self.holders) >= TURN_HOLDERS_MAX or {*actors} <= {*self.holders}

    def add_writers(self, actors: Collection[ActorId]) -> None:
        """These have a part in what is written from now on, without having the turn."""
        new = tuple(each for each in actors if each not in self.holders)
        self.holders = (*self.holders, *new)[:TURN_HOLDERS_MAX]

    def wrote(self, now: float) -> None:
        """The holder wrote."""
        self.last_active = now
        self.away = False

    def wakes_at(self) -> float | None:
        """When a Tick would move the turn; None when no time would."""
        if self.holder is None or self.seized:
            return None
        return self._idle_until(bool(self.queue))

    def handle(self, event: ev.TurnEvent) -> list[ev.TurnOutcome]:
        """The only way in, besides `wrote`."""
        return _HANDLERS[type(event)](self, event)

    def kept(self) -> SavedTurn:
        values = {field: getattr(self, field) for field in SavedTurn._fields if field != "policy"}
        return SavedTurn(policy=self.policy.name, **values)

    @classmethod
    def of(
        cls, kept: SavedTurn, *, names: Callable[[ActorId], str] = str, session: str = "NAME"
    ) -> TurnMachine:
        """The turn that was kept. A policy that is no longer known gives way to the default: a
        session must not be lost with it."""
        known = kept.policy if kept.policy in POLICIES else DEFAULT_POLICY
        turn = cls(known, names=names, session=session)
        for field in SavedTurn._fields:
            if field != "policy":
                setattr(turn, field, getattr(kept, field))
        return turn

    # -- events, each checked whole before anything changes ---------------------------------------

    def _request(self, event: ev.RequestStep) -> list[ev.TurnOutcome]:
        actor, now, hold_s = event.actor, event.now, _checked_hold(event.hold_s)
        if self.holder is None:
            moved = self._move(TurnStepKind.REQUEST, actor, now, by=actor, explicit=event.explicit)
            self._hold(now, hold_s)
            return [moved]
        if self.holder == actor:
            self.wrote(now)
            self.explicit = self.explicit or event.explicit
            self._hold(now, hold_s)
            return []
        message = shown_text(event.message)
        queue, news = self._queue_with(Waiting(actor, now, message, event.explicit, hold_s=hold_s))
        if not self.seized and self._idle_until(True) <= now:
            to, queue = self._next_of(queue)
            why = _IDLE if to.actor == actor else ""  # else it reads as the words of who asks
            given = self._give(TurnStepKind.REQUEST, to, queue, now, why, by=actor)
            return [given, ev.Asked(actor, to.actor, message)] if to.actor != actor else [given]
        self._no_later_than(now)
        self.queue = queue
        return [ev.Asked(actor, self.holder, message)] if news else []

    def _renew(self, event: ev.RenewStep) -> list[ev.TurnOutcome]:
        hold_s = _checked_hold(event.hold_s)
        self._by_holder(event.by)
        self.wrote(event.now)
        self.explicit = True
        self._hold(event.now, hold_s)
        return []

    def _grant(self, event: ev.GrantStep) -> list[ev.TurnOutcome]:
        self._by_holder(event.by)
        self._possible(TurnStepKind.GRANT)
        wanted = event.to if event.to is not None else self._next_of(self.queue)[0].actor
        to, queue = self._waiting(wanted)
        return [self._give(TurnStepKind.GRANT, to, queue, event.now, by=event.by)]

    def _yield(self, event: ev.YieldStep) -> list[ev.TurnOutcome]:
        self._possible(TurnStepKind.YIELD)
        self._by_holder(event.by)
        return [self._pass_on(TurnStepKind.YIELD, event.now, by=event.by)]

    def _hand_off(self, event: ev.HandOff) -> list[ev.TurnOutcome]:
        self._possible(TurnStepKind.HAND_OFF)
        self._by_holder(event.by)
        if event.to == event.by:
            raise InvalidArgument("the turn cannot be handed to the one who holds it")
        self.queue = _without(self.queue, event.to)
        return [self._move(TurnStepKind.HAND_OFF, event.to, event.now, event.reason, by=event.by)]

    def _revoke(self, event: ev.RevokeStep) -> list[ev.TurnOutcome]:
        self._possible(TurnStepKind.REVOKE)
        return [self._pass_on(TurnStepKind.REVOKE, event.now, event.reason, by=event.by)]

    def _seize(self, event: ev.SeizeTurn) -> list[ev.TurnOutcome]:
        # Asks nobody: not the holder, not the policy, not the state (A5).
        self.queue = _without(self.queue, event.by)
        return [
            self._move(
                TurnStepKind.SEIZE, event.by, event.now, event.reason, by=event.by, seized=True
            )
        ]

    def _withdraw(self, event: ev.WithdrawStep) -> list[ev.TurnOutcome]:
        self._possible(TurnStepKind.WITHDRAW)
        _, self.queue = self._waiting(event.actor)
        return [ev.Withdrawn(event.actor)]

    def _leave(self, event: ev.LeaveStep) -> list[ev.TurnOutcome]:
        if self.holder == event.actor:
            if not self.explicit:
                return [self._pass_on(TurnStepKind.LEAVE, event.now)]
            if self._works:  # until now that counted
                self.last_active = event.now
            self.away = True
            return []
        mine = next((one for one in self.queue if one.actor == event.actor), None)
        if mine is None:
            return []
        if mine.explicit:  # a request made by a command that ended stands
            self._change_waiting(mine.replace(away=True))
            return []
        self.queue = _without(self.queue, event.actor)
        return [ev.Withdrawn(event.actor)]

    def _return(self, event: ev.Return) -> list[ev.TurnOutcome]:
        if self.holder == event.actor:
            self.away = False
        for one in self.queue:
            if one.actor == event.actor:
                self._change_waiting(one.replace(away=False))
        return []

    def _tick(self, event: ev.TurnTick) -> list[ev.TurnOutcome]:
        due = self.wakes_at()
        if due is not None and due <= event.now:
            return [self._pass_on(TurnStepKind.EXPIRE, event.now, _IDLE)]
        self._no_later_than(event.now)
        return []

    def _wrote(self, event: ev.WroteStep) -> list[ev.TurnOutcome]:
        actor, now = event.actor, event.now
        if self.may_write(actor):
            self.wrote(now)
            return []
        # An idle hold gives way to writing as it does to a request, unless it was asked for
        # expressly, or somebody waits who asked before.
        weak = not (self.explicit or self.queue)
        if self.holder is None or (weak and self._idle_until(True) <= now):
            why = _IDLE if self.holder is not None else ""
            return [self._move(TurnStepKind.REQUEST, actor, now, why, by=actor, explicit=False)]
        raise TurnHeld(
            f"{self._names(self.holder)} holds the turn" + (" by seizure" * self.seized),
            hint=f"`hold turn {self.session} request` asks for it",
        )

    def _command(self, event: ev.CommandStep) -> list[ev.TurnOutcome]:
        if self._works:
            self.last_active = event.now
        self.command_of = event.actor
        return []

    def _set_blind(self, event: ev.BlindStep) -> list[ev.TurnOutcome]:
        self._by_holder(event.by)
        if self.blind is event.blind:
            return []
        self.blind = event.blind
        return [ev.Blinded(event.by, event.blind)]

    # -- what the events share --------------------------------------------------------------------

    def _possible(self, step: TurnStepKind) -> None:
        if (self.state, step) in TRANSITIONS:
            return
        if self.holder is None and step is not TurnStepKind.WITHDRAW:
            raise TurnNotHeld(
                "nobody holds the turn", hint=f"`hold turn {self.session} request` takes it"
            )
        raise InvalidArgument(
            "nobody waits for the turn", hint="hand it off to give it to somebody all the same"
        )

    def _by_holder(self, actor: ActorId) -> None:
        if self.holder != actor:
            holder = self.name(self.holder)
            raise TurnNotHeld(
                f"{self._names(actor)} does not hold the turn; {holder} does",
                hint=f"`hold turn {self.session} request` asks for it",
            )

    def _waiting(self, actor: ActorId) -> tuple[Waiting, tuple[Waiting, ...]]:
        """This actor's place in the queue, and the queue without it."""
        for one in self.queue:
            if one.actor == actor:
                return one, _without(self.queue, actor)
        raise InvalidArgument(f"{self._names(actor)} does not wait for the turn")

    def _queue_with(self, asked: Waiting) -> tuple[tuple[Waiting, ...], bool]:
        """The queue with this one in it, and whether that says anything new."""
        for place, one in enumerate(self.queue):
            if one.actor == asked.actor:
                again = asked.replace(
                    since=one.since,
                    explicit=one.explicit or asked.explicit,
                    hold_s=max(one.hold_s, asked.hold_s),
                )
                queue = (*self.queue[:place], again, *self.queue[place + 1 :])
                return queue, one.message != asked.message
        if len(self.queue) >= TURN_QUEUE_MAX:
            raise LimitReached(f"already {TURN_QUEUE_MAX} actors wait for this turn")
        return (*self.queue, asked), True

    def _change_waiting(self, changed: Waiting) -> None:
        self.queue = tuple(changed if one.actor == changed.actor else one for one in self.queue)

    def _next_of(self, queue: tuple[Waiting, ...]) -> tuple[Waiting, tuple[Waiting, ...]]:
        """Whom the policy names. One that names nobody in the queue gets the first: no policy can
        leave the turn lying free while somebody waits for it."""
        wanted = self.policy.next(queue)
        chosen = next((one for one in queue if one.actor == wanted), queue[0])
        return chosen, _without(queue, chosen.actor)

    def _idle_until(self, waiting: bool) -> float:
        limit_s = max(0.0, self.policy.idle_limit_s(waiting, self.away))
        if self._works:
            limit_s = max(limit_s, TURN_NEVER_LONGER_S)
        return max(self.last_active + limit_s, self.held_until)

    @property
    def _works(self) -> bool:
        """Whether a command line of the holder's counts as activity: only while the holder is here
        to read what comes of it, and asked for the turn. One that only wrote gives way, so that
        others can interrupt what it left running."""
        here = self.holder is not None and not self.away
        return here and self.explicit and self.command_of == self.holder

    def _hold(self, now: float, hold_s: float) -> None:
        """What was declared before, perhaps by another connection, is not taken back."""
        if hold_s:
            self.held_until = max(self.held_until, now + hold_s)

    def _no_later_than(self, now: float) -> None:
        """A clock that was set back must not leave the holder active for all the time until it is
        again as late as it was: idleness counts from the new now."""
        self.last_active = min(self.last_active, now)
        self.since = min(self.since, now)
        self.held_until = min(self.held_until, now + TURN_HOLD_MAX_S)

    def _pass_on(
        self, step: TurnStepKind, now: float, reason: str = "", *, by: str = HOST_ACTOR
    ) -> ev.TurnOutcome:
        """To whom the policy names, or to nobody."""
        if not self.queue:
            return self._move(step, None, now, reason, by=by)
        to, queue = self._next_of(self.queue)
        return self._give(step, to, queue, now, reason, by=by)

    def _give(
        self,
        step: TurnStepKind,
        to: Waiting,
        queue: tuple[Waiting, ...],
        now: float,
        reason: str = "",
        *,
        by: str,
    ) -> ev.TurnOutcome:
        self.queue = queue
        moved = self._move(step, to.actor, now, reason, by=by, explicit=to.explicit)
        self.away = to.away
        self._hold(now, to.hold_s)
        return moved

    def _move(
        self,
        step: TurnStepKind,
        to: ActorId | None,
        now: float,
        reason: str = "",
        *,
        by: str,
        explicit: bool = True,
        seized: bool = False,
    ) -> ev.TurnOutcome:
        before = self.holder
        self.holder, self.since, self.last_active = to, now, now
        self.explicit, self.seized = explicit and to is not None, seized
        self.blind = self.blind and to == before
        self.away, self.held_until = False, 0.0
        if to is not None:
            self.add_writers((to,))
        return ev.Moved(step, before, to, now, shown_text(reason), by)


def _without(queue: tuple[Waiting, ...], actor: ActorId) -> tuple[Waiting, ...]:
    return tuple(one for one in queue if one.actor != actor)


def _checked_hold(hold_s: float) -> float:
    if not 0.0 <= hold_s <= TURN_HOLD_MAX_S:
        raise InvalidArgument(
            f"the turn is held for 0 to {TURN_HOLD_MAX_S:g} s, not {hold_s:g}",
            hint="one that needs it longer declares it again before that",
        )
    return hold_s


def shown_text(text: str) -> str:
    """Fit for somebody else's status line: cut, and without control characters. Not refused: a
    long reason must not keep anybody from seizing."""
    shown = text[: TURN_TEXT_MAX_CHARS + 1]
    if len(shown) > TURN_TEXT_MAX_CHARS:
        shown = shown[: TURN_TEXT_MAX_CHARS - 1] + "…"
    return "".join(char if char.isprintable() else " " for char in shown)


_HANDLERS: dict[type[ev.TurnEvent], Callable[[TurnMachine, Any], list[ev.TurnOutcome]]] = {
    ev.WroteStep: TurnMachine._wrote,
    ev.TurnTick: TurnMachine._tick,
    ev.RequestStep: TurnMachine._request,
    ev.RenewStep: TurnMachine._renew,
    ev.CommandStep: TurnMachine._command,
    ev.GrantStep: TurnMachine._grant,
    ev.YieldStep: TurnMachine._yield,
    ev.HandOff: TurnMachine._hand_off,
    ev.RevokeStep: TurnMachine._revoke,
    ev.SeizeTurn: TurnMachine._seize,
    ev.WithdrawStep: TurnMachine._withdraw,
    ev.LeaveStep: TurnMachine._leave,
    ev.Return: TurnMachine._return,
    ev.BlindStep: TurnMachine._set_blind,
}
