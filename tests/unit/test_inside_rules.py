"""From inside a session: every actor behind a connection is judged, whatever it acts as (A11)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core import events as ev
from holdfast.core.access import inside_rules
from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.host_rules import RULES, About
from holdfast.core.access.inside_rules import NEEDS, SENSITIVE
from holdfast.core.turn.machine import TurnMachine
from holdfast.host.connection.from_inside import note_writers
from holdfast.host.connection.request_table import RequestTable
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, ROLES, Envelope, Scope
from holdfast.model.errors import ActorRevoked, EnvelopeExpired, NotPermitted, RateLimited
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.inside import Inside
from holdfast.model.limits import TURN_HOLDERS_MAX
from holdfast.wire.messages import session as m
from unit.test_request_table import HOST_UID, NOW, ROLE_NAMES, Sessions, actor, authority, rows

HERE = SessionId("0" * 26)
LIVE: Live = (HERE, (), HOST_UID)
ADMIN, READER, NOBODY = actor(4, "admin"), actor(2, "read"), actor(1, "nothing")
UNKNOWN = ActorId.of_key(b"?" * 32)


class Written:
    """A live session, to which it is told who has a part in what is written there."""

    def __init__(self, id: str = "1" * 26) -> None:
        self.spec = SimpleNamespace(id=SessionId(id))
        self.core = SimpleNamespace(turn=TurnMachine())
        self.handled = 0

    def handle(self, event: ev.WrittenFromInside) -> None:
        self.handled += 1
        self.core.turn.add_writers(event.actors)


class LiveSessions(Sessions):
    def find_running(self, _: Actor, text: str, *, by_prefix: bool) -> Any:
        return Written()


def asked(tag: str, who: Actor, inside: Inside | None, judge: Authority) -> Any:
    operator: Any = SimpleNamespace(actor=who, uid=HOST_UID, inside=inside)
    request: Any = SimpleNamespace(tag=tag, session="s")
    return RequestTable(rows(), LiveSessions(), judge, HOST_UID).answer(operator, request)


def test_every_request_has_a_row() -> None:
    assert set(NEEDS) == set(RULES) and set(RULES) >= SENSITIVE
    for tag, rule in RULES.items():
        assert rule.scope is About.HOST or NEEDS[tag], f"{tag} about a session needs some right"
        assert rule.right is None or rule.right in NEEDS[tag], tag


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("tag", sorted(RULES))
@pytest.mark.parametrize("number", range(1, 5))
def test_an_admin_from_inside_may_ask_what_the_other_behind_it_may(tag: str, number: int) -> None:
    judge, other = authority(), actor(number, ROLE_NAMES[number - 1])
    inside = Inside(HERE, (ADMIN.id, other.id), (ADMIN.id, other.id))
    about_session = RULES[tag].scope is not About.HOST
    needed = {"observe", *NEEDS[tag]} if about_session else {*NEEDS[tag]}
    has = ROLES.get(other.name, frozenset())
    if needed <= has:
        asked(tag, ADMIN, inside, judge)
    else:
        with pytest.raises(NotPermitted, match="from inside a session"):
            asked(tag, ADMIN, inside, judge)
    asked(tag, ADMIN, None, judge)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("tag", sorted(SENSITIVE - {"grant", "revoke", "make_invite"}))
def test_what_is_sensitive_needs_everybody_that_wrote_there(tag: str) -> None:
    judge = authority()
    asked(tag, ADMIN, Inside(HERE, (ADMIN.id,), (ADMIN.id,)), judge)
    with pytest.raises(NotPermitted, match="that wrote in this session"):
        asked(tag, ADMIN, Inside(HERE, (ADMIN.id,), (READER.id, ADMIN.id)), judge)
    asked("exec", ADMIN, Inside(HERE, (ADMIN.id,), (READER.id, ADMIN.id)), judge)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("tag", sorted(RULES))
def test_where_nobody_can_tell_what_is_sensitive_is_refused(tag: str) -> None:
    inside = Inside(HERE, (ADMIN.id,), (ADMIN.id,), told=False)
    if tag in SENSITIVE:
        with pytest.raises(NotPermitted, match="level plain") as refusal:
            asked(tag, ADMIN, inside, authority())
        assert "terminal" in refusal.value.hint
    else:
        asked(tag, ADMIN, inside, authority())


def test_an_actor_that_is_unknown_revoked_or_of_another_user_allows_nothing() -> None:
    judge = authority()
    stranger = actor(9, "stranger", uid=HOST_UID + 1)
    judge.add_actor(stranger)
    rights = tuple(sorted(ROLES["admin"]))
    judge.set(Envelope(stranger.id, ALL, rights, granted_by=HOST_ACTOR), now=NOW, live=())
    for other in (UNKNOWN, stranger.id):
        for tag in ("show", "run"):
            with pytest.raises(NotPermitted):
                asked(tag, ADMIN, Inside(HERE, (other,), (other,)), judge)
    execute = actor(3, "execute")
    judge.revoke_actor(execute.id, by=HOST_ACTOR, now=NOW, live=())
    with pytest.raises(ActorRevoked):
        asked("show", ADMIN, Inside(HERE, (execute.id,), ()), judge)


def test_a_right_of_the_other_counts_where_it_was_given_and_while_it_lasts() -> None:
    judge = authority()
    rights, scope = tuple(sorted(ROLES["execute"])), Scope.session(HERE)
    given = Envelope(NOBODY.id, scope, rights, NOW + 10, granted_by=HOST_ACTOR)
    judge.set(given, now=NOW, live=[LIVE])
    elsewhere = (SessionId("1" * 26), (), HOST_UID)

    def check(session: Live | None, now: float) -> None:
        inside_rules.check_others("exec", NEEDS["exec"], judge, ADMIN, [NOBODY.id], session, now)

    check(LIVE, NOW)
    for session in (elsewhere, None):
        with pytest.raises(NotPermitted):
            check(session, NOW)
    with pytest.raises(EnvelopeExpired):
        check(LIVE, NOW + 11)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    "request_",
    [
        m.Input(1, "s", 1, b"x" * 40),
        m.Submit(1, "s", 1, "x" * 40),
        m.Exec(1, "s", 1, "x" * 40),
        m.Keys(1, "s", 1, ("x",) * 40),
    ],
    ids=lambda request: request.tag,
)
def test_what_is_typed_from_inside_counts_against_the_rates_of_the_others_behind(
    request_: m.Request,
) -> None:
    judge = authority()
    rights, scope = tuple(sorted(ROLES["execute"])), Scope.session(HERE)
    slow = Envelope(NOBODY.id, scope, rights, granted_by=HOST_ACTOR, bytes_per_s=40.0)
    judge.set(slow, now=NOW, live=[LIVE])
    table = RequestTable(rows(), LiveSessions(), judge, HOST_UID)
    both = Inside(HERE, (ADMIN.id, NOBODY.id), ())
    inside: Any = SimpleNamespace(actor=ADMIN, uid=HOST_UID, inside=both)
    outside: Any = SimpleNamespace(actor=ADMIN, uid=HOST_UID, inside=None)
    with pytest.raises(RateLimited):
        for _ in range(20):
            table.answer(inside, request_)
    table.answer(outside, request_)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    ("own", "typist", "acts_as_typist"),
    [
        (1000, 1000, True),
        (0, 0, True),
        (0, 1000, True),  # sudo in a user's session: no more than that user
        (1000, 0, False),  # root typed into a user's session: that user's programs are not root
        (1000, None, False),
    ],
)
def test_as_whom_a_connection_from_inside_acts(
    own: int, typist: int | None, acts_as_typist: bool
) -> None:
    user = actor(1, "user", uid=own)
    first = None if typist is None else actor(2, "typist", uid=typist)
    assert inside_rules.acts_as(user, first) == (first if acts_as_typist else user)


def test_one_of_several_is_not_taken_for_who_set_a_process_off() -> None:
    both = (ADMIN.id, READER.id)
    assert inside_rules.set_off_by(Inside(HERE, both, both)) == ADMIN.id
    assert inside_rules.set_off_by(Inside(HERE, both, both, told=False)) is None
    assert inside_rules.set_off_by(Inside(HERE, both[:1], both, told=False)) == ADMIN.id


def test_attaching_to_write_and_seizing_with_a_halt_need_more() -> None:
    assert "input" in inside_rules.rights_needed("attach", writes=True)
    assert "input" not in inside_rules.rights_needed("attach")
    assert "halt" in inside_rules.rights_needed("seize", halts=True)
    attach, judge = m.Attach(1, "s", 0), authority()
    operator: Any = SimpleNamespace(
        actor=ADMIN, uid=HOST_UID, inside=Inside(HERE, (READER.id,), (READER.id,))
    )
    table = RequestTable(rows(), LiveSessions(), judge, HOST_UID)
    with pytest.raises(NotPermitted):
        table.answer(operator, attach)
    table.answer(operator, attach.replace(observe=True))


@pytest.mark.requirement("A11")
def test_whoever_wrote_in_a_session_counts_as_a_writer_of_what_it_writes_in() -> None:
    inside = Inside(HERE, (ADMIN.id,), (READER.id, ADMIN.id))
    written: Any = Written()
    own: Any = Written(HERE)
    note_writers(inside, written)
    assert set(written.core.turn.holders) == {READER.id, ADMIN.id}
    note_writers(inside, written)  # each key would be kept once more
    note_writers(None, written)
    note_writers(inside, own)
    assert (written.handled, own.handled, own.core.turn.holders) == (1, 0, ())


def test_more_writers_than_are_kept_are_somebody_whom_nobody_knows() -> None:
    turn = TurnMachine()
    turn.add_writers([ActorId.of_key(number.to_bytes(32, "big")) for number in range(600)])
    assert len(turn.holders) == TURN_HOLDERS_MAX and turn.has_written([UNKNOWN])
