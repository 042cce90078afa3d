"""Chains of grants of any shape: none gives more than any of its links, none is altered unnoticed,
and whatever bytes come in, only errors of ours come out (R3, R5)."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.access import grant_verifier as judging
from holdfast.core.access.grant_verifier import VerifiedGrant
from holdfast.core.access.invites import InviteBook
from holdfast.core.access.rate_limits import Limits
from holdfast.model import grant as model
from holdfast.model.envelope import Right
from holdfast.model.errors import GrantInvalid, HoldfastError, InviteInvalid
from holdfast.model.grant import Grant, GrantChain, GrantLink, Reach
from holdfast.model.ids import SessionId
from holdfast.model.invite import Invite
from holdfast.model.limits import GRANT_SKEW_S
from holdfast.wire import grants
from holdfast.wire.invites import InviteLink, parse_link, proof_of
from unit.granting import ADA, HOST, HOUR, NOW, PARTIES, SESSION, refusal, verifier

LABELS = ("x", "xy", "y")
SESSIONS = [SESSION, SessionId.of_key(b"u" * 32)]
STEPS = [
    *(f"label:{label}" for label in LABELS),
    *(f"session:{each}" for each in SESSIONS),
    f"host:{HOST.key.hex()}",
]
RIGHTS = ("end", "input", "observe")

reaches = st.lists(st.sampled_from(STEPS), max_size=3).map(lambda steps: Reach(tuple(steps)))
rates = st.sampled_from([None, None, 1.0, 5.0])
claims = st.fixed_dictionaries(
    {
        "reach": reaches,
        "rights": st.lists(st.sampled_from(RIGHTS), unique=True, min_size=1).map(
            lambda some: tuple(sorted(some))
        ),
        "expires": st.sampled_from([NOW + 100, NOW + 200, NOW + 300]),
        "not_before": st.sampled_from([NOW - 10, NOW, NOW + GRANT_SKEW_S + 1]),
        "inputs_per_s": rates,
        "bytes_per_s": rates,
        "delegations": st.integers(0, 5),
    }
)
times = st.sampled_from([float(NOW), NOW + 99.9, NOW + 100.0, NOW + 250.0])


def linked(claimed: list[dict[str, Any]]) -> GrantChain:
    """A chain as its signers made it: each says what it likes."""
    links: list[GrantLink] = []
    for number, claim in enumerate(claimed):
        parent = links[-1] if links else None
        links.append(PARTIES[number].gives(PARTIES[number + 1], parent, **claim))
    return GrantChain(tuple(links))


def narrowed(claimed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same claims, each cut down to what the one before has: a chain that is likely taken."""
    made: list[dict[str, Any]] = []
    for claim in claimed:
        if made:
            before = made[-1]
            rights = tuple(r for r in claim["rights"] if r in before["rights"])
            claim = {
                "rights": rights or before["rights"],
                "reach": Reach((*before["reach"].steps, *claim["reach"].steps)[:8]),
                "expires": min(claim["expires"], before["expires"]),
                "not_before": NOW,
                "delegations": before["delegations"] - 1,
                **{
                    rate: min(
                        (each[rate] for each in (claim, before) if each[rate] is not None),
                        default=None,
                    )
                    for rate in ("inputs_per_s", "bytes_per_s")
                },
            }
        else:
            claim = {**claim, "delegations": 5, "not_before": NOW}
        made.append(claim)
    return made


def allows(grant: Grant, right: str, session: SessionId, labels: list[str], now: float) -> bool:
    """What one link says by itself, spelled out from the page."""
    for step in grant.reach.steps:
        kind, name = step.split(":")
        here: Any = {"label": labels, "session": [session], "host": [HOST.key.hex()]}[kind]
        if name not in here:
            return False
    begun = grant.not_before - GRANT_SKEW_S <= now
    return right in grant.rights and begun and now < grant.expires


