"""Admission on the host: who comes in, what is written down before it is answered, what is over at
once (R3, R5, A2)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.host import clock
from holdfast.host import json_file as record_files
from holdfast.host.access.revocation import Revoked
from holdfast.model.envelope import ROLES, Envelope, Right, Scope
from holdfast.model.errors import (
    ActorRevoked,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    HoldfastError,
    InvalidArgument,
    InviteExpired,
    InviteInvalid,
    InviteUsed,
    LimitReached,
    NoSuchActor,
    NotPermitted,
    RateLimited,
    StorageFailed,
)
from holdfast.model.grant import GrantChain
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.limits import DELEGATES_MAX, INVITE_WRONG_MAX, REVOCATIONS_MAX
from holdfast.wire import grants
from holdfast.wire.invites import psk_of
from unit.admitting import LABELS, UID, FakeDaemon, handed_on, restarted
from unit.granting import (
    ADA,
    AGENT,
    HOST,
    HOUR,
    MALLORY,
    NOW,
    PARTIES,
    PHONE,
    SESSION,
)

EXECUTE = set(ROLES["execute"])


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[FakeDaemon]:
    yield FakeDaemon(tmp_path)
    clock._latest, clock._behind = 0.0, None  # other tests live in their own time


def refused(error: type[HoldfastError], call: Any, *words: Any) -> str:
    with pytest.raises(error) as raised:
        call(*words)
    assert type(raised.value) is error
    return raised.value.message


# -- invites --------------------------------------------------------------------------------------


@pytest.mark.requirement("R3", "R5")
def test_a_device_that_joins_is_an_actor_of_the_inviters_user_and_may_what_was_said(
    daemon: FakeDaemon,
) -> None:
    chain = daemon.joins(PHONE, daemon.invite(), "phone")
    actor = daemon.actor(PHONE)
    assert (actor.name, actor.kind, actor.uid, actor.local) == ("phone", "device", UID, False)
    assert daemon.rights(PHONE) == set(), "the grant counts when it is shown, not before"
    assert daemon.admission.admit("one", PHONE.key, chain, NOW + 2) == actor
    assert daemon.rights(PHONE) == EXECUTE
    assert daemon.actors.authority.rights(PHONE.actor, SESSION, (), NOW + 2) == frozenset()
    daemon.admission.withdraw("one")
    assert daemon.rights(PHONE) == set()


@pytest.mark.requirement("R3")
def test_what_was_answered_is_known_to_the_daemon_that_comes_after(daemon: FakeDaemon) -> None:
    invite = daemon.invite()
    chain = daemon.joins(PHONE, invite, "phone")
    after = restarted(daemon)
    assert refused(InviteUsed, after.joins, MALLORY, invite)
    assert after.joins(PHONE, invite, "another-name", NOW + 900) == chain, "the same, as often"
    assert after.actor(PHONE).name == "phone"
    assert after.admission.admit("one", PHONE.key, chain, NOW + 901).name == "phone"
    (entry,) = after.admission.devices.entries()
    assert (entry.invite, entry.came_at, entry.given_by) == (invite.id, NOW + 1, after.owner.id)


@pytest.mark.requirement("R3")
def test_a_use_is_on_disk_before_the_chain_is_given_out(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon killed at any moment before its answer: either the use is written, or nobody has the
    chain. Killed here by what cannot be caught as an error, right after each write."""
    invite = daemon.invite()
    really = record_files.write
    written = []

    class KilledError(BaseException):
        pass

    def write_and_die(path: str, record: Any) -> None:
        really(path, record)
        written.append(os.path.basename(path))
        if path.endswith("admission.json"):
            raise KilledError

    monkeypatch.setattr(record_files, "write", write_and_die)
    with pytest.raises(KilledError):
        daemon.joins(PHONE, invite)
    assert written == ["authority.json", "admission.json"]
    monkeypatch.undo()
    after = restarted(daemon)
    refused(InviteUsed, after.joins, MALLORY, invite)
    after.joins(PHONE, invite)


