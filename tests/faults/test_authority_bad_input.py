"""A1, A2, A3, N7, S1, S3: who claims to be another, who comes too late or too often, and a host
whose clock goes back or whose disk is full. Nothing is typed that was not allowed and recorded."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from faults.actors_at_work import WORKER, Admin, Company, Hand, Worker
from faults.crash_points import customized_host
from faults.histories import OK, REFUSED, Op, faults
from faults.hosting import FaultHost
from faults.raw_socket import RawSocket, frame
from faults.test_storage import fill, mount
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.model.errors import (
    BadSignature,
    HoldfastError,
    HostLost,
    NoSuchActor,
    ProtocolViolation,
)
from holdfast.sdk import identity
from holdfast.sdk.connection import Connection, new_operator
from holdfast.sdk.identity import Identity
from holdfast.wire.frames import encode
from holdfast.wire.messages import BY_TAG
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.waiting import until

SEED = 5
_CLOCK = "HOLDFAST_TEST_CLOCK"
_SHIFTED_CLOCK = f"""
import os, time
really = time.time
def shifted():
    try:
        with open(os.environ["{_CLOCK}"]) as file:
            return really() + float(file.read())
    except (OSError, ValueError):
        return really()
time.time = shifted
"""


def company_of(host: FaultHost, actors: int = 2) -> tuple[Company, list[Worker], Admin]:
    company = Company(host, actors, SEED, halts=False)
    admin = company.hands[-1]
    assert isinstance(admin, Admin)
    return company, company.hands[:-1], admin


def key_of(worker: Worker) -> Identity:
    assert worker.who is not None
    return worker.who


def assert_explained(company: Company) -> None:
    assert faults(company.finish()) == []
    assert company.judgement.verdict == "intact"


# -- who ------------------------------------------------------------------------------------------


@pytest.mark.requirement("A1", "S3")
def test_a_claim_counts_only_with_this_actors_signature_for_this_connection(
    host: FaultHost,
) -> None:
    company, (one, two), _ = company_of(host)
    operator = new_operator()
    first = Connection(host.socket, operator, "test")
    other = Connection(host.socket, operator, "test")
    me, welcome = key_of(one), first.welcome
    elsewhere = me.claim(welcome.host_key, other.welcome.challenge, operator)
    wrong = [
        elsewhere,
        me.claim(welcome.host_key, welcome.challenge, new_operator()),
        me.claim(b"\0" * 32, welcome.challenge, operator),
        key_of(two).claim(welcome.host_key, welcome.challenge, operator),
        b"",
        b"\0" * 64,
        b"x" * 100_000,
    ]
    for signature in wrong:
        connection = Connection(host.socket, operator, "test")
        connection.welcome = welcome
        with pytest.raises(BadSignature):
            connection.ask(access_messages.Claim(connection.next_id(), me.actor, signature), 10)
        connection.close()
    # Each on its own connection is refused; the right one is not, where it was made for.
    with pytest.raises(BadSignature):
        first.ask(access_messages.Claim(first.next_id(), me.actor, elsewhere), 10)
    other.ask(access_messages.Claim(other.next_id(), me.actor, elsewhere), 10)
    refused_twice = Connection(host.socket, new_operator(), "test")
    stranger = identity.make("stranger")
    with pytest.raises(NoSuchActor):
        proof = stranger.claim(
            refused_twice.welcome.host_key, refused_twice.welcome.challenge, refused_twice.operator
        )
        refused_twice.ask(access_messages.Claim(refused_twice.next_id(), stranger.actor, proof), 10)
    for connection in (first, other, refused_twice):
        connection.close()
    assert_explained(company)


@pytest.mark.requirement("A1", "S3")
def test_nobody_becomes_another_after_it_acted(host: FaultHost) -> None:
    company, (one, _), _ = company_of(host)
    connection = Connection(host.socket, new_operator(), "test")
    connection.ask(turn_messages.GetTurn(connection.next_id(), company.session), 10)
    me, welcome = key_of(one), connection.welcome
    proof = me.claim(welcome.host_key, welcome.challenge, connection.operator)
    with pytest.raises(ProtocolViolation):
        connection.ask(access_messages.Claim(connection.next_id(), me.actor, proof), 10)
    with pytest.raises(HostLost):
        connection.ask(access_messages.ShowActor(connection.next_id()), 10)
    connection.close()


@pytest.mark.requirement("A1", "A2")
def test_nothing_sent_behind_a_refused_claim_is_done(host: FaultHost) -> None:
    """It was meant for the actor claimed; the connection's own actor, root's, could do it all."""
    client = host.client()
    session, other = (client.run(["cat"], name=name).id for name in ("typed-into", "ended"))
    with RawSocket(host.socket) as connection:
        behind = (
            access_messages.Claim(1, "root", b"0" * 64),
            m.Input(2, session, 1, b"typed\r"),
            m.End(3, other),
            access_messages.AddActor(4, "behind", "agent", b"k" * 32),
        )
        connection.throw(b"".join(encode(each) for each in behind))
        (answer,) = connection.hear_all()
    assert isinstance(answer, m.Failed) and (answer.id, answer.code) == (1, "bad_signature")
    assert client.show(other).ending is None
    actors = client.ask(access_messages.ListActors(0), access_messages.Actors).actors
    assert "behind" not in {each.name for each in actors}
    # What is typed later comes alone.
    client.send(session, "later")
    until("it is echoed", lambda: "later" in client.screen(session).text)
    assert "typed" not in client.screen(session).text


@pytest.mark.requirement("A1", "M6")
def test_an_actor_that_uses_anothers_operator_id_does_not_disturb_its_numbers(
    host: FaultHost,
) -> None:
    company, (one, two), _ = company_of(host)
    two.operator = one.operator
    assert one.write().outcome == OK
    one.turn(turn_messages.YieldTurn(0, company.session))
    two.seq = 500
    assert two.write().outcome == OK
    two.turn(turn_messages.YieldTurn(0, company.session))
    assert one.seq == 1 and one.write().outcome == OK
    assert_explained(company)


# -- too late, too often --------------------------------------------------------------------------


@pytest.mark.requirement("M6")
@pytest.mark.parametrize("kill", [False, True])
def test_a_replayed_input_is_answered_as_repeated_and_not_typed(
    host: FaultHost, kill: bool
) -> None:
    company, (one, _), _ = company_of(host)
    for _ in range(3):
        assert one.write().outcome == OK
    if kill:
        host.wait_new_daemon(host.kill_daemon())
        company.kills += 1
        one.leave()
    connection = one.connected()
    for seq in (1, 2, 3):
        for request in (
            m.Input(0, company.session, seq, b"again"),
            m.Input(0, company.session, seq, b"again", quiet=True),
            m.Submit(0, company.session, seq, "again"),
            m.Keys(0, company.session, seq, ("Enter",)),
        ):
            answer = connection.ask(request.replace(id=connection.next_id()), 10)
            assert isinstance(answer, m.Accepted) and answer.repeated
    assert_explained(company)


@pytest.mark.requirement("A2")
def test_an_expired_envelope_ends_the_turn_and_every_right(host: FaultHost) -> None:
    company, (one, _), admin = company_of(host)
    assert one.write().outcome == OK
    ends = time.time() + 0.3
    with host.client() as client:
        client.ask(
            access_messages.GrantEnvelope(0, one.actor, company.session, WORKER, ends),
            access_messages.Envelopes,
        )
        get_turn = turn_messages.GetTurn(0, company.session)
        until(
            "the turn is free",
            lambda: not client.ask(get_turn, turn_messages.TurnShown).turn.holder,
        )
    assert time.time() >= ends
    op = one.write()
    assert op.outcome == REFUSED
    admin.connected()
    expired_is_a_revocation(admin, one.actor, ends)
    assert_explained(company)


def expired_is_a_revocation(admin: Admin, subject: str, ends: float) -> None:
    """For the judge: from when on the subject could not write."""
    op = admin.begin("revoke", subject)
    op.start = time.monotonic() - (time.time() - ends)
    op.end, op.outcome = time.monotonic(), "unknown"


@pytest.mark.requirement("A2")
def test_a_rate_holds_over_all_connections_of_an_actor(host: FaultHost) -> None:
    company, (one, _), _ = company_of(host)
    with host.client() as client:
        client.ask(
            access_messages.GrantEnvelope(0, one.actor, company.session, WORKER, inputs_per_s=0.2),
            access_messages.Envelopes,
        )
    began, outcomes = time.monotonic(), []
    for _ in range(12):
        outcomes.append(one.write())
        one.leave()
    again = Hand(host, company.session, key_of(one), SEED)  # another operator, the same actor
    again._count = 100
    company.hands[0].ops.append(last := again.write())
    codes = [op.code for op in (*outcomes, last)]
    # One, and what the bucket was filled by since, however slow this machine is.
    assert 1 <= codes.count("") <= 1 + 0.2 * (time.monotonic() - began)
    assert set(codes) == {"", "rate_limited"}
    assert_explained(company)


# -- the clock ------------------------------------------------------------------------------------


@pytest.mark.requirement("A2", "N8")
@pytest.mark.timeout(60)
def test_a_clock_set_back_revives_no_right_and_disorders_no_journal() -> None:
    with customized_host(_SHIFTED_CLOCK) as host:
        clock = host.work / "clock"
        host.environment[_CLOCK] = str(clock)
        host.up()
        company, (one, two), admin = company_of(host)
        assert one.write().outcome == OK
        ends = time.time() + 0.2
        with host.client() as client:
            client.ask(
                access_messages.GrantEnvelope(0, one.actor, company.session, WORKER, ends),
                access_messages.Envelopes,
            )
            until("it expired", lambda: one.write().outcome == REFUSED)
        clock.write_text("-86400")
        assert one.write().outcome == REFUSED
        until("the turn is free", lambda: two.write().outcome == OK)
        with host.client() as client:
            rights = access_messages.GrantEnvelope(
                0, two.actor, company.session, WORKER, inputs_per_s=1.0
            )
            client.ask(rights, access_messages.Envelopes)
        until("it wrote too much", lambda: two.write().code == "rate_limited")
        until("time went on", lambda: two.write().outcome == OK)
        host.wait_new_daemon(host.kill_daemon())  # a new one starts with the clock set back
        company.kills += 1
        assert one.write().outcome == REFUSED
        assert two.write().outcome == OK
        admin.connected()
        expired_is_a_revocation(admin, one.actor, ends)
        assert_explained(company)
        times = [entry.at for entry in JournalReader(str(company.directory)).entries()]
        assert times == sorted(times) and times[0] > ends - 60


@pytest.mark.requirement("A2")
@pytest.mark.parametrize(("ahead", "side"), [(7200, "ahead of"), (-7200, "behind")])
def test_how_long_a_grant_lasts_is_reckoned_by_the_hosts_clock(ahead: int, side: str) -> None:
    with customized_host(_SHIFTED_CLOCK) as host:
        clock = host.work / "clock"
        clock.write_text(str(ahead))
        host.environment[_CLOCK] = str(clock)
        host.up()
        del host.environment[_CLOCK]  # the commands below have the real time
        host.client().run(["cat"], name="shared")
        host.hold("actor", "add", "bot")
        grant = ("grant", "bot", "execute", "shared", "--expires", "1h")
        said = host.hold(*grant)
        assert "1h0m from now" in said.stdout, said
        assert f"{side} yours" in said.stderr, said
        made = json.loads(host.hold(*grant, "--json").stdout)
        assert made["expires_at"] - made["granted_at"] == pytest.approx(3600)
        assert abs(made["granted_at"] - time.time() - ahead) < 60
        assert host.hold("--as", "bot", "send", "shared", "it may").returncode == 0
        assert "from now" in host.hold("grant", "--ls", "shared").stdout
        host.hold(*grant[:-1], "0.2")

        def refused() -> bool:
            return "has expired" in host.hold("--as", "bot", "send", "shared", "no more").stderr

        until("it expired", refused)


# -- the disk -------------------------------------------------------------------------------------


@pytest.fixture
def small_disk() -> Iterator[FaultHost]:
    """A host whose home is a file system of two megabytes."""
    if os.getuid() != 0:
        pytest.skip("mounting needs root")
    host = FaultHost()
    home = host.home
    mount("-t", "tmpfs", "-o", "size=2m,mode=0700", "holdfast-test", str(home))
    try:
        yield host.up()
    finally:
        (home / "filler").unlink(missing_ok=True)
        host.down()
        subprocess.run(["umount", "-l", str(home)], check=False, timeout=10)
        with contextlib.suppress(OSError):
            home.rmdir()


def write_until_refused(hand: Hand, form: str) -> Op:
    """The disk is full: some inputs may still fit into what was reserved."""
    for _ in range(2000):
        op = hand.write(form)
        if op.outcome != OK:
            return op
    raise AssertionError("a full disk takes everything")


@pytest.mark.requirement("A5", "M8")
@pytest.mark.timeout(90)
@pytest.mark.parametrize("form", ["submit", "keys", "quiet", "long"])
def test_on_a_full_disk_nothing_is_typed_unrecorded_and_halting_still_works(
    small_disk: FaultHost, form: str
) -> None:
    host = small_disk
    company, (one, two), admin = company_of(host)
    assert one.write().outcome == OK
    filler = fill(host.home)
    for each in (form, "submit", "keys", "quiet", "long"):
        assert write_until_refused(one, each).code == "storage_failed"
    # Somebody who may not halt cannot use up what is reserved for those who may.
    for _ in range(300):
        two.turn(turn_messages.Seize(0, company.session))
        two.turn(turn_messages.Halt(0, company.session))
    for _ in range(3):
        admin.insist("halt", turn_messages.Seize(0, company.session, halt=True))
        admin.insist("resume", turn_messages.Resume(0, company.session))
    filler.unlink()
    admin.turn(turn_messages.YieldTurn(0, company.session))
    for other in ("submit", "keys", "quiet", "long"):
        assert one.write(other).outcome == OK, "there is room again"
    host.wait_new_daemon(host.kill_daemon())
    company.kills += 1
    assert one.write().outcome == OK
    assert_explained(company)


# -- garbage --------------------------------------------------------------------------------------

_ABOUT = {access_messages.__name__, turn_messages.__name__, journal_messages.__name__}
NEW = [
    kind for kind in BY_TAG.values() if issubclass(kind, m.Request) and kind.__module__ in _ABOUT
]
_ODD: list[Any] = [
    None, True, 0, -1, 1 << 62, -(1 << 62), 1.5, float("nan"), float("inf"), "", "x", "a\0b", "..",
    "all", "label:", "session:", "label:" + "y" * 5000, "z" * 100_000, b"", b"\xff" * 64, [], [1],
    ["input"], ["input"] * 5000, ["no.such.right"], {}, {"a": 1}, [[[[]]]],
]  # fmt: skip


@pytest.mark.requirement("S3")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", NEW, ids=[kind.tag for kind in NEW])
def test_garbage_in_a_message_about_authority_harms_nobody(
    shared_host: FaultHost, kind: type[m.Request]
) -> None:
    chance = random.Random(kind.tag)
    with shared_host.client() as client:
        names = {info.name for info in client.sessions()}
        if "bystander" not in names:
            client.run(["cat"], name="bystander")
        before, me = (
            shared_host.daemon_pid(),
            client.ask(access_messages.ShowActor(0), access_messages.ActorShown),
        )
        for _ in range(60):
            fields = {field: chance.choice(_ODD) for field in kind._fields if field != "id"}
            if "session" in fields and chance.random() < 0.7:
                fields["session"] = "bystander"
            with RawSocket(shared_host.socket) as raw:
                raw.throw(frame({"t": kind.tag, "id": 1, **fields}))
                heard = raw.hear()
                assert getattr(heard, "code", "") != "internal", f"{fields}: {heard}"
        assert shared_host.daemon_pid() == before
        after = client.ask(access_messages.ShowActor(0), access_messages.ActorShown)
        assert after == me.replace(id=after.id), "garbage changed somebody's rights"
        with contextlib.suppress(HoldfastError):  # some of it is a valid wish to halt
            client.ask(turn_messages.Resume(0, "bystander"), m.Done)
        client.ask(turn_messages.Seize(0, "bystander"), turn_messages.Halted)
        client.ask(
            turn_messages.SetBlind(0, "bystander", False), turn_messages.TurnShown
        )  # or for a blind turn
        client.send("bystander", f"after {kind.tag}")
        until("it echoes", lambda: f"after {kind.tag}" in client.screen("bystander").text)
        assert "Traceback" not in shared_host.log()
