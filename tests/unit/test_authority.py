"""Who may do what: envelopes, their scopes and limits, and who may change them (A2, R5)."""

from __future__ import annotations

import pytest

from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.rate_limits import Limits
from holdfast.model.actor import Actor, ActorKind, Colour, default_colour
from holdfast.model.envelope import ALL, ROLES, Envelope, Right, Scope, rights_of
from holdfast.model.errors import (
    ActorRevoked,
    EnvelopeExpired,
    InvalidArgument,
    LastAdmin,
    LimitReached,
    NotPermitted,
    RateLimited,
)
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.limits import RATE_BURST_S

UID = 1000
WEB, BUILD = (SessionId.of_key(name * 32) for name in (b"w", b"b"))
LIVE: list[Live] = [(WEB, ("prod", "eu"), UID), (BUILD, (), UID)]


def an_actor(name: str, uid: int = UID) -> Actor:
    key = name.encode().ljust(32, b"\0")
    return Actor.of(key, name, "human", uid=uid, created_at=0.0)


ANN, BOT, CAT = an_actor("ann"), an_actor("bot"), an_actor("cat")


def an_envelope(actor: Actor, scope: str, *words: str, by: str = HOST_ACTOR) -> Envelope:
    return Envelope(actor.id, Scope.parse(scope), rights_of(words), granted_by=by)


def a_host(*envelopes: Envelope) -> Authority:
    """ann is admin of everything; the others have what is given."""
    return Authority([ANN, BOT, CAT], [an_envelope(ANN, "all", "admin"), *envelopes])


def rights(authority: Authority, actor: Actor, now: float = 0.0) -> frozenset[Right]:
    return authority.rights(actor.id, WEB, ("prod", "eu"), now)


# -- which envelope counts ------------------------------------------------------------------------


@pytest.mark.requirement("A2")
def test_without_an_envelope_an_actor_may_do_nothing() -> None:
    assert rights(a_host(), BOT) == frozenset()
    assert rights(a_host(), an_actor("stranger")) == frozenset()


def test_the_narrowest_scope_counts_alone_even_if_it_gives_less() -> None:
    wide = [an_envelope(BOT, "all", "execute")]
    assert rights(a_host(*wide), BOT) == ROLES["execute"]
    wide.append(an_envelope(BOT, "label:prod", "read"))
    assert rights(a_host(*wide), BOT) == ROLES["read"]
    wide.append(an_envelope(BOT, f"session:{WEB}"))
    assert rights(a_host(*wide), BOT) == frozenset()
    assert a_host(*wide).rights(BOT.id, BUILD, (), 0.0) == ROLES["execute"]


def test_of_several_labels_only_what_all_of_them_allow_counts() -> None:
    prod = an_envelope(BOT, "label:prod", "execute").replace(inputs_per_s=5.0, expires_at=90.0)
    eu = an_envelope(BOT, "label:eu", "observe", "input", "end")
    eu = eu.replace(inputs_per_s=9.0, bytes_per_s=8.0, expires_at=99.0)
    allowance = a_host(prod, eu).allowance(BOT.id, WEB, ("prod", "eu", "other"), 0.0)
    assert allowance.rights == {Right.OBSERVE, Right.INPUT}
    assert allowance.valid_until == 90.0
    assert allowance.limits == Limits(5.0, 8.0)


@pytest.mark.requirement("A2")
def test_an_expired_envelope_does_not_fall_through_to_a_wider_one() -> None:
    timed = an_envelope(BOT, f"session:{WEB}", "read").replace(expires_at=10.0)
    authority = a_host(an_envelope(BOT, "all", "admin"), timed)
    assert rights(authority, BOT, 9.9) == ROLES["read"]
    assert rights(authority, BOT, 10.0) == frozenset()
    with pytest.raises(EnvelopeExpired, match="bot's right to observe in session"):
        authority.check(BOT.id, Right.OBSERVE, WEB, (), 10.0)


@pytest.mark.requirement("A2")
def test_a_clock_set_back_brings_no_expired_envelope_to_life() -> None:
    timed = an_envelope(BOT, "all", "read").replace(expires_at=10.0)
    authority = a_host(timed)
    kept = authority.allowance(BOT.id, WEB, (), 9.0)
    assert rights(authority, BOT, 11.0) == frozenset()
    assert rights(authority, BOT, 5.0) == frozenset()
    assert kept.version != authority.version, "a kept allowance would be used on"
    authority.set(timed.replace(expires_at=20.0), now=5.0, live=LIVE)
    assert rights(authority, BOT, 5.0) == ROLES["read"]


# -- refusals -------------------------------------------------------------------------------------