@settings(max_examples=400, derandomize=True, deadline=None)
@given(
    st.lists(claims, min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from(SESSIONS),
    st.lists(st.sampled_from(LABELS), unique=True),
    times,
)
def test_no_chain_gives_more_than_any_of_its_links(
    claimed: list[dict[str, Any]], cut: bool, session: SessionId, labels: list[str], now: float
) -> None:
    never_more(claimed, cut, session, labels, now)


def never_more(
    claimed: list[dict[str, Any]], cut: bool, session: SessionId, labels: list[str], now: float
) -> VerifiedGrant | None:
    chain = linked(narrowed(claimed) if cut else claimed)
    try:
        held = verifier().verify(chain, PARTIES[len(claimed)].key, now)
    except HoldfastError as error:
        expired = any(now >= link.grant.expires for link in chain.links)
        assert not cut or (error.code == "grant_expired" and expired)
        return None
    envelope = held.envelope_in(session, labels)
    for link in chain.links:
        grant = link.grant
        assert now < held.until <= grant.expires
        for right in envelope.rights if envelope else ():
            assert allows(grant, right, session, labels, now)
        limits = held.limits or Limits()
        for most, has in (
            (grant.inputs_per_s, limits.inputs_per_s),
            (grant.bytes_per_s, limits.bytes_per_s),
        ):
            assert most is None or (has is not None and has <= most)
    # And no less than all of them together, or the rule above would hold for a host that is shut.
    for name in RIGHTS:
        if all(allows(link.grant, name, session, labels, now) for link in chain.links):
            assert envelope is not None
            assert Right(name) in envelope.rights
    return held


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(claims, min_size=2, max_size=4), st.data())
def test_a_chain_that_lost_or_exchanged_links_is_refused(
    claimed: list[dict[str, Any]], data: st.DataObject
) -> None:
    links = linked(narrowed(claimed)).links
    mixed = data.draw(st.lists(st.sampled_from(links), max_size=4).map(tuple))
    judge = verifier()
    for number in range(1, len(links) + 1):  # every signature is known to be right
        assert refusal(GrantChain(links[:number]), PARTIES[number], by=judge) == ""
    for number in range(1, len(links) + 1):
        whole = mixed == links[:number]
        found = refusal(GrantChain(mixed), PARTIES[number], by=judge)
        assert (found == "") is whole


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    st.lists(claims, min_size=1, max_size=3),
    st.sampled_from(["flip", "cut", "lengthen", "drop", "double"]),
    st.integers(0, 1 << 20),
)
def test_a_chain_that_was_altered_in_any_byte_is_refused(
    claimed: list[dict[str, Any]], change: str, where: int
) -> None:
    chain = linked(narrowed(claimed))
    data = grants.encode_chain(chain)
    at = where % len(data)
    altered = {
        "flip": lambda: data[:at] + bytes([data[at] ^ (1 << where % 8)]) + data[at + 1 :],
        "cut": lambda: data[:at],
        "lengthen": lambda: data + data[:at] + b"\0",
        "drop": lambda: data[:at] + data[at + 1 :],
        "double": lambda: data[:at] + data[at : at + 1] + data[at:],
    }[change]()
    holder, judge = PARTIES[len(claimed)].key, verifier()
    assert judge.verify(grants.decode_chain(data), holder, NOW)
    with pytest.raises(GrantInvalid):
        judge.verify(grants.decode_chain(altered), holder, NOW)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(claims, min_size=1, max_size=4), st.integers(0, 3), st.booleans())
def test_whatever_is_revoked_takes_all_its_descendants_with_it_and_no_ancestor(
    claimed: list[dict[str, Any]], which: int, by_key: bool
) -> None:
    links = linked(narrowed(claimed)).links
    which %= len(links)
    judge = verifier()
    revoked: Any = {"keys": [links[which].grant.holder]} if by_key else {"links": [links[which].id]}
    judge.take(HOST.revokes(1, **revoked), NOW)
    for number in range(1, len(links) + 1):
        found = refusal(GrantChain(links[:number]), PARTIES[number], by=judge)
        assert found == ("grant_revoked" if number > which else "")


# -- bytes --------------------------------------------------------------------------------------


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(claims, min_size=1, max_size=4))
def test_what_was_written_is_read_as_it_was(claimed: list[dict[str, Any]]) -> None:
    chain = linked(claimed)
    data = grants.encode_chain(chain)
    assert grants.decode_chain(data) == chain
    assert grants.chain_of_text(grants.chain_text(chain)) == chain
    assert grants.encode_chain(grants.decode_chain(data)) == data


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8)
    | st.binary(max_size=8) | st.sampled_from([bytes(16), bytes(32), bytes(64)]),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=30,
)  # fmt: skip


