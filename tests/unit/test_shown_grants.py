"""What the grants that connections show come to, and how the one judge on the host takes them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import NOTHING, Intersection
from holdfast.core.access.grant_verifier import Root
from holdfast.core.access.presented_grants import PresentedGrants
from holdfast.core.access.rate_limits import Limits
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Right, Scope, rights_of
from holdfast.model.errors import GrantExpired, GrantInvalid, LimitReached, NotPermitted
from holdfast.model.grant import GrantChain, Reach
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.limits import OPERATORS_MAX
from unit.granting import (
    ADA,
    AGENT,
    HOST,
    HOUR,
    MALLORY,
    NOW,
    ORG,
    OTHER,
    SESSION,
    Party,
    chain,
    three_links,
    verifier,
)

_FIVE_MINUTES = 300


def shown() -> PresentedGrants:
    return PresentedGrants(verifier())


def rights(
    book: PresentedGrants, who: Party, session: SessionId = SESSION, now: float = NOW
) -> set[str]:
    return {*book.allowed(who.actor, session, ("team-a", "x"), now).rights}


def test_a_chain_counts_while_its_connection_lasts() -> None:
    book = shown()
    book.show("one", chain(*three_links()), AGENT.key, NOW)
    assert rights(book, AGENT) == {"observe"}
    assert rights(book, ADA) == set()
    assert book.allowed(AGENT.actor, SESSION, (), NOW) == NOTHING
    before = book.version
    book.withdraw("one")
    assert rights(book, AGENT) == set()
    assert book.version > before
    book.withdraw("one")


def test_who_is_away_still_stands_by_what_it_came_with_and_cannot_act_by_it() -> None:
    came = chain(HOST.gives(ADA, rights=("input", "observe")))
    judging = verifier()
    book = PresentedGrants(judging, lambda actor: [came] if actor == ADA.actor else [])

    def standing(now: float = NOW) -> set[str]:
        return {*book.allowed_while_away(ADA.actor, SESSION, (), now).rights}

    assert rights(book, ADA) == set()
    assert standing() == {"input", "observe"}
    assert book.allowed_while_away(MALLORY.actor, SESSION, (), NOW) == NOTHING
    assert standing(NOW + 9 * HOUR) == set(), "it has expired"
    narrower = chain(HOST.gives(ADA, rights=("observe",)))
    book.show("one", narrower, ADA.key, NOW)
    assert standing() == {"observe"}, "who is here has what it shows, and no more"
    judging.take(HOST.revokes(1, links=[narrower.links[0].id]), NOW)
    book.review(NOW)
    assert standing() == set(), "it is here, and what it shows was taken back"
    book.withdraw("one")
    assert standing() == {"input", "observe"}
    judging.take(HOST.revokes(2, links=[narrower.links[0].id, came.links[0].id]), NOW)
    assert standing() == set()


def test_what_a_device_shows_on_many_connections_is_counted_once_and_ends_with_the_last() -> None:
    book, one = shown(), chain(HOST.gives(ADA))
    many = [str(number) for number in range(200)]
    for each in many:
        book.show(each, one, ADA.key, NOW)
    assert len(book._held(ADA.actor, NOW)) == 1
    had = book.version
    assert {book.withdraw(each) for each in many[1:]} == {None}
    assert book.version == had, "nothing has changed"
    assert rights(book, ADA)
    assert book.withdraw(many[0]) is not None
    assert book.version > had
    assert rights(book, ADA) == set()


def test_what_is_shown_on_many_connections_expires_on_all_of_them() -> None:
    book, one = shown(), chain(HOST.gives(ADA))
    for each in ("one", "two", "three"):
        book.show(each, one, ADA.key, NOW)
    had, late = book.version, NOW + 9 * HOUR
    assert rights(book, ADA, now=late) == set()
    assert book.version > had
    assert rights(book, ADA) == set() and not book.links(), "the clock was set back"


def test_a_chain_that_is_refused_leaves_the_one_before() -> None:
    book = shown()
    book.show("one", chain(*three_links()), AGENT.key, NOW)
    with pytest.raises(GrantInvalid):
        book.show("one", chain(HOST.gives(ADA)), AGENT.key, NOW)
    assert rights(book, AGENT) == {"observe"}


def test_a_connection_that_shows_another_chain_has_only_that_one() -> None:
    book = shown()
    book.show("one", chain(HOST.gives(ADA, rights=("input", "observe"))), ADA.key, NOW)
    book.show("one", chain(HOST.gives(ADA, rights=("observe",))), ADA.key, NOW)
    assert rights(book, ADA) == {"observe"}


def test_a_connection_that_shows_a_chain_of_another_key_leaves_nothing_to_the_first() -> None:
    book = shown()
    book.show("one", chain(HOST.gives(ADA, rights=("observe",))), ADA.key, NOW)
    book.show("one", chain(HOST.gives(MALLORY)), MALLORY.key, NOW)
    assert rights(book, ADA) == set()
    assert "input" in rights(book, MALLORY)


def test_an_expired_chain_is_gone_and_a_clock_set_back_does_not_bring_it_back() -> None:
    book = shown()
    book.show("one", chain(*three_links()), AGENT.key, NOW)
    before = book.version
    assert rights(book, AGENT, now=NOW + _FIVE_MINUTES) == set()
    assert book.version > before
    assert rights(book, AGENT, now=NOW) == set()


def test_several_chains_of_an_actor_add_up_under_the_tightest_rates_and_the_nearest_end() -> None:
    book = shown()
    one = HOST.gives(ADA, rights=("observe",), expires=NOW + 60, inputs_per_s=9.0)
    two = HOST.gives(ADA, rights=("input",), expires=NOW + 90, inputs_per_s=2.0)
    book.show("one", chain(one), ADA.key, NOW)
    book.show("two", chain(two), ADA.key, NOW)
    both = frozenset({Right.OBSERVE, Right.INPUT})
    assert book.allowed(ADA.actor, SESSION, (), NOW) == Intersection(
        both, NOW + 60, Limits(2.0, None)
    )
    assert rights(book, ADA, now=NOW + 60) == {"input"}


def test_revocations_end_what_is_shown_already() -> None:
    judge = verifier()
    book = PresentedGrants(judge)
    first, second, third = three_links()
    book.show("ada", chain(first), ADA.key, NOW)
    book.show("agent", chain(first, second, third), AGENT.key, NOW)
    judge.take(HOST.revokes(1, links=[second.id]), NOW)
    assert book.review(NOW) == ("agent",)
    assert rights(book, AGENT) == set()
    assert "input" in rights(book, ADA)


def test_an_authority_whose_list_grows_old_loses_all_but_observing_and_gets_it_back() -> None:
    judge = verifier(Root(ORG.key, fresh_s=60.0))
    book = PresentedGrants(judge)
    judge.take(ORG.revokes(1), NOW)
    book.show("one", chain(ORG.gives(ADA)), ADA.key, NOW)
    assert book.allowed(ADA.actor, SESSION, (), NOW).until == NOW + 60
    assert rights(book, ADA, now=NOW + 60) == {"observe"}
    judge.take(ORG.revokes(2, issued_at=NOW + 61), NOW + 61)
    assert book.review(NOW + 61) == ()
    assert "input" in rights(book, ADA, now=NOW + 61)


def test_more_connections_than_a_host_has_show_nothing() -> None:
    book, links = PresentedGrants(verifier()), chain(HOST.gives(ADA))
    for number in range(OPERATORS_MAX):
        book.show(str(number), links, ADA.key, NOW)
    with pytest.raises(LimitReached):
        book.show("one more", links, ADA.key, NOW)
    book.show("0", links, ADA.key, NOW)


# -- the hook -------------------------------------------------------------------------------------


def _taking(links: GrantChain, who: Party) -> Authority:
    """The host's judge: where its own envelopes say nothing of an actor, what the actor shows is
    what counts."""
    book = shown()
    book.show("one", links, who.key, NOW)
    actor = Actor.of(who.key, "ada", "human", uid=1000, created_at=0.0)
    return Authority([actor], shown=book)


def test_the_hosts_judge_takes_what_is_shown_with_its_rates_and_end() -> None:
    judge = _taking(chain(HOST.gives(ADA, inputs_per_s=3.0, expires=NOW + 60)), ADA)
    judge.check(ADA.actor, Right.INPUT, SESSION, (), NOW)
    allowance = judge.allowance(ADA.actor, SESSION, (), NOW)
    assert (allowance.valid_until, allowance.limits) == (NOW + 60, Limits(3.0, None))
    assert judge.rights(ADA.actor, SESSION, (), NOW + 60) == frozenset()
    assert judge.rights(MALLORY.actor, SESSION, (), NOW) == frozenset()


def test_what_the_host_says_of_an_actor_stands_whatever_it_shows() -> None:
    judge = _taking(chain(HOST.gives(ADA)), ADA)
    says: Any = {"granted_by": HOST_ACTOR, "granted_at": float(NOW)}
    judge.set(Envelope(ADA.actor, Scope.session(OTHER), (), **says), now=NOW, live=())
    assert judge.rights(ADA.actor, OTHER, (), NOW) == frozenset()
    assert Right.INPUT in judge.rights(ADA.actor, SESSION, (), NOW)
    judge.set(Envelope(ADA.actor, ALL, (Right.OBSERVE,), **says), now=NOW, live=())
    assert judge.rights(ADA.actor, SESSION, (), NOW) == {Right.OBSERVE}


def test_a_revoked_actor_has_nothing_whatever_it_shows() -> None:
    judge = _taking(chain(HOST.gives(ADA)), ADA)
    judge.revoke_actor(ADA.actor, by=HOST_ACTOR, now=NOW, live=())
    assert judge.rights(ADA.actor, SESSION, (), NOW) == frozenset()


def test_a_label_taken_off_a_session_takes_it_out_of_reach_at_once() -> None:
    judge = _taking(chain(HOST.gives(ADA, reach=Reach(("label:x",)))), ADA)
    assert Right.INPUT in judge.rights(ADA.actor, SESSION, ("x",), NOW)
    assert judge.rights(ADA.actor, SESSION, (), NOW) == frozenset()


def test_what_is_judged_from_memory_is_judged_anew_when_something_shown_ends() -> None:
    judge = _taking(chain(HOST.gives(ADA)), ADA)
    kept = judge.allowance(ADA.actor, SESSION, (), NOW)
    assert kept.version == judge.version
    assert judge.shown is not None
    judge.shown.withdraw("one")
    assert kept.version != judge.version


def test_who_loses_what_it_showed_is_told_why_but_only_where_that_reached() -> None:
    judge = _taking(chain(HOST.gives(ADA, reach=Reach((f"session:{SESSION}",)))), ADA)
    assert Right.INPUT in judge.rights(ADA.actor, SESSION, (), NOW)
    late = NOW + 9 * HOUR
    with pytest.raises(GrantExpired):
        judge.check(ADA.actor, Right.OBSERVE, SESSION, (), late)
    with pytest.raises(NotPermitted):
        judge.check(ADA.actor, Right.OBSERVE, OTHER, (), late)
    assert judge.shown is not None
    judge.shown.withdraw("one")
    with pytest.raises(NotPermitted):
        judge.check(ADA.actor, Right.OBSERVE, SESSION, (), late)


@pytest.mark.parametrize(
    ("steps", "everywhere"),
    [((), True), ((f"host:{HOST.key.hex()}",), True), ((f"host:{ADA.key.hex()}",), False),
     (("label:x",), False), ((f"session:{SESSION}",), False)],
)  # fmt: skip
def test_what_reaches_all_of_the_host_counts_for_what_is_done_to_no_session_yet(
    steps: tuple[str, ...], everywhere: bool
) -> None:
    judge = _taking(chain(HOST.gives(ADA, reach=Reach(steps))), ADA)
    if everywhere:
        judge.check_everywhere(ADA.actor, Right.INPUT, NOW)
    else:
        with pytest.raises(NotPermitted):
            judge.check_everywhere(ADA.actor, Right.INPUT, NOW)
    with pytest.raises(NotPermitted):
        judge.check_everywhere(ADA.actor, Right.GRANT, NOW)


def test_who_is_admin_by_what_it_shows_takes_away_but_gives_no_envelope() -> None:
    """An envelope would stand when the grant it came from is revoked."""
    judge = _taking(chain(HOST.gives(ADA, rights=rights_of(["admin"]))), ADA)
    judge.add_actor(Actor.of(AGENT.key, "agent", "agent", uid=1000, created_at=0.0))
    gift = Envelope(AGENT.actor, ALL, (Right.OBSERVE,), NOW + 1.0, granted_by=ADA.actor)
    with pytest.raises(NotPermitted) as refused:
        judge.set(gift, now=NOW, live=())
    assert "hold delegate" in refused.value.hint
    judge.revoke(AGENT.actor, Scope.session(SESSION), by=ADA.actor, now=NOW, live=())
    judge.revoke_actor(AGENT.actor, by=ADA.actor, now=NOW, live=())
    narrowed = Envelope(ADA.actor, Scope.label("y"), (), granted_by=HOST_ACTOR)
    judge.set(narrowed, now=NOW, live=())
    with pytest.raises(NotPermitted):
        judge.revoke(AGENT.actor, Scope.label("y"), by=ADA.actor, now=NOW, live=())