def test_a_refusal_names_actor_right_session_and_who_can_grant_it() -> None:
    authority = a_host(an_envelope(BOT, "all", "read"), an_envelope(CAT, "all", "grant"))
    authority.check(BOT.id, Right.OBSERVE, WEB, (), 0.0)
    with pytest.raises(NotPermitted) as refused:
        authority.check(BOT.id, Right.SEIZE, WEB, (), 0.0)
    assert refused.value.message == f"bot does not have the right to seize in session {WEB}"
    assert refused.value.hint == "ann, cat can grant it"


def test_a_refusal_does_not_name_actors_of_another_unix_user() -> None:
    other, root = an_actor("other", uid=2000), an_actor("root", uid=0)
    envelopes = [an_envelope(each, "all", "admin") for each in (other, root)]
    authority = Authority([BOT, other, root], envelopes)
    with pytest.raises(NotPermitted) as refused:
        authority.check(BOT.id, Right.INPUT, WEB, (), 0.0)
    assert refused.value.hint == "root can grant it"


def test_a_revoked_actor_may_do_nothing_and_is_told_so() -> None:
    authority = a_host(an_envelope(BOT, "all", "admin"))
    kept = authority.allowance(BOT.id, WEB, (), 0.0)
    authority.revoke_actor(BOT.id, by=ANN.id, now=1.0, live=LIVE)
    assert rights(authority, BOT) == frozenset()
    assert kept.version != authority.version
    with pytest.raises(ActorRevoked, match="bot"):
        authority.check(BOT.id, Right.OBSERVE, WEB, (), 1.0)
    with pytest.raises(ActorRevoked):
        authority.set(an_envelope(CAT, "all", "read", by=BOT.id), now=1.0, live=LIVE)


# -- changing -------------------------------------------------------------------------------------


@pytest.mark.requirement("A2")
def test_a_change_counts_at_once_and_raises_the_version() -> None:
    authority = a_host()
    seen = [authority.version]
    authority.set(an_envelope(BOT, "all", "execute", by=ANN.id), now=0.0, live=LIVE)
    assert Right.INPUT in rights(authority, BOT)
    seen.append(authority.version)
    authority.set(an_envelope(BOT, "all", "read", by=ANN.id), now=0.0, live=LIVE)
    assert Right.INPUT not in rights(authority, BOT)
    seen.append(authority.version)
    authority.add_actor(an_actor("new"))
    seen.append(authority.version)
    assert seen == sorted(set(seen))


def test_revoking_in_all_leaves_nothing_anywhere() -> None:
    authority = a_host(
        an_envelope(BOT, "all", "read"),
        an_envelope(BOT, "label:prod", "execute"),
        an_envelope(BOT, f"session:{WEB}", "admin"),
    )
    authority.revoke(BOT.id, ALL, by=ANN.id, now=3.0, live=LIVE)
    (left,) = authority.envelopes(BOT.id)
    assert left == Envelope(BOT.id, ALL, (), granted_by=ANN.id, granted_at=3.0, seen_until=3.0)


@pytest.mark.requirement("A5")
def test_a_full_book_of_envelopes_refuses_giving_and_never_taking_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = a_host(an_envelope(BOT, "all", "execute"))
    monkeypatch.setattr("holdfast.core.access.authority.ENVELOPES_MAX", 2)
    web = f"session:{WEB}"
    for wider in (
        an_envelope(BOT, web, "admin", by=ANN.id),
        an_envelope(CAT, web, "observe", by=ANN.id),
    ):
        with pytest.raises(LimitReached):
            host.set(wider, now=0.0, live=LIVE)
    host.set(an_envelope(BOT, web, "observe", by=ANN.id), now=0.0, live=LIVE)
    assert rights(host, BOT) == frozenset(rights_of(("observe",)))
    with pytest.raises(LimitReached):  # it would last longer than what it is taken from
        soon = an_envelope(CAT, "all", "execute", by=ANN.id).replace(expires_at=5.0)
        full = a_host(soon)
        full.set(an_envelope(CAT, web, "observe", by=ANN.id), now=0.0, live=LIVE)
    host.revoke(BOT.id, Scope.parse("label:prod"), by=ANN.id, now=0.0, live=LIVE)
    host.revoke(CAT.id, Scope.parse(f"session:{BUILD}"), by=ANN.id, now=0.0, live=LIVE)
    host.revoke_actor(CAT.id, by=ANN.id, now=0.0, live=LIVE)


