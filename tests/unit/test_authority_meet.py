"""An effect has the authority that all of its contributors have now: core.gate.authority_meet."""

from __future__ import annotations

import pytest

from holdfast.core.access.authority import Authority
from holdfast.core.gate.authority_meet import check_contributors
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.envelope import ALL, ROLES, Envelope, Right
from holdfast.model.errors import ActorRevoked, EnvelopeExpired, HoldfastError, NotPermitted
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import HOST_ACTOR, SessionId

SESSION = SessionId.of_key(b"a session")
NOW = 1000.0


def actor(name: str, number: int) -> Actor:
    return Actor.of(bytes([number]) * 32, name, "agent", uid=0, created_at=0.0)


ANN, BOT, ROOT = actor("ann", 1), actor("bot", 2), actor("root", 3)


def authority(bot: tuple[str, ...] = (), expires_at: float | None = None) -> Authority:
    judge = Authority([ANN, BOT, ROOT])
    may = tuple(sorted(ROLES["execute"]))
    for each, rights in ((ANN, may), (BOT, tuple(map(Right, bot)) or may)):
        ends = expires_at if each is BOT else None
        envelope = Envelope(each.id, ALL, rights, granted_by=HOST_ACTOR, expires_at=ends)
        judge.set(envelope, now=0.0, live=())
    return judge


def contributor(of: Actor, part: Part, what: str = "", command: int = 0) -> Contributor:
    return Contributor(of.id, of.name, ActorKind.AGENT, part, what, command)


EFFECT = (contributor(ANN, Part.TRIGGER), contributor(BOT, Part.STATE, "var:PATH", 3))


def refusal(judge: Authority, contributors: tuple[Contributor, ...]) -> HoldfastError:
    with pytest.raises(HoldfastError) as refused:
        check_contributors(contributors, judge, SESSION, (), NOW)
    return refused.value


@pytest.mark.requirement("A7")
def test_an_effect_of_several_that_all_may_write_is_not_refused_for_being_foreign() -> None:
    check_contributors(EFFECT, authority(), SESSION, (), NOW)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("part", Part)
def test_one_that_may_not_write_makes_it_refused_whatever_its_part(part: Part) -> None:
    judge = authority(bot=("observe",))
    refused = refusal(judge, (EFFECT[0], contributor(BOT, part, "var:PATH", 3)))
    assert isinstance(refused, NotPermitted)
    assert refused.message.startswith("bot ") and "(command 3)" in refused.message


def test_the_refusal_names_who_what_and_the_way_out() -> None:
    refused = refusal(authority(bot=("observe",)), EFFECT)
    assert "bot set var:PATH, which it uses (command 3)" in refused.message
    assert "hold adopt NAME var:PATH" in refused.hint


def test_it_is_judged_now() -> None:
    judge = authority(expires_at=NOW + 10)
    check_contributors(EFFECT, judge, SESSION, (), NOW)
    with pytest.raises(EnvelopeExpired):
        check_contributors(EFFECT, judge, SESSION, (), NOW + 10)
    judge = authority()
    judge.revoke_actor(BOT.id, by=HOST_ACTOR, now=NOW, live=())
    assert isinstance(refusal(judge, EFFECT), ActorRevoked)


def test_what_the_host_did_counts_for_nobody_and_an_unknown_actor_may_nothing() -> None:
    host = contributor(ANN, Part.TRIGGER).replace(actor=HOST_ACTOR)
    check_contributors((host,), authority(), SESSION, (), NOW)
    unknown = actor("gone", 9)
    assert "no actor known" in refusal(authority(), (contributor(unknown, Part.SHAPED),)).message
