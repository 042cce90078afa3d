"""Who gets the next turn, when nobody is in a hurry (A4).

A policy answers two questions and holds no state: how long the holder may be idle, and who of
those waiting is next. It is never asked when a turn is seized or while a seized one is held, so no
policy can delay a seizure (A5). It cannot leave the turn lying free while somebody waits either:
`core/turn/machine.py` sees to that.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import ActorId
from holdfast.model.limits import TURN_AWAY_S, TURN_IDLE_S, TURN_NEVER_LONGER_S, TURN_PAUSE_S
from holdfast.model.record import Record


class Waiting(Record):
    """One actor in the queue."""

    actor: ActorId
    since: float
    message: str = ""  # for the holder to read
    explicit: bool = True  # asked for expressly: it waits on when its last connection goes
    away: bool = False  # its last connection went meanwhile
    hold_s: float = 0.0  # how long it will need the turn at least, counted from when it comes


class TurnPolicy(Protocol):
    """What a policy of one's own must have; `register` makes it known by its name."""

    @property
    def name(self) -> str: ...

    def idle_limit_s(self, waiting: bool, away: bool) -> float:
        """How long a holder may write nothing before the turn moves on: with somebody waiting for
        it or nobody, and the holder still here or its last connection gone."""

    def next(self, queue: tuple[Waiting, ...]) -> ActorId:
        """Who of the queue, which is not empty and in the order of asking, is to have it."""


class _FirstComeFirstServed:
    def next(self, queue: tuple[Waiting, ...]) -> ActorId:
        return queue[0].actor


class Queue(_FirstComeFirstServed):
    """In the order of asking; a holder that is idle for long loses the turn."""

    name = "queue"

    def idle_limit_s(self, waiting: bool, away: bool) -> float:
        return TURN_IDLE_S


class AskHolder(_FirstComeFirstServed):
    """Only the holder's word moves the turn, while the holder is there. One that left without a
    word is given a moment to come back. Even a present one is not waited for without end: nobody
    shall be locked out forever."""

    name = "ask-holder"

    def idle_limit_s(self, waiting: bool, away: bool) -> float:
        return TURN_AWAY_S if away and waiting else TURN_NEVER_LONGER_S


class FreeWhenIdle(_FirstComeFirstServed):
    """Whoever pauses lets the others write. What people at one desk do, and so the default."""

    name = "free-when-idle"

    def idle_limit_s(self, waiting: bool, away: bool) -> float:
        return TURN_PAUSE_S if waiting else TURN_IDLE_S


DEFAULT_POLICY = FreeWhenIdle.name
POLICIES: dict[str, TurnPolicy] = {}


def register(policy: TurnPolicy) -> None:
    """Make a policy known. A name means one thing only."""
    if policy.name in POLICIES:
        raise InvalidArgument(f"there is already a turn policy {policy.name!r}")
    POLICIES[policy.name] = policy


def policy(name: str) -> TurnPolicy:
    """The policy of this name."""
    if name not in POLICIES:
        raise InvalidArgument(
            f"no turn policy {name[:40]!r}", hint=f"there are: {', '.join(sorted(POLICIES))}"
        )
    return POLICIES[name]


for _built_in in (Queue(), AskHolder(), FreeWhenIdle()):
    register(_built_in)