@pytest.mark.requirement("R3")
def test_a_use_that_could_not_be_written_is_not_used_up_and_not_answered(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite = daemon.invite()

    def full(path: str, record: Any) -> None:
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(record_files, "write", full)
    refused(StorageFailed, daemon.joins, PHONE, invite)
    refused(StorageFailed, daemon.invite)
    monkeypatch.undo()
    assert daemon.admission.devices.entries() == ()
    assert [each.joined for each in daemon.admission.invites.invites()] == [()]
    daemon.joins(MALLORY, invite)


def test_the_code_is_kept_nowhere(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    code = bytes(range(100, 116))
    really = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: code if n == len(code) else really(n))
    invite = daemon.invite()
    daemon.joins(PHONE, invite)
    kept = Path(daemon.home.state, "admission.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert code.hex() not in kept.read_text() and invite.proof.hex() in kept.read_text()


def test_the_secret_of_the_handshake_is_the_one_of_the_link(daemon: FakeDaemon) -> None:
    invite = daemon.invite()
    assert daemon.admission.psk(invite.id, NOW) == psk_of(invite.proof, HOST.key)


@pytest.mark.requirement("R3")
def test_an_invite_ends_and_a_clock_set_back_does_not_bring_it_back(daemon: FakeDaemon) -> None:
    invite = daemon.invite()
    end = NOW + HOUR
    daemon.admission.psk(invite.id, end - 1)
    daemon.admission.psk(invite.id, end)  # so that who has the code can be told
    refused(InviteExpired, daemon.joins, PHONE, invite, "", end)
    after = restarted(daemon)
    refused(InviteExpired, after.joins, PHONE, invite, "", NOW)
    assert clock.now() >= end, "nor does the rest of the host live in the past"


@pytest.mark.requirement("R3")
def test_guesses_are_slowed_down_counted_on_disk_and_close_the_invite(daemon: FakeDaemon) -> None:
    invite = daemon.invite(expires_s=9.0 * HOUR)
    now = float(NOW)
    for _ in range(2):
        daemon.admission.psk(invite.id, now)
        daemon.admission.guessed(invite.id, now)
    refused(RateLimited, daemon.admission.psk, invite.id, now)
    after = restarted(daemon)
    assert after.admission.invites.invites()[0].wrong_codes == 2
    for _ in range(INVITE_WRONG_MAX - 2):
        now += 2
        after.admission.psk(invite.id, now)
        after.admission.guessed(invite.id, now)
    refused(InviteInvalid, after.admission.psk, invite.id, now + 9)
    refused(InviteInvalid, restarted(after).joins, PHONE, invite, "", now + 9)


@pytest.mark.requirement("R3")
def test_ids_that_do_not_exist_are_slowed_down_together(daemon: FakeDaemon) -> None:
    for number in range(2):
        refused(InviteInvalid, daemon.admission.psk, bytes([number]) * 8, NOW)
    refused(RateLimited, daemon.admission.psk, b"another1", NOW)
    daemon.admission.guessed(b"another1", NOW)
    refused(InviteInvalid, daemon.joins, PHONE, SimpleNamespace(id=b"another1"))


@pytest.mark.requirement("A2", "R5")
def test_nobody_invites_to_more_than_it_has(daemon: FakeDaemon) -> None:
    lender = daemon.actors.add(UID, "lender", "agent", ADA.key, "", "")
    given = Envelope(
        lender.id,
        Scope.label("team-a"),
        tuple(sorted({*ROLES["execute"], Right.GRANT})),
        float(NOW + 2 * HOUR),
        inputs_per_s=5.0,
        granted_by=HOST_ACTOR,
    )
    daemon.actors.grant(given, daemon.live_sessions())
    within: dict[str, Any] = {"lasts_s": float(HOUR), "inputs_per_s": 5.0}
    for more in (
        {"rights": ("admin",)},
        {"reach": ()},
        {"reach": ("label:x",)},
        {"lasts_s": HOUR + 1.0},
        {"inputs_per_s": None},
        {"inputs_per_s": 6.0},
    ):
        refused(NotPermitted, lambda more=more: daemon.invite(lender, **{**within, **more}))
    daemon.invite(lender, **within)
    daemon.invite(lender, **within, reach=("label:team-a", "label:x"))
    reader = daemon.actors.add(UID, "reader", "agent", AGENT.key, "", "")
    refused(NotPermitted, lambda: daemon.invite(reader, rights=("read",)))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"reach": ("label:a b",)}, GrantInvalid),
        ({"reach": ("nonsense",)}, GrantInvalid),
        ({"reach": ("session:short",)}, GrantInvalid),
        ({"reach": ("label:x",) * 9}, GrantInvalid),
        ({"reach": (f"host:{'ab' * 32}",)}, InvalidArgument),
        ({"rights": ()}, GrantInvalid),
        ({"rights": ("rule",)}, InvalidArgument),
        ({"expires_s": 0.0}, InvalidArgument),
        ({"expires_s": float("nan")}, InvalidArgument),
        ({"expires_s": float("inf")}, InvalidArgument),
        ({"lasts_s": 0.5}, InvalidArgument),
        ({"lasts_s": float("nan")}, InvalidArgument),
        ({"lasts_s": 400.0 * 86400}, GrantInvalid),
        ({"uses": 0}, InvalidArgument),
        ({"uses": 257}, InvalidArgument),
        ({"delegations": -1}, GrantInvalid),
        ({"delegations": 6}, GrantInvalid),
        ({"inputs_per_s": 0.0}, GrantInvalid),
        ({"bytes_per_s": float("nan")}, GrantInvalid),
    ],
)
def test_an_invite_that_makes_no_sense_is_refused_and_not_kept(
    daemon: FakeDaemon, bad: dict[str, Any], error: type[HoldfastError]
) -> None:
    refused(error, lambda: daemon.invite(**bad))
    assert daemon.admission.invites.invites() == ()


