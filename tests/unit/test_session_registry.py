"""Two sessions whose ids begin alike: too rare to wait for with real ids."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core.access.authority import Authority
from holdfast.host.session_registry import Registry
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, ROLES, Envelope
from holdfast.model.errors import AmbiguousName, NoSuchSession
from holdfast.model.ids import HOST_ACTOR, SessionId

UID = 1000
ACTOR = Actor.of(b"k" * 32, "ada", "human", uid=UID, created_at=0.0)
FIRST, SECOND = (SessionId("abcdef" + last * 20) for last in "12")


def registry_of(*live: tuple[SessionId, str]) -> Registry[Any]:
    authority = Authority([ACTOR])
    rights = tuple(sorted(ROLES["admin"]))
    authority.set(Envelope(ACTOR.id, ALL, rights, granted_by=HOST_ACTOR), now=0.0, live=())
    store: Any = SimpleNamespace(
        tombstones=lambda _: [], tombstone=lambda _: None, unacknowledged=list
    )
    registry: Registry[Any] = Registry(store, authority)
    for session, name in live:
        spec = SimpleNamespace(id=session, name=name, uid=UID, labels=())
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
