"""Authority: whatever is granted, revoked and left to expire, in whatever order (A2).

The model recomputes what counts from the plain list of envelopes, by the rule as it is written."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.access import authority as authority_module
from holdfast.core.access.authority import Allowance, Authority
from holdfast.core.access.envelope_book import EnvelopeBook, Live
from holdfast.core.access.rate_limits import Limits, Rates
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Right, Scope, ScopeKind
from holdfast.model.errors import HoldfastError, LastAdmin, RateLimited
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.limits import RATE_BURST_S

UID = 1000
SESSIONS = [SessionId.of_key(bytes([n]) * 32) for n in range(3)]
LIVE: list[Live] = [
    (SESSIONS[0], ("x", "y"), UID),
    (SESSIONS[1], ("y",), UID),
    (SESSIONS[2], (), UID),
]
ACTORS = [
    Actor.of(bytes([n]) * 32, f"actor-{n}", "agent", uid=UID if n else 0, created_at=0.0)
    for n in range(4)
]
IDS = [actor.id for actor in ACTORS]
SCOPES = [
    ALL,
    Scope.label("x"),
    Scope.label("y"),
    Scope.label("elsewhere"),
    *(Scope.session(each) for each in SESSIONS),
]
# Few rights, so that they meet.
RIGHTS = (Right.GRANT, Right.INPUT, Right.OBSERVE)

rights = st.lists(st.sampled_from(RIGHTS), unique=True).map(lambda some: tuple(sorted(some)))
expiries = st.sampled_from([None, None, 10.0, 20.0, 30.0])
rates = st.sampled_from([None, None, 1.0, 5.0])
times = st.sampled_from([0.0, 9.0, 10.0, 15.0, 25.0, 40.0])
envelopes = st.builds(
    Envelope,
    st.sampled_from(IDS),
    st.sampled_from(SCOPES),
    rights,
    expires_at=expiries,
    inputs_per_s=rates,
    bytes_per_s=rates,
)


def expected(
    held: tuple[Envelope, ...], session: SessionId, labels: tuple[str, ...], now: float
) -> frozenset[Right]:
    """The rule, written out."""
    own = [each for each in held if each.scope == Scope.session(session)]
    labelled = [each for each in held if each.scope in [Scope.label(label) for label in labels]]
    wide = [each for each in held if each.scope.kind is ScopeKind.ALL]
    counting = own or labelled or wide
    if not counting or any(e.expires_at is not None and e.expires_at <= now for e in counting):
        return frozenset()
    return frozenset(
        right for right in Right if all(right in envelope.rights for envelope in counting)
    )


@pytest.mark.requirement("A2")
@settings(max_examples=300, derandomize=True, deadline=None)
@given(given_=st.lists(envelopes, max_size=12), now=times)
def test_the_narrowest_scope_wins_and_labels_meet(given_: list[Envelope], now: float) -> None:
    authority = Authority(ACTORS, given_)
    held = {(each.actor, each.scope): each for each in given_}
    for actor in IDS:
        mine = tuple(each for (who, _), each in held.items() if who == actor)
        for session, labels, _ in LIVE:
            right = authority.rights(actor, session, labels, now)
            assert right == expected(mine, session, tuple(labels), now)
            allowance = authority.allowance(actor, session, labels, now)
            assert allowance.rights == right
            assert allowance.valid_until > now


@pytest.mark.requirement("A2")
@settings(max_examples=300, derandomize=True, deadline=None)
@given(given_=st.lists(envelopes, max_size=12), when=st.lists(times, min_size=2, max_size=6))
def test_time_never_widens_whichever_way_the_clock_goes(
    given_: list[Envelope], when: list[float]
) -> None:
    authority = Authority(ACTORS, given_)
    for actor in IDS:
        for session, labels, _ in LIVE:
            before = frozenset(Right)
            for now in when:
                has = authority.rights(actor, session, labels, now)
                assert has <= before
                before = has


@pytest.mark.requirement("A2")
@settings(max_examples=200, derandomize=True, deadline=None)
@given(given_=st.lists(envelopes, max_size=10), now=times)
def test_an_allowance_says_what_would_be_said_until_it_ends(
    given_: list[Envelope], now: float
) -> None:
    for actor in IDS:
        for session, labels, _ in LIVE:
            authority = Authority(ACTORS, given_)
            kept = authority.allowance(actor, session, labels, now)
            for later in (now, now + 3, now + 12, now + 100):
                if later < kept.valid_until and kept.version == authority.version:
                    assert authority.rights(actor, session, labels, later) == kept.rights


# -- changes, in long seeded walks ----------------------------------------------------------------


def _random_envelope(rng: random.Random, by: str) -> Envelope:
    return Envelope(
        rng.choice(IDS),
        rng.choice(SCOPES),
        tuple(sorted(rng.sample(RIGHTS, rng.randint(0, 3)))),
        expires_at=rng.choice([None, None, 10.0, 20.0]),
        inputs_per_s=rng.choice([None, None, 1.0, 5.0]),
        granted_by=by,
    )


def _admins(authority: Authority, live: Live) -> set[ActorId]:
    """Who may grant here, and will for ever: asked at a time when everything timed is over."""
    copy = Authority(authority.actors(), authority.envelopes())
    session, labels, _ = live
    return {each for each in IDS if Right.GRANT in copy.rights(each, session, labels, 1e18)}


def walk(seed: int, kinds: dict[str, int]) -> None:
    rng = random.Random(seed)
    authority = Authority(ACTORS)
    for actor in rng.sample(IDS, rng.randint(1, 3)):
        authority.set(Envelope(actor, ALL, tuple(sorted(RIGHTS))), now=0.0, live=LIVE)
    now = 0.0
    for _ in range(60):
        now += rng.choice([0.0, 0.0, 0.0, 1.0])
        by = rng.choice([HOST_ACTOR, *IDS, *IDS, *IDS])
        version, before = authority.version, (authority.envelopes(), authority.actors())
        admins = [_admins(authority, live) for live in LIVE]
        could = _limits_of(authority, by, now)
        try:
            kind = _change(authority, rng, by, now, could)
        except HoldfastError as error:
            assert (authority.envelopes(), authority.actors()) == before, "half changed"
            kind = "last admin" if isinstance(error, LastAdmin) else "refused"
        else:
            assert authority.version > version
        kinds[kind] = kinds.get(kind, 0) + 1
        for live, had in zip(LIVE, admins, strict=True):
            assert not had or _admins(authority, live), "the last admin is gone"


Could = list[tuple[frozenset[Right], float, float]]


def _limits_of(authority: Authority, by: str, now: float) -> Could:
    """What the one who acts has in each live session: rights, until when, how fast."""
    if by == HOST_ACTOR:
        return []
    has = [authority.allowance(ActorId(by), session, labels, now) for session, labels, _ in LIVE]
    return [(each.rights, each.valid_until, _rate(each)) for each in has]


def _rate(allowance: Allowance) -> float:
    limited = allowance.limits is not None and allowance.limits.inputs_per_s
    return limited or float("inf")


def _change(authority: Authority, rng: random.Random, by: str, now: float, could: Could) -> str:
    if rng.random() < 0.25:
        authority.revoke(rng.choice(IDS), rng.choice(SCOPES), by=by, now=now, live=LIVE)
        return "revoked"
    if rng.random() < 0.03:
        authority.revoke_actor(rng.choice(IDS), by=by, now=now, live=LIVE)
        return "actor revoked"
    envelope = _random_envelope(rng, by)
    authority.set(envelope, now=now, live=LIVE)
    for (session, labels, _), (held, until, rate) in zip(LIVE, could, strict=False):
        counting = authority._book.counting(envelope.actor, session, labels)
        if counting != [envelope] or envelope.actor == by:
            continue  # this grant is not what decides here
        got = authority.allowance(envelope.actor, session, labels, now)
        assert got.rights <= held, "a grant gave more than its grantor has"
        if got.rights:
            assert got.valid_until <= until, "a grant outlives its grantor's"
            assert _rate(got) <= rate
    return "granted"


@pytest.mark.requirement("A2")
def test_grants_stay_within_the_grantors_and_an_admin_is_always_left() -> None:
    kinds: dict[str, int] = {}
    for seed in range(150):
        walk(seed, kinds)
    assert min(kinds.values()) > 50, f"the walks do not show what they claim to: {kinds}"
    assert set(kinds) == {"granted", "revoked", "actor revoked", "refused", "last admin"}


def test_an_authority_that_forgets_the_last_admin_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authority_module, "_is_admin", lambda *_: True)
    with pytest.raises(AssertionError, match="the last admin is gone"):
        for seed in range(150):
            walk(seed, {})


def test_an_authority_that_asks_only_for_the_right_to_grant_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = Authority._may_grant

    def lax(self: Authority, envelope: Envelope, now: float, live: list[Live]) -> None:
        whole(self, envelope.replace(rights=()), now, live)

    monkeypatch.setattr(Authority, "_may_grant", lax)
    with pytest.raises(AssertionError, match="a grant gave more"):
        for seed in range(150):
            walk(seed, {})


def test_an_authority_that_judges_a_wide_grant_by_the_wide_envelope_alone_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = EnvelopeBook.throughout

    def shallow(
        self: EnvelopeBook, actor: ActorId, scope: Scope, live: list[Live]
    ) -> list[Envelope]:
        return whole(self, actor, scope, live)[:1]

    monkeypatch.setattr(EnvelopeBook, "throughout", shallow)
    with pytest.raises(AssertionError, match="a grant"):
        for seed in range(150):
            walk(seed, {})


# -- rates ----------------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0, 3.0, -2.0, -1e6]),
        st.integers(1, 12),
    ),
    max_size=60,
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(steps=steps, rate=st.sampled_from([0.2, 1.0, 7.0, 40.0]), size_rate=st.sampled_from([6.0]))
def test_no_more_passes_than_the_rate_and_one_burst(
    steps: list[tuple[float, int]], rate: float, size_rate: float
) -> None:
    buckets, limits = Rates(), Limits(rate, size_rate)
    now, passed, inputs, sizes = 1e7, 0.0, 0, 0
    for seconds, size in steps:
        now += seconds
        passed += max(0.0, seconds)
        try:
            buckets.charge(IDS[0], SESSIONS[0], limits, size, now)
        except RateLimited as refused:
            wait = float(refused.message.rsplit(" ", 2)[1])
            now += wait  # whoever waits as long as it says
            passed += wait
            try:
                buckets.charge(IDS[0], SESSIONS[0], limits, size, now)
            except RateLimited as again:
                assert "bytes" in again.message and "inputs" in refused.message
                continue
        inputs, sizes = inputs + 1, sizes + size
        assert inputs <= max(1.0, rate * RATE_BURST_S) + rate * passed + 1e-6
        assert sizes <= size_rate * RATE_BURST_S + size_rate * passed + 1e-6
