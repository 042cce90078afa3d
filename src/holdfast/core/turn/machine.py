"""The turn of one session: the right to write now, held by at most one actor (A3, A4, A5).

An event that the table (`turn_table.py`) or the holder forbids raises a typed error and changes
nothing. All connections of one actor are one hand. Whether an actor's envelope allows a step is
judged before it comes here (`authority.py`); who is next and how long a holder may be idle is the
policy's (`turn_policy.py`). What is typed does not come here, only that something was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.core.turn.events import (
    Asked,
    Blinded,
    GrantTurn,
    HandOff,
    Leave,
    Moved,
    Outcome,
    RequestTurn,
    Return,
    RevokeTurn,
    SeizeTurn,
    SetBlind,
    Tick,
    TurnEvent,
    Withdraw,
    Withdrawn,
    Wrote,
    YieldTurn,
)
from holdfast.core.turn.policy import DEFAULT_POLICY, POLICIES, TurnPolicy, Waiting, policy
from holdfast.core.turn.table import CONTESTED, FREE, HELD, TRANSITIONS, Step, TurnState
from holdfast.model.errors import InvalidArgument, LimitReached, TurnHeld, TurnNotHeld
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import TURN_QUEUE_MAX, TURN_TEXT_MAX_CHARS
from holdfast.model.record import Record

_IDLE = "idle"  # why a holder lost it by the policy


class KeptTurn(Record):
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


class Turn:
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
        self.queue: tuple[Waiting, ...] = ()
        self._names = names
        self._session = session

    @property
    def state(self) -> TurnState:
        if self.holder is None:
            return FREE
        return CONTESTED if self.queue else HELD

    def may_write(self, actor: ActorId) -> bool:
        return self.holder == actor

    def wrote_at_once(self, now: float) -> None:
        """`handle(Wrote)` for the usual key press, the holder's."""
        self.last_active = now
        self.away = False

    def wakes_at(self) -> float | None:
        """When a Tick would move the turn; None when no time would."""
        if self.holder is None or self.seized:
            return None
        return self._idle_until(bool(self.queue))

    def handle(self, event: TurnEvent) -> list[Outcome]:
        """The only way in, besides `wrote_at_once`."""
        return _HANDLERS[type(event)](self, event)

    def kept(self) -> KeptTurn:
        values = {field: getattr(self, field) for field in KeptTurn._fields if field != "policy"}
        return KeptTurn(policy=self.policy.name, **values)

    @classmethod
    def of(
        cls, kept: KeptTurn, *, names: Callable[[ActorId], str] = str, session: str = "NAME"
    ) -> Turn:
        """The turn that was kept. A policy that is not known any more gives way to the default: a
        session must not be lost with it."""
        known = kept.policy if kept.policy in POLICIES else DEFAULT_POLICY
        turn = cls(known, names=names, session=session)
        for field in KeptTurn._fields:
            if field != "policy":
                setattr(turn, field, getattr(kept, field))
        return turn

    # -- events, each checked whole before anything changes ---------------------------------------

    def _request(self, event: RequestTurn) -> list[Outcome]:
        actor, now = event.actor, event.now
        if self.holder is None:
            return [self._move(Step.REQUEST, actor, now, by=actor, explicit=event.explicit)]
        if self.holder == actor:
            self.wrote_at_once(now)
            self.explicit = self.explicit or event.explicit
            return []
        message = shown_text(event.message)
        queue, news = self._queue_with(actor, now, message, event.explicit)
        if not self.seized and self._idle_until(True) <= now:
            to, queue = self._next_of(queue)
            why = _IDLE if to.actor == actor else ""  # else it reads as the words of who asks
            moved: list[Outcome] = [self._give(Step.REQUEST, to, queue, now, why, by=actor)]
            return [*moved, Asked(actor, to.actor, message)] if to.actor != actor else moved
        self._no_later_than(now)
        self.queue = queue
        return [Asked(actor, self.holder, message)] if news else []

    def _grant(self, event: GrantTurn) -> list[Outcome]:
        self._by_holder(event.by)
        self._possible(Step.GRANT)
        wanted = event.to if event.to is not None else self._next_of(self.queue)[0].actor
        to, queue = self._waiting(wanted)
        return [self._give(Step.GRANT, to, queue, event.now, by=event.by)]

    def _yield(self, event: YieldTurn) -> list[Outcome]:
        self._possible(Step.YIELD)
        self._by_holder(event.by)
        return [self._pass_on(Step.YIELD, event.now, by=event.by)]

    def _hand_off(self, event: HandOff) -> list[Outcome]:
        self._possible(Step.HAND_OFF)
        self._by_holder(event.by)
        if event.to == event.by:
            raise InvalidArgument("the turn cannot be handed to the one who holds it")
        self.queue = _without(self.queue, event.to)
        return [self._move(Step.HAND_OFF, event.to, event.now, event.reason, by=event.by)]

    def _revoke(self, event: RevokeTurn) -> list[Outcome]:
        self._possible(Step.REVOKE)
        return [self._pass_on(Step.REVOKE, event.now, event.reason, by=event.by)]

    def _seize(self, event: SeizeTurn) -> list[Outcome]:
        # Asks nobody: not the holder, not the policy, not the state (A5).
        self.queue = _without(self.queue, event.by)
        return [self._move(Step.SEIZE, event.by, event.now, event.reason, by=event.by, seized=True)]

    def _withdraw(self, event: Withdraw) -> list[Outcome]:
        self._possible(Step.WITHDRAW)
        _, self.queue = self._waiting(event.actor)
        return [Withdrawn(event.actor)]

    def _leave(self, event: Leave) -> list[Outcome]:
        if self.holder == event.actor:
            if not self.explicit:
                return [self._pass_on(Step.LEAVE, event.now)]
            self.away = True
            return []
        mine = next((one for one in self.queue if one.actor == event.actor), None)
        if mine is None:
            return []
        if mine.explicit:  # a request made by a command that ended stands
            self._change_waiting(mine.replace(away=True))
            return []
        self.queue = _without(self.queue, event.actor)
        return [Withdrawn(event.actor)]

    def _return(self, event: Return) -> list[Outcome]:
        if self.holder == event.actor:
            self.away = False
        for one in self.queue:
            if one.actor == event.actor:
                self._change_waiting(one.replace(away=False))
        return []

    def _tick(self, event: Tick) -> list[Outcome]:
        due = self.wakes_at()
        if due is not None and due <= event.now:
            return [self._pass_on(Step.EXPIRE, event.now, _IDLE)]
        self._no_later_than(event.now)
        return []

    def _wrote(self, event: Wrote) -> list[Outcome]:
        actor, now = event.actor, event.now
        if self.may_write(actor):
            self.wrote_at_once(now)
            return []
        # An idle hold gives way to writing as it does to a request, unless it was asked for
        # expressly, or somebody waits who asked before.
        weak = not (self.explicit or self.queue)
        if self.holder is None or (weak and self._idle_until(True) <= now):
            why = _IDLE if self.holder is not None else ""
            return [self._move(Step.REQUEST, actor, now, why, by=actor, explicit=False)]
        raise TurnHeld(
            f"{self._names(self.holder)} holds the turn" + (" by seizure" * self.seized),
            hint=f"`hold turn {self._session} request` asks for it",
        )

    def _set_blind(self, event: SetBlind) -> list[Outcome]:
        self._by_holder(event.by)
        if self.blind is event.blind:
            return []
        self.blind = event.blind
        return [Blinded(event.by, event.blind)]

    # -- what the events share --------------------------------------------------------------------

    def _possible(self, step: Step) -> None:
        if (self.state, step) in TRANSITIONS:
            return
        if self.holder is None and step is not Step.WITHDRAW:
            raise TurnNotHeld(
                "nobody holds the turn", hint=f"`hold turn {self._session} request` takes it"
            )
        raise InvalidArgument(
            "nobody waits for the turn", hint="hand it off to give it to somebody all the same"
        )

    def _by_holder(self, actor: ActorId) -> None:
        if self.holder != actor:
            holder = "nobody" if self.holder is None else self._names(self.holder)
            raise TurnNotHeld(
                f"{self._names(actor)} does not hold the turn; {holder} does",
                hint=f"`hold turn {self._session} request` asks for it",
            )

    def _waiting(self, actor: ActorId) -> tuple[Waiting, tuple[Waiting, ...]]:
        """This actor's place in the queue, and the queue without it."""
        for one in self.queue:
            if one.actor == actor:
                return one, _without(self.queue, actor)
        raise InvalidArgument(f"{self._names(actor)} does not wait for the turn")

    def _queue_with(
        self, actor: ActorId, now: float, message: str, explicit: bool
    ) -> tuple[tuple[Waiting, ...], bool]:
        """The queue with this actor in it, and whether that says anything new."""
        for place, one in enumerate(self.queue):
            if one.actor == actor:
                again = one.replace(message=message, explicit=one.explicit or explicit, away=False)
                queue = (*self.queue[:place], again, *self.queue[place + 1 :])
                return queue, one.message != message
        if len(self.queue) >= TURN_QUEUE_MAX:
            raise LimitReached(f"already {TURN_QUEUE_MAX} actors wait for this turn")
        return (*self.queue, Waiting(actor, now, message, explicit)), True

    def _change_waiting(self, changed: Waiting) -> None:
        self.queue = tuple(changed if one.actor == changed.actor else one for one in self.queue)

    def _next_of(self, queue: tuple[Waiting, ...]) -> tuple[Waiting, tuple[Waiting, ...]]:
        """Whom the policy names. One that names nobody in the queue gets the first: no policy can
        leave the turn lying free while somebody waits for it."""
        wanted = self.policy.next(queue)
        chosen = next((one for one in queue if one.actor == wanted), queue[0])
        return chosen, _without(queue, chosen.actor)

    def _idle_until(self, waiting: bool) -> float:
        return self.last_active + max(0.0, self.policy.idle_limit_s(waiting, self.away))

    def _no_later_than(self, now: float) -> None:
        """A clock that was set back must not leave the holder active for all the time until it is
        again as late as it was: idleness counts from the new now."""
        self.last_active = min(self.last_active, now)
        self.since = min(self.since, now)

    def _pass_on(
        self, step: Step, now: float, reason: str = "", *, by: str = HOST_ACTOR
    ) -> Outcome:
        """To whom the policy names, or to nobody."""
        if not self.queue:
            return self._move(step, None, now, reason, by=by)
        to, queue = self._next_of(self.queue)
        return self._give(step, to, queue, now, reason, by=by)

    def _give(
        self,
        step: Step,
        to: Waiting,
        queue: tuple[Waiting, ...],
        now: float,
        reason: str = "",
        *,
        by: str,
    ) -> Outcome:
        self.queue = queue
        moved = self._move(step, to.actor, now, reason, by=by, explicit=to.explicit)
        self.away = to.away
        return moved

    def _move(
        self,
        step: Step,
        to: ActorId | None,
        now: float,
        reason: str = "",
        *,
        by: str,
        explicit: bool = True,
        seized: bool = False,
    ) -> Outcome:
        before = self.holder
        self.holder, self.since, self.last_active = to, now, now
        self.explicit, self.seized = explicit and to is not None, seized
        self.blind = self.blind and to == before
        self.away = False
        return Moved(step, before, to, now, shown_text(reason), by)


def _without(queue: tuple[Waiting, ...], actor: ActorId) -> tuple[Waiting, ...]:
    return tuple(one for one in queue if one.actor != actor)


def shown_text(text: str) -> str:
    """Fit for somebody else's status line: cut, and without control characters. Not refused: a
    long reason must not keep anybody from seizing."""
    shown = text[: TURN_TEXT_MAX_CHARS + 1]
    if len(shown) > TURN_TEXT_MAX_CHARS:
        shown = shown[: TURN_TEXT_MAX_CHARS - 1] + "…"
    return "".join(char if char.isprintable() else " " for char in shown)


_HANDLERS: dict[type[TurnEvent], Callable[[Turn, Any], list[Outcome]]] = {
    Wrote: Turn._wrote,
    Tick: Turn._tick,
    RequestTurn: Turn._request,
    GrantTurn: Turn._grant,
    YieldTurn: Turn._yield,
    HandOff: Turn._hand_off,
    RevokeTurn: Turn._revoke,
    SeizeTurn: Turn._seize,
    Withdraw: Turn._withdraw,
    Leave: Turn._leave,
    Return: Turn._return,
    SetBlind: Turn._set_blind,
}
