"""Two sessions whose ids begin alike: too rare to wait for with real ids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core.access.authority import Authority
from holdfast.host.session_registry import Registry
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, ROLES, Envelope, Scope
from holdfast.model.errors import AccessRevoked, AmbiguousName, NoSuchSession
from holdfast.model.ids import HOST_ACTOR, SessionId

UID = 1000
OTTO = Actor.of(b"o" * 32, "otto", "agent", uid=UID, created_at=0.0)
ACTOR = Actor.of(b"k" * 32, "ada", "human", uid=UID, created_at=0.0)
FIRST, SECOND = (SessionId("abcdef" + last * 20) for last in "12")


def registry_of(*live: tuple[SessionId, str], authority: Authority | None = None) -> Registry[Any]:
    authority = authority or Authority([ACTOR, OTTO])
    rights = tuple(sorted(ROLES["admin"]))
    authority.set(Envelope(ACTOR.id, ALL, rights, granted_by=HOST_ACTOR), now=0.0, live=())
    store: Any = SimpleNamespace(
        tombstones=lambda _: [], tombstone=lambda _: None, unacknowledged=list
    )
    registry: Registry[Any] = Registry(store, authority)
    for session, name in live:
        spec = SimpleNamespace(id=session, name=name, uid=UID, labels=("ci",), created_at=1.0)
        registry.add(SimpleNamespace(spec=spec))
    return registry


@pytest.mark.requirement("S2")
def test_a_prefix_of_two_ids_is_ambiguous_and_more_of_one_is_not() -> None:
    registry = registry_of((FIRST, "one"), (SECOND, "two"))
    with pytest.raises(AmbiguousName):
        registry.find(ACTOR, "abcdef", by_prefix=True)
    found: Any = registry.find(ACTOR, "abcdef2", by_prefix=True)
    assert found.spec.id == SECOND
    with pytest.raises(NoSuchSession):
        registry.find(ACTOR, "abcdef2")


@pytest.mark.requirement("S2")
def test_a_session_that_was_named_before_its_like_was_born_is_found_by_that_name() -> None:
    """A new id may begin with an older name. The name still means its session."""
    registry = registry_of((FIRST, "old"), (SECOND, "abcdef1"))
    by_name: Any = registry.find(ACTOR, "abcdef1", by_prefix=True)
    assert by_name.spec.id == SECOND
    by_id: Any = registry.find(ACTOR, FIRST, by_prefix=True)
    assert by_id.spec.id == FIRST


# -- access that was taken away ---------------------------------------------------------------

ONE, CI = Scope.session(FIRST), Scope.label("ci")


def told(authority: Authority, text: str = "one") -> type[Exception]:
    """What otto hears that asks for a session, after what was done to its envelopes."""
    registry = registry_of((FIRST, "one"), authority=authority)
    with pytest.raises((AccessRevoked, NoSuchSession)) as caught:
        registry.find(OTTO, text)
    return caught.type


@pytest.mark.parametrize(
    ("granted", "revoked", "at", "expected"),
    [
        ((ONE,), (ONE,), 2.0, AccessRevoked),
        ((CI,), (CI,), 2.0, AccessRevoked),
        ((ALL,), (ALL,), 2.0, AccessRevoked),
        ((ALL,), (ONE,), 2.0, AccessRevoked),
        ((ALL,), (CI,), 2.0, AccessRevoked),
        ((ONE,), (ONE, ONE), 2.0, AccessRevoked),  # a second time
        ((ONE,), (ALL,), 2.0, AccessRevoked),
        ((), (ONE,), 2.0, NoSuchSession),
        ((), (CI,), 2.0, NoSuchSession),
        ((), (), 2.0, NoSuchSession),
        ((CI,), (CI,), 0.5, NoSuchSession),  # the session is younger than that
    ],
)
def test_an_actor_hears_that_its_access_was_revoked_if_it_had_any(
    granted: tuple[Scope, ...],
    revoked: tuple[Scope, ...],
    at: float,
    expected: type[Exception],
) -> None:
    authority = Authority([ACTOR, OTTO])
    live = [(FIRST, ("ci",), UID)] if at > 1.0 else []
    for scope in granted:
        given = Envelope(OTTO.id, scope, tuple(sorted(ROLES["read"])), granted_by=HOST_ACTOR)
        authority.set(given, now=0.0, live=live)
    for scope in revoked:
        authority.revoke(OTTO.id, scope, by=HOST_ACTOR, now=at, live=live)
        at += 10.0
    assert told(authority) is told(authority, FIRST) is expected
    elsewhere = AccessRevoked if ALL in revoked else NoSuchSession
    assert told(authority, "none-of-that-name") is elsewhere, "it says nothing of what there is"