def test_names_are_checked_before_anything_is_used_up_and_made_unique(daemon: FakeDaemon) -> None:
    invite = daemon.invite(uses=4)
    for bad in ("../x", "a b", "\x1b[2J", "x" * 65):
        refused(InvalidArgument, daemon.joins, PHONE, invite, bad)
    assert daemon.admission.devices.entries() == ()
    people = PARTIES[1:5]
    for who, name in zip(people, ("phone", "phone", "", "x" * 64), strict=True):
        daemon.joins(who, invite, name)
    names = [daemon.actor(who).name for who in people]
    assert names == ["phone", "phone-2", f"device-{people[2].actor[:6]}", "x" * 64]
    other = daemon.invite()
    daemon.joins(PARTIES[5], other, "x" * 64)
    assert daemon.actor(PARTIES[5]).name == "x" * 59 + "-2"


def test_a_key_of_another_unix_user_cannot_be_let_in_to_ones_own(daemon: FakeDaemon) -> None:
    """Else somebody's invite to `all` would reach the sessions of everybody root's actor sees."""
    daemon.actors.of_user(0)
    daemon.actors.add(0, "roots", "agent", MALLORY.key, "", "")
    refused(NotPermitted, daemon.joins, MALLORY, daemon.invite(reach=()))
    chain = handed_on(daemon.joins(PHONE, daemon.invite(reach=())), PHONE, MALLORY)
    refused(NotPermitted, daemon.admission.admit, "one", MALLORY.key, chain, NOW + 2)
    assert daemon.rights(MALLORY) == set()


# -- chains ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R3", "A2")
def test_a_grant_handed_on_brings_in_somebody_the_host_never_met(daemon: FakeDaemon) -> None:
    first = daemon.joins(ADA, daemon.invite(), "ada")
    chain = handed_on(first, ADA, AGENT, rights=("observe",), expires=NOW + 300)
    agent = daemon.admission.admit("one", AGENT.key, chain, NOW + 2)
    assert (agent.name, agent.kind, agent.uid) == (f"device-{AGENT.actor[:6]}", "device", UID)
    assert daemon.rights(AGENT) == {"observe"}
    entry = daemon.admission.devices.of(AGENT.actor)[0]
    assert (entry.given_by, entry.first, entry.invite) == (ADA.actor, ADA.actor, b"")
    assert daemon.rights(AGENT, NOW + 300) == set()
    after = restarted(daemon)
    assert after.actor(AGENT) == agent, "its name is known to whoever reads the record later"


@pytest.mark.requirement("R3")
def test_knowing_nothing_entitles_to_nothing(daemon: FakeDaemon) -> None:
    admit = daemon.admission.admit
    chain = daemon.joins(PHONE, daemon.invite())
    refused(NoSuchActor, admit, "one", MALLORY.key, b"", NOW)
    refused(GrantInvalid, admit, "one", MALLORY.key, chain, NOW + 2)
    for garbage in (b"x", b"\xc1" * 40, chain[:-1], chain + b"x", b"\0" * 5000):
        refused(GrantInvalid, admit, "one", PHONE.key, garbage, NOW + 2)
    forged = grants.encode_chain(GrantChain((MALLORY.gives(MALLORY),)))
    refused(GrantInvalid, admit, "one", MALLORY.key, forged, NOW + 2)
    wider = handed_on(chain, PHONE, MALLORY, rights=("end", "observe"))
    refused(GrantInvalid, admit, "one", MALLORY.key, wider, NOW + 2)
    # Signed by the host, but for somebody it never let in: whose sessions would it be about?
    stray = grants.encode_chain(GrantChain((HOST.gives(MALLORY),)))
    refused(GrantInvalid, admit, "one", MALLORY.key, stray, NOW + 2)
    assert daemon.actors.get(MALLORY.actor) is None


