"""Who may have a connection to a port of a session, and for how long (A2)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.core.session import SessionMachine
from holdfast.core.turn.machine import TurnMachine
from holdfast.model.actor import Actor, ActorKind, Colour
from holdfast.model.envelope import ALL, Envelope, rights_of
from holdfast.model.errors import (
    EnvelopeExpired,
    InvalidArgument,
    NotPermitted,
    RateLimited,
    SessionEnded,
    SessionHalted,
)
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId, SessionId
from holdfast.model.size import Size
from holdfast.model.state import Ending
from holdfast.wire.request_classes import goes_by_session, must_be_signed

SESSION = SessionId.of_key(bytes(32))
KEYS = {name: bytes([at]) * 32 for at, name in enumerate(("ann", "bob"), 1)}
IDS = {name: ActorId.of_key(key) for name, key in KEYS.items()}
HANDS = {name: OperatorId(str(at) * 32) for at, name in enumerate(KEYS, 1)}
NOW = 1000.0


def a_session(**envelopes: dict[str, Any]) -> SessionMachine:
    """Ann is admin; bob has what is said of him."""
    actors = [
        Actor(IDS[name], name, ActorKind.HUMAN, key, name, Colour.RED, 1000, False, 0.0)
        for name, key in KEYS.items()
    ]
    given = [Envelope(IDS["ann"], ALL, rights_of(["admin"]))]
    given += [_envelope(name, **said) for name, said in envelopes.items()]
    return SessionMachine(SESSION, (), Size(80, 24), Authority(actors, given), TurnMachine())


def _envelope(name: str, rights: str = "execute", **more: Any) -> Envelope:
    return Envelope(IDS[name], ALL, rights_of(rights.split())).replace(**more)


def done(session: SessionMachine, event: ev.SessionEvent) -> list[do.Effect]:
    """What follows, but for what follows from many an event."""
    usual = do.ScheduleTick | do.CheckFollowers
    return [effect for effect in session.handle(event) if not isinstance(effect, usual)]


def asked(name: str, number: int = 1, now: float = NOW) -> ev.ForwardAsked:
    return ev.ForwardAsked(IDS[name], now, HANDS[name], number, 3000)


def put(session: SessionMachine, envelope: Envelope) -> None:
    session.authority.set(envelope.replace(granted_by=HOST_ACTOR), now=NOW, live=())


def test_it_needs_the_right_to_input_and_no_turn() -> None:
    session = a_session(bob={"rights": "execute"})
    session.handle(ev.InputOffered(IDS["ann"], NOW, HANDS["ann"], 1, b"mine"))
    assert session.turn.holder == IDS["ann"]
    assert done(session, asked("bob")) == []
    assert session.turn.holder == IDS["ann"]


@pytest.mark.parametrize("rights", ["read", "approve", "input", "signal resize"])
def test_whoever_may_not_watch_and_input_gets_none(rights: str) -> None:
    session = a_session(bob={"rights": rights})
    with pytest.raises(NotPermitted):
        session.handle(asked("bob"))
    assert session.forwards.actors() == set()


def test_losing_the_right_cuts_ones_own_and_nobody_elses() -> None:
    session = a_session(bob={"rights": "execute"})
    for name, number in (("bob", 1), ("bob", 2), ("ann", 1)):
        session.handle(asked(name, number))
    put(session, _envelope("bob", "read"))
    cut = done(session, ev.AuthorityChanged(IDS["ann"], NOW))
    assert [(each.operator, each.number, each.code) for each in cut] == [  # type: ignore[attr-defined]
        (HANDS["bob"], 1, "not_permitted"),
        (HANDS["bob"], 2, "not_permitted"),
    ]
    assert done(session, ev.AuthorityChanged(IDS["ann"], NOW)) == [], "once"
    assert session.forwards.actors() == {IDS["ann"]}


def test_time_alone_cuts_when_an_envelope_expires() -> None:
    session = a_session(bob={"expires_at": NOW + 10})
    session.handle(asked("bob"))
    assert session.wakes_at(NOW) == NOW + 10
    assert done(session, ev.TimePassed(HOST_ACTOR, NOW + 9)) == []
    (cut,) = done(session, ev.TimePassed(HOST_ACTOR, NOW + 10))
    assert isinstance(cut, do.CutForward) and cut.code == "envelope_expired"
    with pytest.raises(EnvelopeExpired):
        session.handle(asked("bob", now=NOW + 10))


def test_one_that_is_over_is_not_cut_and_its_number_is_free() -> None:
    session = a_session(bob={"rights": "execute"})
    session.handle(asked("bob"))
    with pytest.raises(InvalidArgument):
        session.handle(asked("bob"))
    session.handle(ev.ForwardLeft(IDS["bob"], NOW, HANDS["bob"], 1))
    put(session, _envelope("bob", "read"))
    assert done(session, ev.AuthorityChanged(IDS["ann"], NOW)) == []
    put(session, _envelope("bob", "execute"))
    session.handle(asked("bob"))


def test_a_lost_lease_cuts_all() -> None:
    session = a_session(bob={"rights": "execute"})
    session.handle(asked("bob"))
    session.handle(asked("ann"))
    lost = session.handle(ev.LeaseLost(HOST_ACTOR, NOW, "lapse"))
    cut = [effect.code for effect in lost if isinstance(effect, do.CutForward)]
    assert cut == ["fenced", "fenced"]


def test_a_halted_or_ended_session_takes_none() -> None:
    session = a_session()
    session.handle(ev.HaltAsked(IDS["ann"], NOW, "stop"))
    with pytest.raises(SessionHalted):
        session.handle(asked("ann"))
    session = a_session()
    session.handle(ev.MainEnded(HOST_ACTOR, NOW, Ending(code=0)))
    with pytest.raises(SessionEnded):
        session.handle(asked("ann"))


def test_whoever_has_a_rate_has_one_for_connections_too() -> None:
    session = a_session(bob={"inputs_per_s": 1.0})
    with pytest.raises(RateLimited):
        for number in range(10):
            session.handle(asked("bob", number))


def test_only_the_opening_is_signed_and_all_of_it_goes_by_the_session() -> None:
    carried = ("forward_data", "forward_room", "forward_end", "forward_closed")
    assert must_be_signed("forward")
    assert not any(must_be_signed(tag) for tag in carried)
    assert all(goes_by_session(tag) for tag in ("forward", *carried))