def test_revoking_in_a_session_leaves_an_explicit_nothing_there() -> None:
    authority = a_host(an_envelope(BOT, "all", "execute"))
    authority.revoke(BOT.id, Scope.session(WEB), by=ANN.id, now=3.0, live=LIVE)
    assert rights(authority, BOT) == frozenset()
    assert authority.rights(BOT.id, BUILD, (), 3.0) == ROLES["execute"]


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.revoke(ANN.id, ALL, by=ANN.id, now=1.0, live=LIVE),
        lambda a: a.revoke(ANN.id, Scope.session(BUILD), by=ANN.id, now=1.0, live=LIVE),
        lambda a: a.revoke(ANN.id, Scope.label("eu"), by=ANN.id, now=1.0, live=LIVE),
        lambda a: a.revoke_actor(ANN.id, by=ANN.id, now=1.0, live=LIVE),
        lambda a: a.set(an_envelope(ANN, "all", "execute", by=ANN.id), now=1.0, live=LIVE),
        lambda a: a.set(
            an_envelope(ANN, "all", "admin", by=ANN.id).replace(expires_at=1e12), now=1, live=LIVE
        ),
        lambda a: a.revoke(ANN.id, ALL, by=HOST_ACTOR, now=1.0, live=LIVE),
    ],
    ids=["all", "session", "label", "actor", "narrowed", "expiry", "by the host"],
)
def test_the_last_admin_of_a_session_cannot_be_removed(change: object) -> None:
    """bot may grant as well, but not for ever; another unix user's actor cannot come here."""
    fleeting = an_envelope(BOT, "all", "admin").replace(expires_at=1e9)
    authority = a_host(fleeting)
    authority.add_actor(an_actor("other", uid=2000))
    authority.set(an_envelope(an_actor("other", uid=2000), "all", "admin"), now=0.0, live=LIVE)
    before = (authority.version, authority.envelopes(), authority.actors())
    assert callable(change)
    with pytest.raises(LastAdmin, match="ann is the last"):
        change(authority)
    assert (authority.version, authority.envelopes(), authority.actors()) == before


def test_an_admin_can_go_when_another_stays() -> None:
    authority = a_host(an_envelope(CAT, "all", "admin"))
    authority.revoke_actor(ANN.id, by=ANN.id, now=1.0, live=LIVE)
    assert Right.GRANT in authority.rights(CAT.id, WEB, ("prod",), 1.0)


def test_a_session_that_never_had_an_admin_holds_up_no_change() -> None:
    authority = Authority([BOT])
    authority.set(an_envelope(BOT, "all", "read"), now=0.0, live=LIVE)
    authority.revoke(BOT.id, ALL, by=HOST_ACTOR, now=0.0, live=LIVE)


# -- nobody grants more than it has ---------------------------------------------------------------


def test_a_grantor_grants_within_its_own_rights_expiry_and_rates() -> None:
    own = an_envelope(BOT, "label:prod", "execute", "grant")
    authority = a_host(own.replace(expires_at=100.0, inputs_per_s=5.0))
    good = an_envelope(CAT, f"session:{WEB}", "read", by=BOT.id)
    good = good.replace(expires_at=100.0, inputs_per_s=5.0)
    authority.set(good, now=0.0, live=LIVE)
    beyond = [
        good.replace(rights=(Right.SEIZE,)),
        good.replace(expires_at=101.0),
        good.replace(expires_at=None),
        good.replace(inputs_per_s=6.0),
        good.replace(inputs_per_s=None),
        good.replace(scope=ALL),
        good.replace(scope=Scope.session(BUILD)),
    ]
    for envelope in beyond:
        version = authority.version
        with pytest.raises(NotPermitted):
            authority.set(envelope, now=0.0, live=LIVE)
        assert authority.version == version
    with pytest.raises(NotPermitted):
        authority.set(good, now=100.0, live=LIVE)


def test_without_the_right_to_grant_nothing_is_granted_or_taken() -> None:
    authority = a_host(an_envelope(BOT, "all", "execute"))
    with pytest.raises(NotPermitted, match="right to grant"):
        authority.set(an_envelope(CAT, "all", "read", by=BOT.id), now=0.0, live=LIVE)
    with pytest.raises(NotPermitted):
        authority.revoke(CAT.id, ALL, by=BOT.id, now=0.0, live=LIVE)
    with pytest.raises(NotPermitted):
        authority.revoke_actor(CAT.id, by=BOT.id, now=0.0, live=LIVE)


def test_one_that_was_narrowed_somewhere_cannot_widen_itself_by_a_wider_scope() -> None:
    narrowed = an_envelope(BOT, f"session:{WEB}", "observe", "grant")
    authority = a_host(an_envelope(BOT, "all", "admin"), narrowed)
    for scope in ("all", "label:prod", f"session:{WEB}"):
        with pytest.raises(NotPermitted):
            authority.set(an_envelope(BOT, scope, "admin", by=BOT.id), now=0.0, live=LIVE)
    authority.set(an_envelope(CAT, f"session:{BUILD}", "admin", by=BOT.id), now=0.0, live=LIVE)
    authority.set(an_envelope(CAT, "label:dev", "admin", by=BOT.id), now=0.0, live=LIVE)