def test_a_known_actor_needs_no_chain_and_a_revoked_one_is_told(daemon: FakeDaemon) -> None:
    known = daemon.actors.add(UID, "known", "service", ADA.key, "", "")
    assert daemon.admission.admit("one", ADA.key, b"", NOW) == known
    daemon.actors.revoke(daemon.owner.id, known, daemon.live_sessions())
    refused(ActorRevoked, daemon.admission.admit, "one", ADA.key, b"", NOW)
    refused(ActorRevoked, daemon.joins, ADA, daemon.invite())


@pytest.mark.requirement("A2")
def test_a_chain_that_ended_stays_ended_when_the_clock_is_set_back(daemon: FakeDaemon) -> None:
    chain = daemon.joins(PHONE, daemon.invite(lasts_s=60.0))
    refused(GrantExpired, daemon.admission.admit, "one", PHONE.key, chain, NOW + 61)
    refused(GrantExpired, daemon.admission.admit, "one", PHONE.key, chain, NOW + 2)
    after = restarted(daemon)
    refused(GrantExpired, after.admission.admit, "one", PHONE.key, chain, NOW + 2)


def test_the_end_of_a_grant_is_written_once_however_often_it_is_tried(
    daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = daemon.joins(PHONE, daemon.invite(lasts_s=60.0))
    writes: list[str] = []
    monkeypatch.setattr(record_files, "write", lambda path, _: writes.append(path))
    for second in range(20):
        refused(GrantExpired, daemon.admission.admit, "one", PHONE.key, chain, NOW + 61 + second)
    assert len(writes) == 1


def test_who_is_here_keeps_its_rights_only_while_one_of_its_connections_shows_them(
    daemon: FakeDaemon,
) -> None:
    chain = daemon.joins(PHONE, daemon.invite())
    actor = daemon.admission.admit("one", PHONE.key, chain, NOW + 2)
    daemon.admission.admit("two", PHONE.key, b"", NOW + 2)
    one, _, _ = (
        daemon.connects(*each) for each in (("one", actor.id), ("two", actor.id), ("", None))
    )
    before = daemon.session.judged_again
    daemon.operators.closed(one)
    assert daemon.rights(PHONE) == set()
    assert daemon.session.judged_again > before, "its other connection's turn and views go too"
    daemon.operators.closed(one)
    assert daemon.session.judged_again == before + 1


def test_a_connection_of_many_that_ends_has_nobody_judged_again(daemon: FakeDaemon) -> None:
    chain = daemon.joins(PHONE, daemon.invite())
    many: list[Any] = []
    for number in range(200):
        actor = daemon.admission.admit(str(number), PHONE.key, chain, NOW + 2)
        many.append(daemon.connects(str(number), actor.id))
    daemon.connects("shows nothing", actor.id)
    before = daemon.session.judged_again
    for each in many[1:]:
        daemon.operators.closed(each)
    assert daemon.session.judged_again == before and daemon.rights(PHONE)
    daemon.operators.closed(many[0])
    assert daemon.session.judged_again == before + 1 and not daemon.rights(PHONE)


def test_one_device_cannot_fill_the_host_with_actors(daemon: FakeDaemon) -> None:
    first = daemon.joins(ADA, daemon.invite(), "ada")
    admission = daemon.admission
    (entry,) = admission.devices.entries()
    for number in range(DELEGATES_MAX):
        key = number.to_bytes(32)
        admission.devices.put(entry.replace(link=key, actor=ActorId.of_key(key)), NOW)
    chain = handed_on(first, ADA, AGENT)
    refused(LimitReached, admission.admit, "one", AGENT.key, chain, NOW + 2)
    assert daemon.actors.get(AGENT.actor) is None


# -- taking back ----------------------------------------------------------------------------------


def family(daemon: FakeDaemon) -> tuple[bytes, bytes, bytes]:
    """Ada came by an invite, her phone has it from her, an agent from the phone; all are here."""
    first = daemon.joins(ADA, daemon.invite(), "ada")
    second = handed_on(first, ADA, PHONE)
    third = handed_on(second, PHONE, AGENT, expires=NOW + 600)
    for name, who, chain in (("a", ADA, first), ("p", PHONE, second), ("g", AGENT, third)):
        daemon.admission.admit(name, who.key, chain, NOW + 2)
    return first, second, third


@pytest.mark.requirement("R3", "A2")
@pytest.mark.parametrize("how", ["device", "actor"])
def test_a_revoked_parent_takes_its_descendants_with_it_at_once(
    daemon: FakeDaemon, how: str
) -> None:
    chains = family(daemon)
    assert daemon.rights(AGENT) == EXECUTE
    version = daemon.actors.authority.version
    if how == "device":
        ended = daemon.revocation.revoke_device(daemon.owner, "ada", NOW + 3)
        assert {each.actor for each in ended} == {ADA.actor, PHONE.actor, AGENT.actor}
        assert daemon.admission._verifier.versions() == {HOST.key: 1}
    else:
        revoked = daemon.actors.revoke(daemon.owner.id, daemon.actor(ADA), daemon.live_sessions())
        daemon.notices.authority_changed(daemon.owner, revoked, None)
    for who in (ADA, PHONE, AGENT):
        assert daemon.rights(who) == set(), "without another word from anybody"
    assert daemon.actors.authority.version > version, "what was allowed before is judged again"
    assert (daemon.owner.name, "ada", None) in daemon.session.told
    with pytest.raises(GrantRevoked):
        daemon.actors.authority.check(AGENT.actor, "observe", SESSION, LABELS, NOW + 3)  # type: ignore[arg-type]
    after = restarted(daemon)
    for who, chain in zip((ADA, PHONE, AGENT), chains, strict=True):
        refused(GrantRevoked, daemon.admission.admit, "again", who.key, chain, NOW + 4)
        refused(GrantRevoked, after.admission.admit, "again", who.key, chain, NOW + 4)
    refused(ActorRevoked, after.admission.admit, "again", ADA.key, b"", NOW + 4)


@pytest.mark.requirement("A2")
def test_who_handed_on_takes_back_that_and_nothing_else(daemon: FakeDaemon) -> None:
    family(daemon)
    other = daemon.joins(AGENT, daemon.invite(rights=("read",)), "agent")
    daemon.admission.admit("o", AGENT.key, other, NOW + 2)
    ada = daemon.actor(ADA)
    agent = daemon.actor(AGENT).name
    refused(NotPermitted, daemon.revocation.revoke_device, daemon.actor(AGENT), "ada", NOW + 3)
    ended = daemon.revocation.revoke_device(ada, agent, NOW + 3)
    assert {each.actor for each in ended} == {PHONE.actor, AGENT.actor}
    assert daemon.rights(PHONE) == set() and daemon.rights(ADA) == EXECUTE
    assert daemon.rights(AGENT) == {"observe"}, "what it has from somebody else stands"
    assert daemon.actor(AGENT).revoked_at is None
    (told,) = [each for each in daemon.session.told if each[1] == agent]
    assert told[0] == "ada" and told[2] is not None and set(told[2].rights) == {"observe"}


@pytest.mark.requirement("A2")
def test_with_a_device_go_the_invites_it_made_and_who_came_by_them(daemon: FakeDaemon) -> None:
    first = daemon.joins(ADA, daemon.invite(reach=(), rights=("admin",)), "ada")
    ada = daemon.admission.admit("a", ADA.key, first, NOW + 2)
    theirs = daemon.invite(ada, NOW + 2, lasts_s=float(HOUR), uses=2)
    chain = daemon.joins(PHONE, theirs, "phone", NOW + 3)
    daemon.admission.admit("p", PHONE.key, chain, NOW + 4)
    refused(NotPermitted, lambda: daemon.invite(ada, NOW + 2, lasts_s=9.0 * HOUR))
    assert daemon.rights(PHONE, NOW + 4) == EXECUTE
    daemon.revocation.revoke_device(daemon.owner, "ada", NOW + 5)
    assert daemon.rights(PHONE, NOW + 5) == set()
    refused(GrantRevoked, daemon.admission.admit, "p", PHONE.key, chain, NOW + 6)
    refused(InviteInvalid, daemon.joins, MALLORY, theirs, "", NOW + 6)
    assert daemon.actor(PHONE).revoked_at is None, "it may be let in anew"


def test_an_invite_ends_with_who_made_it(daemon: FakeDaemon) -> None:
    rights = tuple(sorted(ROLES["admin"]))
    maker = daemon.actors.add(UID, "maker", "human", ADA.key, "", "")
    scope = Scope.label("team-a")
    daemon.actors.grant(Envelope(maker.id, scope, rights, granted_by=HOST_ACTOR), ())
    invite = daemon.invite(maker)
    daemon.admission.psk(invite.id, NOW)
    daemon.actors.revoke(daemon.owner.id, maker, daemon.live_sessions())
    refused(InviteInvalid, daemon.admission.psk, invite.id, NOW)
    refused(InviteInvalid, daemon.joins, PHONE, invite)


@pytest.mark.requirement("R3")
def test_a_revoked_invite_lets_nobody_in_and_may_shut_out_who_came(daemon: FakeDaemon) -> None:
    invite = daemon.invite(uses=2)
    chain = daemon.joins(PHONE, invite, "phone")
    daemon.admission.admit("p", PHONE.key, chain, NOW + 2)
    stranger = daemon.actors.add(UID, "stranger", "agent", MALLORY.key, "", "")
    text = invite.id.hex()
    assert daemon.revocation.seen_invites(stranger, NOW) == []
    refused(InviteInvalid, daemon.revocation.revoke_invite, stranger, text, False, NOW + 3)
    refused(InviteInvalid, daemon.revocation.revoke_invite, daemon.owner, "", False, NOW + 3)
    daemon.revocation.revoke_invite(daemon.owner, text[:6], False, NOW + 3)
    refused(InviteInvalid, daemon.admission.psk, invite.id, NOW + 3)
    assert daemon.rights(PHONE) == EXECUTE
    daemon.revocation.revoke_invite(daemon.owner, text, True, NOW + 4)
    assert daemon.rights(PHONE) == set()
    refused(GrantRevoked, restarted(daemon).admission.admit, "p", PHONE.key, chain, NOW + 5)


def test_revocations_that_no_grant_can_outlive_leave_the_list(daemon: FakeDaemon) -> None:
    for number, who in enumerate((PHONE, AGENT)):
        now = NOW + number * 10 * HOUR
        chain = daemon.joins(who, daemon.invite(now=now, lasts_s=60.0), now=now + 1)
        ada = handed_on(chain, who, ADA, expires=now + 30)
        daemon.admission.admit("x", ADA.key, ada, now + 2)
        actor = daemon.actor(who)
        daemon.revocation.revoke_device(actor, daemon.actor(ADA).name, now + 3)
        assert len(daemon.admission._revoked.links) == 1
    assert daemon.admission._revoked.version == 2


@pytest.mark.requirement("R3", "A2")
@pytest.mark.parametrize("how", ["invite", "link"])
def test_what_finds_no_place_on_the_signed_list_is_revoked_at_once_all_the_same(
    daemon: FakeDaemon, how: str
) -> None:
    many = {number.to_bytes(32).hex(): NOW + 99.0 * HOUR for number in range(REVOCATIONS_MAX)}
    daemon.admission._revoked = Revoked(1, NOW, many)
    _, second, third = family(daemon)
    if how == "invite":
        (invite,) = daemon.admission.invites.invites()
        daemon.revocation.revoke_invite(daemon.owner, invite.id.hex(), True, NOW + 3)
        assert daemon.rights(ADA) == set()
    else:
        phone = daemon.actor(PHONE).name
        daemon.revocation.revoke_device(daemon.actor(ADA), phone, NOW + 3)
        assert daemon.rights(ADA) == EXECUTE
    assert daemon.rights(PHONE) == daemon.rights(AGENT) == set()
    after = restarted(daemon)
    for who, chain in ((PHONE, second), (AGENT, third)):
        refused(GrantRevoked, daemon.admission.admit, "again", who.key, chain, NOW + 4)
        refused(GrantRevoked, after.admission.admit, "again", who.key, chain, NOW + 4)


def test_a_damaged_file_stops_the_host_and_is_not_taken_for_an_empty_one(
    daemon: FakeDaemon,
) -> None:
    daemon.invite()
    path = Path(daemon.home.state, "admission.json")
    for damage in (b"", b"{", b'{"latest": "x"}', json.dumps({"latest": 1, "invites": 3}).encode()):
        path.write_bytes(damage)
        assert "admission.json" in refused(StorageFailed, restarted, daemon)


def test_when_a_device_was_last_seen_is_told_and_kept(daemon: FakeDaemon) -> None:
    chain = daemon.joins(PHONE, daemon.invite())
    daemon.admission.admit("one", PHONE.key, chain, NOW + 100)
    assert restarted(daemon).admission.devices.of(PHONE.actor)[0].seen_at == NOW + 100
