"""One table of requests: each has one row, one rule, and nothing runs before the rule was asked."""

from __future__ import annotations

from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core.access import host_rules
from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.host_rules import RULES, About, Rule
from holdfast.host.connection.request_table import RequestTable, handlers
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, ROLES, Envelope, Right, Scope
from holdfast.model.errors import ActorRevoked, EnvelopeExpired, NotPermitted, Unsupported
from holdfast.model.grant import Reach
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.wire.messages import BY_TAG
from holdfast.wire.messages import session as m

HOST_UID, STRANGER, NOW = 1000, 1001, 1e9
REQUESTS = {tag: kind for tag, kind in BY_TAG.items() if issubclass(kind, m.Request)}
ABOUT_ONE = (About.LIVE, About.KNOWN, About.ANY)
ROLE_NAMES = ("nothing", "read", "execute", "admin")


class _Anything:
    """A room whose handlers tell what they were given."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: (name, *given)


def rows() -> dict[str, Any]:
    room: Any = _Anything()
    return handlers(*[room] * len(signature(handlers).parameters))


def actor(number: int, name: str, uid: int = HOST_UID) -> Actor:
    return Actor.of(bytes([number]) * 32, name, "human", uid=uid, created_at=0.0)


def authority() -> Authority:
    actors = [actor(number, name) for number, name in enumerate(ROLE_NAMES, 1)]
    judge = Authority(actors)
    for each in actors[1:]:
        rights = tuple(sorted(ROLES[each.name]))
        judge.set(Envelope(each.id, ALL, rights, granted_by=HOST_ACTOR), now=NOW, live=())
    return judge


class Sessions:
    def find_live(self, _: Actor, text: str) -> None:
        return None

    def find(self, _: Actor, text: str, *, by_prefix: bool) -> str:
        return f"found {text}"

    def find_running(self, _: Actor, text: str, *, by_prefix: bool) -> str:
        return f"running {text}"

    def as_judged(self, _: object) -> Live:
        return SessionId("0" * 26), (), HOST_UID


def asked(tag: str, who: Actor, judge: Authority, uid: int = HOST_UID, session: str = "s") -> Any:
    operator: Any = SimpleNamespace(actor=who, uid=uid, inside=None)
    request: Any = SimpleNamespace(tag=tag, session=session)
    table = RequestTable(rows(), Sessions(), judge, HOST_UID)
    answer: Any = table.answer(operator, request)
    return answer[3:]  # behind the handler's name, the operator and the request


def test_every_request_has_one_row_and_one_rule() -> None:
    assert set(rows()) == set(RULES) == set(REQUESTS)


@pytest.mark.parametrize("tag", sorted(RULES))
def test_a_row_about_a_session_gets_the_one_its_request_names(tag: str) -> None:
    scope, fields = RULES[tag].scope, REQUESTS[tag].__annotations__
    assert (scope in ABOUT_ONE) == ("session" in fields)
    found = {About.HOST: (), About.LIVE: ("running s",)}.get(scope, ("found s",))
    assert asked(tag, actor(4, "admin"), authority()) == found
    if scope is About.ANY:
        assert asked(tag, actor(4, "admin"), authority(), session="") == (None,)


def test_a_tag_without_a_row_is_not_supported() -> None:
    with pytest.raises(Unsupported):
        asked("hello", actor(4, "admin"), authority())


# Which roles may ask, on a connection of the host's own unix user.
WHO_MAY = {
    "run": {"execute", "admin"},
    "revive": {"execute", "admin"},
    "add_actor": {"admin"},
    "revoke_actor": {"admin"},
    "set_relays": {"admin"},
    "get_relays": {"admin"},
    "can_take": {"admin"},
    "metrics": {"admin"},
    "prune": {"admin"},
    "reap": {"admin"},
    "restart_daemon": {"admin"},
    "shutdown": {"admin"},
}


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("tag", sorted(RULES))
def test_who_may_ask_before_anything_is_looked_at(tag: str) -> None:
    judge = authority()
    for number, name in enumerate(ROLE_NAMES, 1):
        who = actor(number, name)
        if name in WHO_MAY.get(tag, set(ROLE_NAMES)):
            asked(tag, who, judge)
        else:
            with pytest.raises(NotPermitted, match=f"^{name} may not"):
                asked(tag, who, judge)


HOST_WIDE = {
    "set_relays",
    "get_relays",
    "can_take",
    "metrics",
    "prune",
    "reap",
    "restart_daemon",
    "shutdown",
}


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("tag", sorted(RULES))
@pytest.mark.parametrize(
    ("connection_uid", "actor_uid", "is_host_user"),
    [
        (HOST_UID, HOST_UID, True),  # also a guest through a relay whom the host's user invited
        (0, HOST_UID, True),
        (0, 0, True),
        (STRANGER, HOST_UID, False),
        (STRANGER, STRANGER, False),  # also a guest whom the stranger invited
        (0, STRANGER, False),  # root that acts as a stranger's actor
    ],
)
def test_what_is_host_wide_needs_the_hosts_unix_user_besides_the_right_for_all(
    tag: str, connection_uid: int, actor_uid: int, is_host_user: bool
) -> None:
    who = actor(4, "admin", uid=actor_uid)
    judge = Authority([who])
    envelope = Envelope(who.id, ALL, tuple(sorted(ROLES["admin"])), granted_by=HOST_ACTOR)
    judge.set(envelope, now=NOW, live=())
    if tag in HOST_WIDE and not is_host_user:
        with pytest.raises(NotPermitted, match="only root and the user this host runs as"):
            asked(tag, who, judge, uid=connection_uid)
    else:
        asked(tag, who, judge, uid=connection_uid)


@pytest.mark.requirement("A2")
@pytest.mark.parametrize("tag", sorted(RULES))
def test_an_actor_that_was_revoked_may_only_claim_to_be_another(tag: str) -> None:
    judge, who = authority(), actor(3, "execute")
    judge.revoke_actor(who.id, by=HOST_ACTOR, now=NOW, live=())
    if tag == "claim":
        asked(tag, who, judge)
    else:
        with pytest.raises(ActorRevoked):
            asked(tag, who, judge)


@pytest.mark.requirement("A2")
def test_an_expired_right_is_told_apart_from_none() -> None:
    judge, who = authority(), actor(2, "read")
    rights = tuple(sorted(ROLES["admin"]))
    envelope = Envelope(who.id, ALL, rights, NOW + 1, granted_by=HOST_ACTOR)
    judge.set(envelope, now=NOW, live=())
    host_rules.check(Rule(About.HOST, Right.GRANT), judge, who, HOST_UID, HOST_UID, NOW)
    with pytest.raises(EnvelopeExpired):
        host_rules.check(Rule(About.HOST, Right.GRANT), judge, who, HOST_UID, HOST_UID, NOW + 2)


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(
    ("asker", "wanted", "host", "may"),
    [
        (1000, 1000, 1000, True),
        (1000, 1000, 0, True),
        (0, 1000, 0, True),
        (0, 0, 0, True),
        (1000, 1001, 0, False),  # only root may choose
        (1000, 0, 0, False),
        (0, 1001, 1000, False),  # a host that is not root's becomes nobody else
        (0, 0, 1000, False),
    ],
)
def test_as_which_unix_user_a_session_may_be_started(
    asker: int, wanted: int, host: int, may: bool
) -> None:
    who = actor(1, "who", uid=asker)
    if may:
        host_rules.check_may_run_as(who, wanted, "user", host)
    else:
        with pytest.raises(NotPermitted):
            host_rules.check_may_run_as(who, wanted, "user", host)


@pytest.mark.requirement("A2")
def test_an_invite_is_seen_by_its_maker_and_by_those_who_may_take_it_back() -> None:
    session = SessionId("0" * 26)
    judge, live = authority(), [(session, (), HOST_UID)]
    maker, admin, reader = actor(3, "execute"), actor(4, "admin"), actor(2, "read")
    invite: Any = SimpleNamespace(
        uid=HOST_UID, created_by=maker.id, reach=Reach.of_scope(Scope.session(session))
    )

    def sees(who: Actor) -> bool:
        return host_rules.may_see_invite(judge, who, invite, NOW, live)

    assert sees(maker) and sees(admin) and not sees(reader)
    assert not sees(actor(4, "admin", uid=HOST_UID + 1)), "of another unix user"
    judge.revoke_actor(admin.id, by=HOST_ACTOR, now=NOW, live=())
    assert not sees(admin)
