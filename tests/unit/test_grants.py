"""Chains of grants: what a host takes, and what it refuses, rule by rule (R3, R5)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.adapters.signing import check
from holdfast.core.access.grant_verifier import Root
from holdfast.core.access.rate_limits import Limits
from holdfast.model import limits
from holdfast.model.envelope import Right, Scope, rights_of
from holdfast.model.errors import GrantInvalid, GrantRevoked
from holdfast.model.grant import GrantChain, Reach
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.wire import grants
from unit.granting import (
    ADA,
    AGENT,
    HOST,
    HOUR,
    MALLORY,
    NOW,
    ORG,
    OTHER,
    PARTIES,
    PHONE,
    SESSION,
    Party,
    chain,
    judged,
    refusal,
    three_links,
    verifier,
)

# -- what a chain gives -----------------------------------------------------------------------


def test_a_grant_of_the_host_gives_its_holder_an_envelope() -> None:
    held = judged(chain(HOST.gives(ADA, inputs_per_s=5.0)), ADA)
    envelope = held.envelope_in(SESSION, ())
    assert envelope is not None
    assert (envelope.actor, envelope.scope) == (ADA.actor, Scope.session(SESSION))
    assert envelope.role == "execute"
    assert (envelope.expires_at, envelope.inputs_per_s) == (NOW + 8 * HOUR, 5.0)
    assert (envelope.granted_by, envelope.granted_at) == (HOST_ACTOR, NOW)
    assert envelope == envelope.checked()


def test_an_agent_is_delegated_to_for_minutes_and_has_what_is_left() -> None:
    links = chain(*three_links())
    held = judged(links, AGENT)
    assert held.rights == {Right.OBSERVE}
    assert (held.until, held.granted_by, held.first) == (NOW + 300, PHONE.actor, ADA.actor)
    assert refusal(links, AGENT, NOW + 299.9) == ""
    assert refusal(links, AGENT, NOW + 300) == "grant_expired"


def test_the_rates_of_the_last_link_are_what_counts() -> None:
    first = HOST.gives(ADA, inputs_per_s=10.0, bytes_per_s=1000.0)
    second = ADA.gives(AGENT, first, inputs_per_s=2.0)
    assert judged(chain(first, second), AGENT).limits == Limits(2.0, 1000.0)


def test_rights_that_this_version_does_not_know_are_worth_nothing_but_can_be_handed_on() -> None:
    first = HOST.gives(ADA, rights=("observe", "teleport"))
    second = ADA.gives(AGENT, first, rights=("observe", "teleport"))
    assert judged(chain(first, second), AGENT).rights == {Right.OBSERVE}
    more = ADA.gives(AGENT, first, rights=("observe", "unheard.of"))
    assert refusal(chain(first, more), AGENT) == "grant_invalid"


# -- where it counts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wide", "narrow", "covered"),
    [
        ("all", "all", True),
        ("all", "label:x", True),
        ("label:x", "label:x", True),
        ("label:x", "label:xy", False),
        ("label:xy", "label:x", False),
        ("label:team-a/label:x", "label:team-a/label:x", True),
        ("label:team-a/label:x", "label:team-a/label:xy", False),
        ("label:team-a/label:x", f"label:team-a/label:x/session:{SESSION}", True),
        ("label:team-a/label:x", "label:team-a", False),
        ("label:team-a", "label:x/label:team-a", False),
        (f"session:{SESSION}", "all", False),
        (f"host:{'0' * 64}", f"host:{'0' * 63}1", False),
    ],
)
def test_a_reach_covers_only_what_goes_on_from_its_last_whole_step(
    wide: str, narrow: str, covered: bool
) -> None:
    assert Reach.parse(wide).covers(Reach.parse(narrow)) is covered
    first = HOST.gives(ADA, reach=Reach.parse(wide))
    second = ADA.gives(AGENT, first, reach=Reach.parse(narrow))
    assert refusal(chain(first, second), AGENT) == ("" if covered else "grant_invalid")


@pytest.mark.parametrize(
    ("reach", "session", "labels", "met"),
    [
        ("all", SESSION, (), True),
        ("label:x", SESSION, ("x", "y"), True),
        ("label:x", SESSION, ("xy",), False),
        ("label:x/label:y", SESSION, ("y", "x"), True),
        ("label:x/label:y", SESSION, ("x",), False),
        (f"session:{SESSION}", SESSION, (), True),
        (f"session:{SESSION}", OTHER, (), False),
        (f"label:x/session:{SESSION}", SESSION, ("x",), True),
        (f"label:x/session:{SESSION}", SESSION, (), False),
        (f"host:{HOST.key.hex()}", SESSION, (), True),
        (f"host:{ORG.key.hex()}", SESSION, (), False),
    ],
)
def test_a_session_must_meet_every_step_of_a_reach(
    reach: str, session: SessionId, labels: tuple[str, ...], met: bool
) -> None:
    held = judged(chain(HOST.gives(ADA, reach=Reach.parse(reach))), ADA)
    assert (held.envelope_in(session, labels) is not None) is met


@pytest.mark.parametrize(
    "text",
    ["", "label:", "label:a b", "x", "all/label:x", "session:short", "host:00", "label:x/", "/"],
)
def test_what_is_no_reach_is_refused(text: str) -> None:
    with pytest.raises(GrantInvalid):
        Reach.parse(text)


def test_the_scopes_of_envelopes_have_a_reach() -> None:
    assert Reach.of_scope(Scope()) == Reach()
    assert str(Reach.of_scope(Scope.label("prod"))) == "label:prod"
    assert Reach.of_scope(Scope.session(SESSION)).checked().is_met(b"", SESSION, ())


# -- narrower at every hop ----------------------------------------------------------------------

_LIMITED: dict[str, Any] = {
    "reach": Reach(("label:x",)),
    "rights": ("input", "observe"),
    "expires": NOW + HOUR,
    "inputs_per_s": 5.0,
    "bytes_per_s": 100.0,
    "delegations": 2,
}


@pytest.mark.parametrize(
    "wider",
    [
        {"reach": Reach()},
        {"reach": Reach(("label:y",))},
        {"rights": ("end", "input", "observe")},
        {"rights": ("end",)},
        {"expires": NOW + HOUR + 1},
        {"inputs_per_s": None},
        {"inputs_per_s": 5.1},
        {"bytes_per_s": None},
        {"bytes_per_s": 101.0},
        {"delegations": 2},
        {"delegations": 5},
    ],
    ids=str,
)
def test_a_link_that_is_more_than_the_one_before_is_refused(wider: dict[str, Any]) -> None:
    first = HOST.gives(ADA, **_LIMITED)
    fits = ADA.gives(AGENT, first)
    assert refusal(chain(first, fits), AGENT) == ""
    assert refusal(chain(first, ADA.gives(AGENT, first, **wider)), AGENT) == "grant_invalid"
    with pytest.raises(GrantInvalid):  # and who hands it on is told so before
        grants.extend(chain(first), ADA.says(AGENT, first, **wider), ADA.signing.sign)


def test_what_may_not_be_handed_on_is_not() -> None:
    first = HOST.gives(ADA, delegations=0)
    assert refusal(chain(first), ADA) == ""
    with pytest.raises(GrantInvalid, match="may not be delegated"):
        judged(chain(first, ADA.gives(AGENT, first)), AGENT)


def test_a_chain_has_at_most_six_links() -> None:
    links = [PARTIES[0].gives(PARTIES[1])]
    for number in range(1, limits.GRANT_LINKS_MAX):
        links.append(PARTIES[number].gives(PARTIES[number + 1], links[-1]))
    assert refusal(chain(*links), PARTIES[6]) == ""
    assert links[-1].grant.delegations == 0
    links.append(PARTIES[6].gives(PARTIES[7], links[-1]))
    with pytest.raises(GrantInvalid, match="1 to 6 links"):
        judged(GrantChain(tuple(links)), PARTIES[7])
    with pytest.raises(GrantInvalid):
        grants.encode_chain(GrantChain(tuple(links)))
    assert refusal(GrantChain(()), ADA) == "grant_invalid"


# -- by whom, for whom ----------------------------------------------------------------------------


def test_a_stolen_chain_is_of_no_use_without_the_holders_key() -> None:
    links = chain(*three_links())
    assert refusal(links, AGENT) == ""
    for thief in (MALLORY, PHONE, ADA, HOST):
        assert refusal(links, thief) == "grant_invalid"


def test_a_stolen_chain_cannot_be_handed_on_to_a_key_of_ones_own() -> None:
    first = HOST.gives(ADA)
    forged = MALLORY.says(MALLORY, first).replace(issuer=ADA.key)
    stolen = grants.sign_grant(forged, MALLORY.signing.sign)
    assert refusal(chain(first, stolen), MALLORY) == "grant_invalid"
    own = MALLORY.gives(MALLORY, first)  # signed rightly, but nothing was given to this issuer
    assert refusal(chain(first, own), MALLORY) == "grant_invalid"


def test_a_chain_must_begin_with_an_authority_that_is_trusted() -> None:
    foreign = chain(ORG.gives(ADA))
    assert refusal(foreign, ADA) == "grant_invalid"
    assert refusal(foreign, ADA, by=verifier(Root(ORG.key))) == ""


def test_the_end_of_a_chain_is_no_chain() -> None:
    first, second, third = three_links()
    by = verifier(Root(ADA.key))  # even if the one it then begins with were trusted
    assert refusal(chain(second, third), AGENT, by=by) == "grant_invalid"
    assert refusal(chain(first, third), AGENT) == "grant_invalid"
    assert refusal(chain(second, first, third), AGENT) == "grant_invalid"


def test_a_link_hangs_on_one_parent_only() -> None:
    wide = HOST.gives(ADA, rights=rights_of(["admin"]))
    narrow = HOST.gives(ADA, rights=("observe",), serial=b"n" * 16)
    under_narrow = ADA.gives(AGENT, narrow)
    assert refusal(chain(narrow, under_narrow), AGENT) == ""
    assert refusal(chain(wide, under_narrow), AGENT) == "grant_invalid"


def test_a_signature_for_one_grant_serves_no_other() -> None:
    first, other = HOST.gives(ADA), HOST.gives(MALLORY)
    mixed = other.replace(signature=first.signature)
    by = verifier()
    assert refusal(chain(first), ADA, by=by) == ""  # both signatures are known to be right
    assert refusal(chain(other), MALLORY, by=by) == ""
    assert refusal(GrantChain((mixed,)), MALLORY, by=by) == "grant_invalid"


# -- time -----------------------------------------------------------------------------------------


def test_an_issuer_whose_clock_is_ahead_is_borne_with_up_to_the_skew() -> None:
    skew = limits.GRANT_SKEW_S
    links = chain(HOST.gives(ADA))
    assert refusal(links, ADA, NOW - skew) == ""
    assert refusal(links, ADA, NOW - skew - 0.1) == "grant_invalid"


def test_the_end_is_exact_by_the_hosts_clock() -> None:
    links = chain(HOST.gives(ADA, expires=NOW + 60))
    assert refusal(links, ADA, NOW + 59.999) == ""
    assert refusal(links, ADA, NOW + 60) == "grant_expired"


def test_every_link_must_count_at_the_time() -> None:
    first = HOST.gives(ADA, not_before=NOW + HOUR, expires=NOW + 2 * HOUR)
    second = ADA.gives(AGENT, first, not_before=NOW)
    assert refusal(chain(first, second), AGENT) == "grant_invalid"
    assert refusal(chain(first, second), AGENT, NOW + HOUR) == ""


# -- taking back ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(3))
def test_revoking_a_link_kills_all_that_hangs_on_it_and_nothing_else(number: int) -> None:
    links = three_links()
    by = verifier()
    by.take(HOST.revokes(1, links=[links[number].id]), NOW)
    for length, holder in enumerate((ADA, PHONE, AGENT), start=1):
        found = refusal(chain(*links[:length]), holder, by=by)
        assert found == ("grant_revoked" if length > number else "")
    sibling = HOST.gives(ADA, serial=b"2" * 16)
    assert refusal(chain(sibling), ADA, by=by) == ""


@pytest.mark.parametrize("number", range(3))
def test_revoking_a_key_kills_what_it_holds_and_what_it_handed_on(number: int) -> None:
    links = three_links()
    by = verifier()
    by.take(HOST.revokes(1, keys=[(ADA, PHONE, AGENT)[number].key]), NOW)
    for length, holder in enumerate((ADA, PHONE, AGENT), start=1):
        found = refusal(chain(*links[:length]), holder, by=by)
        assert found == ("grant_revoked" if length > number else "")


def test_signing_a_revoked_grant_again_does_not_bring_it_back() -> None:
    link = HOST.gives(ADA)
    again = link.replace(signature=bytes(64))
    by = verifier(check=lambda *_: True)  # as if the other signature were right too
    by.take(HOST.revokes(1, links=[link.id]), NOW)
    assert refusal(chain(again), ADA, by=by) == "grant_revoked"


def test_a_link_that_is_known_is_revoked_like_any_other() -> None:
    links, by = chain(HOST.gives(ADA)), verifier()
    assert refusal(links, ADA, by=by) == ""
    by.take(HOST.revokes(1, keys=[ADA.key]), NOW)
    assert refusal(links, ADA, by=by) == "grant_revoked"


def test_an_older_list_of_revocations_does_not_come_back() -> None:
    links, by = chain(HOST.gives(ADA)), verifier()
    older = HOST.revokes(1)
    assert by.take(older, NOW)
    assert by.take(HOST.revokes(2, keys=[ADA.key]), NOW)
    assert not by.take(older, NOW)
    assert not by.take(HOST.revokes(2), NOW)
    assert refusal(links, ADA, by=by) == "grant_revoked"
    assert by.versions() == {HOST.key: 2}


def test_a_list_must_be_signed_by_an_authority_that_is_trusted() -> None:
    by = verifier()
    with pytest.raises(GrantInvalid):
        by.take(ORG.revokes(1, keys=[ADA.key]), NOW)
    forged = HOST.revokes(1, keys=[ADA.key]).replace(signature=bytes(64))
    with pytest.raises(GrantInvalid):
        by.take(forged, NOW)
    with pytest.raises(GrantInvalid):  # it would stay fresh for ever
        by.take(HOST.revokes(1, issued_at=NOW + limits.GRANT_SKEW_S + 1), NOW)
    assert by.versions() == {}


def test_the_hosts_list_counts_for_all_and_another_authoritys_for_its_own() -> None:
    by = verifier(Root(ORG.key))
    ours, theirs = chain(HOST.gives(ADA)), chain(ORG.gives(PHONE))
    by.take(ORG.revokes(1, keys=[ADA.key]), NOW)
    assert refusal(ours, ADA, by=by) == ""
    by.take(HOST.revokes(1, keys=[PHONE.key]), NOW)
    assert refusal(theirs, PHONE, by=by) == "grant_revoked"


def test_without_a_fresh_list_an_authoritys_grants_are_good_for_observing_only() -> None:
    by = verifier(Root(ORG.key, fresh_s=60.0))
    links = chain(ORG.gives(ADA))
    assert judged(links, ADA, by=by).rights == {Right.OBSERVE}
    by.take(ORG.revokes(1, issued_at=NOW), NOW)
    held = judged(links, ADA, by=by)
    assert Right.INPUT in held.rights
    assert held.until == NOW + 60
    assert judged(links, ADA, NOW + 60, by=by).rights == {Right.OBSERVE}
    assert judged(chain(HOST.gives(ADA)), ADA, NOW + 60, by=by).rights > {Right.OBSERVE}


# -- what is remembered ---------------------------------------------------------------------------


class Counting:
    def __init__(self) -> None:
        self.checks = 0

    def __call__(self, key: bytes, text: bytes, signature: bytes) -> bool:
        self.checks += 1
        return check(key, text, signature)


def test_a_signature_that_is_known_to_be_right_is_not_checked_again() -> None:
    counting = Counting()
    by = verifier(check=counting)
    links = three_links()
    for _ in range(3):
        judged(chain(*links), AGENT, by=by)
    assert counting.checks == 3
    judged(chain(*links[:2]), PHONE, by=by)
    assert counting.checks == 3


def test_a_signature_that_is_wrong_is_not_remembered_as_right() -> None:
    bad = HOST.gives(ADA).replace(signature=bytes(64))
    by = verifier()
    assert [refusal(GrantChain((bad,)), ADA, by=by) for _ in range(2)] == ["grant_invalid"] * 2


def test_what_is_remembered_is_bounded_and_the_least_recently_used_goes() -> None:
    counting = Counting()
    by = verifier(check=counting)
    kept = chain(HOST.gives(ADA))
    judged(kept, ADA, by=by)
    for number in range(1, limits.GRANT_KNOWN_LINKS + 1):
        judged(chain(HOST.gives(ADA, serial=number.to_bytes(16))), ADA, by=by)
        judged(kept, ADA, by=by)
    assert len(by._known) == limits.GRANT_KNOWN_LINKS
    before = counting.checks
    judged(kept, ADA, by=by)
    assert counting.checks == before
    judged(chain(HOST.gives(ADA, serial=bytes(15) + b"\1")), ADA, by=by)
    assert counting.checks == before + 1


def test_a_refusal_names_what_is_wrong() -> None:
    first = HOST.gives(ADA)
    with pytest.raises(GrantInvalid, match="it lasts longer"):
        judged(chain(first, ADA.gives(AGENT, first, expires=NOW + 9 * HOUR)), AGENT)
    by = verifier()
    by.take(HOST.revokes(1, keys=[ADA.key]), NOW)
    with pytest.raises(GrantRevoked, match="revoked"):
        judged(chain(first), ADA, by=by)


def test_a_chain_of_another_version_is_refused_as_such() -> None:
    data = grants.encode_chain(chain(HOST.gives(ADA)))
    with pytest.raises(GrantInvalid, match="version 2"):
        grants.decode_chain(b"\x92\x02" + data[2:])


def test_parties_have_different_keys() -> None:
    assert len({party.key for party in (HOST, ADA, PHONE, AGENT, MALLORY, ORG)}) == 6
    assert Party(1).key == HOST.key