# -- rates ----------------------------------------------------------------------------------------


def a_slow_host(**rates: float) -> Authority:
    return a_host(an_envelope(BOT, "all", "execute").replace(**rates))


def test_too_many_inputs_are_refused_and_the_message_says_until_when() -> None:
    authority = a_slow_host(inputs_per_s=2.0)
    for _ in range(int(2.0 * RATE_BURST_S)):
        authority.charge(BOT.id, WEB, (), 1, 100.0)
    with pytest.raises(RateLimited, match=r"allowed again in 0\.51 s") as refused:
        authority.charge(BOT.id, WEB, (), 1, 100.0)
    assert refused.value.retryable
    authority.charge(BOT.id, BUILD, (), 1, 100.0)
    authority.charge(BOT.id, WEB, (), 1, 100.51)


def test_an_input_refused_for_its_bytes_does_not_use_up_an_input() -> None:
    authority = a_slow_host(inputs_per_s=0.5, bytes_per_s=10.0)
    with pytest.raises(InvalidArgument, match="ever lets through"):
        authority.charge(BOT.id, WEB, (), 21, 0.0)
    authority.charge(BOT.id, WEB, (), 20, 0.0)


def test_a_clock_set_back_neither_refunds_nor_freezes_a_rate() -> None:
    authority = a_slow_host(inputs_per_s=0.5)
    authority.charge(BOT.id, WEB, (), 1, 1e6)
    with pytest.raises(RateLimited, match=r"in 2\.01 s"):
        authority.charge(BOT.id, WEB, (), 1, 5.0)
    authority.charge(BOT.id, WEB, (), 1, 7.01)


# -- values ---------------------------------------------------------------------------------------


def test_scopes_have_one_text_each() -> None:
    for text in ("all", "label:prod", f"session:{WEB}"):
        assert str(Scope.parse(text)) == text
        assert Scope.unpack(Scope.parse(text).pack()) == Scope.parse(text)
    for text in ("", "all:", "all:x", "label", "label:", "label:a b", "session:web", "tag:x"):
        with pytest.raises(InvalidArgument):
            Scope.parse(text)


@pytest.mark.requirement("R5")
def test_rights_exactly_those_of_a_role_have_its_name() -> None:
    assert {an_envelope(BOT, "all", role).role for role in ROLES} == set(ROLES)
    assert an_envelope(BOT, "all", "read", "end").role == ""
    assert an_envelope(BOT, "all").role == ""
    with pytest.raises(InvalidArgument, match="'sudo'"):
        rights_of(["sudo"])


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(InvalidArgument):
        an_envelope(BOT, "all", "read").replace(inputs_per_s=rate).checked()


def test_an_actor_is_known_by_its_key_and_one_key_is_no_session() -> None:
    key = b"k" * 32
    assert ActorId.of_key(key) == ActorId.of_key(key)
    assert str(ActorId.of_key(key)) != str(SessionId.of_key(key))
    with pytest.raises(ValueError, match="not an actor id"):
        ActorId(HOST_ACTOR)


def test_an_actor_that_makes_no_sense_is_refused() -> None:
    assert ANN.kind is ActorKind.HUMAN
    assert ANN.colour is default_colour(ANN.id) is not Colour.BLACK
    assert Actor.unpack(ANN.pack()) == ANN
    for change in (
        {"name": ""},
        {"name": "-x"},
        {"name": "a b"},
        {"name": "x" * 65},
        {"key": b"short"},
        {"key": b"z" * 32},
        {"display": "\x1b[31m"},
        {"uid": -1},
    ):
        with pytest.raises(InvalidArgument):
            ANN.replace(**change).checked()
    for kind, colour in (("ghost", ""), ("human", "mauve")):
        with pytest.raises(InvalidArgument):
            Actor.of(b"k" * 32, "x", kind, colour=colour, uid=1, created_at=0.0)


def test_one_name_means_one_actor_until_it_is_revoked() -> None:
    authority = a_host()
    again = Actor.of(b"n" * 32, "bot", "agent", uid=UID, created_at=1.0)
    with pytest.raises(InvalidArgument, match="already an actor 'bot'"):
        authority.add_actor(again)
    with pytest.raises(InvalidArgument, match="already known as actor 'bot'"):
        authority.add_actor(BOT.replace(name="bot2"))
    authority.revoke_actor(BOT.id, by=ANN.id, now=2.0, live=LIVE)
    authority.add_actor(again)