@settings(max_examples=400, derandomize=True, deadline=None)
@given(_values, st.binary(max_size=300))
def test_whatever_bytes_come_only_errors_of_ours_come_out(value: Any, noise: bytes) -> None:
    packed = msgpack.packb(value)
    link = msgpack.packb([1, [packed + bytes(64)]])
    for data in (packed, noise, link, packed + bytes(64)):
        with contextlib.suppress(GrantInvalid):
            grants.decode_chain(data)
        with contextlib.suppress(GrantInvalid):
            grants.chain_of_text(data.decode("latin-1"))
        with contextlib.suppress(InviteInvalid):
            parse_link(data.decode("latin-1"))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(max_size=60))
def test_whatever_text_comes_as_a_reach_only_errors_of_ours_come_out(text: str) -> None:
    with contextlib.suppress(GrantInvalid):
        assert str(Reach.parse(text)) == text


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8))
def test_the_code_of_an_invite_stands_behind_the_hash_sign_only(code: bytes, name: bytes) -> None:
    link = InviteLink("https://relay.example", name, code, HOST.key)
    front, secret = link.text().split("#")
    assert front == "https://relay.example/i"
    assert parse_link(f"{front}#{secret}").code == code


# -- invites --------------------------------------------------------------------------------------


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(st.integers(1, 5), st.booleans(), st.sampled_from([0.0, 0.3, 2.0])), max_size=25
    ),
)
def test_never_more_devices_come_in_than_the_invite_is_for_and_never_without_the_code(
    uses: int, tries: list[tuple[int, bool, float]]
) -> None:
    name, code = b"invite-1", bytes(16)
    right, wrong = proof_of(name, code), proof_of(name, b"x" * 16)
    book, now = InviteBook(), float(NOW)
    book.add(
        Invite(name, right, Reach(), ("observe",), NOW + HOUR, 60.0, NOW, ADA.actor, 0, uses), now
    )
    inside: set[bytes] = set()
    for who, knows, pause in tries:
        now += pause
        try:
            made = book.redeem(name, right if knows else wrong, PARTIES[who].key, now)
        except HoldfastError as error:
            full = len(inside) >= uses and PARTIES[who].key not in inside
            assert error.code != "invite_used" or (knows and full)
            continue
        assert knows
        assert made.again is (PARTIES[who].key in inside)
        inside.add(PARTIES[who].key)
        assert len(inside) <= uses
    assert {each.key for each in book.invites()[0].joined} == inside


# -- the tests can fail ---------------------------------------------------------------------------


def _startswith(wide: Reach, narrow: Reach) -> bool:
    return "/".join(narrow.steps).startswith("/".join(wide.steps))


@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (Reach, "covers", _startswith),
        (Reach, "covers", lambda _wide, _narrow: True),
        (judging, "widened", lambda _parent, _child: ""),
        (Reach, "is_met", lambda *_: True),
        (judging, "_check_time", lambda *_: None),
        (judging, "_limits", lambda _grant: None),
        (model.Grant, "known_rights", lambda _grant: frozenset(Right)),
    ],
    ids=[
        "a longer name is within",
        "everything is within",
        "a child may have more",
        "every label is met",
        "nothing ends",
        "no limits",
        "every right is there",
    ],
)
def test_a_judge_that_forgets_a_rule_is_found_out(
    where: Any, name: str, mutant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, mutant)
    chance = random.Random(7)
    for _ in range(4000):
        claimed = [
            {
                "reach": Reach(tuple(chance.choices(STEPS[:3], k=chance.randrange(3)))),
                "rights": tuple(sorted(chance.sample(RIGHTS, chance.randint(1, 3)))),
                "expires": chance.choice([NOW + 10, NOW + 20]),
                "not_before": NOW,
                "inputs_per_s": chance.choice([None, 1.0]),
                "bytes_per_s": None,
                "delegations": 5 - number,
            }
            for number in range(chance.randint(1, 2))
        ]
        labels = chance.sample(LABELS, chance.randrange(4))
        now = chance.choice([NOW, NOW + 15])
        try:
            never_more(claimed, False, SESSION, labels, now)
        except AssertionError:
            return
    raise AssertionError("nobody noticed")
