"""M6, M8, A5: the daemon dies between any two steps of recording and doing. Nothing is lost,
nothing doubled, every byte is attributed once, and what was stopped is stopped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.actors_at_work import PROGRAM, WORKER, Admin, Company, Hand, Worker
from faults.crash_points import (
    arm,
    crashing_host,
)
from faults.histories import OK, faults
from faults.hosting import FaultHost
from holdfast.adapters.halt import cgroup
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.proc import procfs
from holdfast.journal import entries
from holdfast.journal.entries import Body
from holdfast.model.errors import HostLost, SessionHalted
from holdfast.model.state import Level, SessionState
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.waiting import until

SEED = 11
_CUSTODY = ["before-take", "before-note", "after-note", "after-take", "before-type", "after-type"]
_FILE = ["before-record", "after-record", "before-append", "after-append"]
_BURST = ["before-prepare", "after-prepare", *_CUSTODY, "before-commit", "after-commit"]
_FLUSH = [*_FILE, "before-clear", "after-clear"]
POINTS = {
    "keys": ["before-begin", "after-begin", *_BURST, *_FLUSH],
    "quiet": [*_BURST, *_FLUSH],
    "submit": [*_FILE, *_CUSTODY],
    "long": [*_FILE, *_CUSTODY],
}
WHILE_CARRYING_ON = [
    "before-settle", "after-settle", *_FILE, "before-clear", "after-clear", "before-seal",
    "after-seal",
]  # fmt: skip


@pytest.fixture
def armed() -> Iterator[FaultHost]:
    with crashing_host() as host:
        yield host.up()


def company_of(host: FaultHost) -> tuple[Company, Worker, Admin]:
    company = Company(host, 1, SEED, halts=False)
    worker, admin = company.hands
    assert isinstance(admin, Admin)
    return company, worker, admin


def died(company: Company, point: Path, old: int) -> None:
    """It came by there, and another serves."""
    until(f"the daemon died at {point.name}", lambda: not point.exists())
    company.host.wait_new_daemon(old)
    company.kills += 1


def daemon(host: FaultHost) -> int:
    return until("there is a daemon", host.daemon_pid)


def bodies(company: Company) -> list[Body]:
    return [entry.body for entry in JournalReader(str(company.directory)).entries()]


def assert_explained(company: Company) -> None:
    assert faults(company.finish()) == []
    assert company.judgement.verdict == "intact"


@pytest.mark.requirement("M6", "M8")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", list(POINTS))
def test_an_input_cut_off_by_a_kill_is_typed_and_attributed_once(
    armed: FaultHost, form: str
) -> None:
    company, worker, _ = company_of(armed)
    for place in POINTS[form]:
        # A key ends with a burst open, and the next is not judged anew; a line ends it.
        assert worker.write("keys" if form == "quiet" else "submit").outcome == OK
        old, point = daemon(armed), arm(armed, place)
        assert worker.write(form).outcome == OK
        died(company, point, old)
    assert_explained(company)
    if form in ("submit", "long"):
        assert any(isinstance(body, entries.Voided) for body in bodies(company))


@pytest.mark.requirement("M6", "M8")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("place", WHILE_CARRYING_ON)
def test_a_daemon_that_dies_while_it_carries_on_leaves_the_rest_to_the_next(
    armed: FaultHost, place: str
) -> None:
    company, worker, _ = company_of(armed)
    company.early += 1
    old, point = daemon(armed), arm(armed, place)
    arm(armed, "after-commit")  # the first one: it leaves keys that are not in the journal's file
    assert worker.write("keys").outcome == OK
    died(company, point, old)
    assert worker.write("submit").outcome == OK
    assert_explained(company)


@pytest.mark.requirement("A3", "M8")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", ["before-moved", "after-moved", "before-keep", "after-keep"])
def test_a_seizure_cut_off_by_a_kill_happened_or_did_not(armed: FaultHost, place: str) -> None:
    company, worker, admin = company_of(armed)
    assert worker.write("keys").outcome == OK
    old, point = daemon(armed), arm(armed, place)
    cut = admin.turn(turn_messages.Seize(0, company.session), tagged=True)
    assert cut.outcome == "unknown"
    died(company, point, old)
    seen = admin.turn(turn_messages.GetTurn(0, company.session)).shown
    assert seen == (admin.actor if place == "after-keep" else worker.actor)
    assert (worker.write().outcome == OK) == (seen == worker.actor)
    assert_explained(company)


@pytest.mark.requirement("A2", "M8")
@pytest.mark.timeout(60)
def test_a_revocation_cut_off_by_a_kill_is_in_force_and_recorded(armed: FaultHost) -> None:
    company, worker, admin = company_of(armed)
    assert worker.write("keys").outcome == OK
    old, point = daemon(armed), arm(armed, "before-changed")
    admin.connected()
    cut = admin.begin("revoke", worker.actor)
    assert admin.ask(cut, access_messages.RevokeEnvelope(0, worker.actor, company.session)) is None
    died(company, point, old)
    assert worker.write().outcome == "refused"
    assert entries.EnvelopeSet(worker.actor, f"session:{company.session}", ()) in bodies(company)
    shown = admin.turn(turn_messages.GetTurn(0, company.session)).shown
    assert shown == "", "who may not write any more does not keep the turn"
    assert_explained(company)


def cut_off(
    host: FaultHost,
    client: Host,
    change: access_messages.GrantEnvelope | access_messages.RevokeActor,
) -> None:
    """The daemon dies when the change is in force and not yet recorded."""
    old, point = daemon(host), arm(host, "before-changed")
    with pytest.raises(HostLost):
        client.connection.ask(change.replace(id=client.connection.next_id()), 20)
    until("the daemon died there", lambda: not point.exists())
    host.wait_new_daemon(old)
    client.reconnect()


@pytest.mark.requirement("A2", "M8")
@pytest.mark.timeout(60)
def test_a_change_cut_off_by_a_kill_is_recorded_with_its_bounds_and_by_whom(
    armed: FaultHost,
) -> None:
    """Rights stay the same, only expiry and rates change; then the actor goes."""
    with armed.client() as client:
        session, ends = client.run(["cat"]).id, time.time() + 3600
        me = client.ask(access_messages.ShowActor(0), access_messages.ActorShown).actor.id
        bot = client.ask(
            access_messages.AddActor(0, "bot", "agent", bytes(31) + b"x"),
            access_messages.ActorShown,
        ).actor.id
        client.ask(
            access_messages.GrantEnvelope(0, "bot", session, WORKER), access_messages.Envelopes
        )
        cut_off(
            armed,
            client,
            access_messages.GrantEnvelope(0, "bot", session, WORKER, ends, 5.0, 900.0),
        )
        cut_off(armed, client, access_messages.RevokeActor(0, "bot"))
        client.show(session)
        written = JournalReader(f"{armed.home}/sessions/{session}").entries()
        told = [(entry.actor, entry.body) for entry in written]
    rights = tuple(sorted(WORKER))
    assert (me, entries.EnvelopeSet(bot, f"session:{session}", rights, ends, 5.0, 900.0)) in told
    assert (me, entries.ActorRevokedEntry(bot)) in told


# -- halting --------------------------------------------------------------------------------------


def start_with_a_stopped_job(host: FaultHost, client: Host, level: Level) -> tuple[str, int, int]:
    """A program that reads, and beside it one that the session itself stopped. Their numbers."""
    read, woke = host.work / "read", host.work / "woke"
    script = (
        f"sh -c 'echo $$ >{host.work}/job; kill -STOP $$; : >{woke}' & "
        f"exec {sys.executable} -S {PROGRAM} {read}"
    )
    info = client.run(["/bin/sh", "-c", script], level=level)
    until("it reads", lambda: read.exists())
    job = procfs_child(info.pid)
    until("the job stopped", lambda: state_of(job) == "T")
    return info.id, info.pid, job


def procfs_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def state_of(pid: int) -> str:
    return procfs.stat_of(pid).state


def types(host: FaultHost, client: Host, session: str, text: str) -> None:
    client.send(session, text)
    until("it reads on", lambda: text.encode() in (host.work / "read").read_bytes())


@pytest.mark.requirement("A5")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", ["after-keep", "before-halt", "during", "after-halt"])
def test_a_halt_cut_off_by_a_kill_is_completed_and_can_be_ended(
    armed: FaultHost, level: Level, place: str
) -> None:
    if place == "during":
        place = "after-stop" if level is Level.PLAIN else "after-frozen"
    with armed.client() as client:
        session, reader, job = start_with_a_stopped_job(armed, client, level)
        old, point = daemon(armed), arm(armed, place)
        with pytest.raises(HostLost):
            seize = turn_messages.Seize(client.connection.next_id(), session, halt=True)
            client.connection.ask(seize, 20)
        until("the daemon died there", lambda: not point.exists())
        armed.wait_new_daemon(old)
        client.reconnect()
        until("it is halted", lambda: client.show(session).state is SessionState.HALTED)
        if level is Level.PLAIN:
            assert state_of(reader) == "T"
        else:
            assert cgroup.frozen(str(armed.group_home() / session))
        with pytest.raises(SessionHalted):
            client.send(session, "not now")
        client.ask(turn_messages.Resume(0, session), m.Done)
        types(armed, client, session, "go on")
        assert state_of(job) == "T" and not (armed.work / "woke").exists()
        assert b"not now" not in (armed.work / "read").read_bytes()
        assert (
            client.ask(
                journal_messages.Verify(0, session), journal_messages.Verified
            ).judgement.verdict
            == "intact"
        )


@pytest.mark.requirement("A5")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", ["before-go", "after-go"])
def test_a_resume_cut_off_by_a_kill_can_be_asked_for_again(
    armed: FaultHost, level: Level, place: str
) -> None:
    with armed.client() as client:
        session, _, job = start_with_a_stopped_job(armed, client, level)
        client.ask(turn_messages.Halt(0, session), turn_messages.Halted)
        old, point = daemon(armed), arm(armed, place)
        with pytest.raises(HostLost):
            client.connection.ask(turn_messages.Resume(client.connection.next_id(), session), 20)
        until("the daemon died there", lambda: not point.exists())
        armed.wait_new_daemon(old)
        client.reconnect()
        client.ask(turn_messages.Resume(0, session), m.Done)
        types(armed, client, session, "go on")
        assert state_of(job) == "T" and not (armed.work / "woke").exists()


@pytest.mark.requirement("A5")
@pytest.mark.timeout(60)
def test_a_leaf_frozen_by_a_daemon_that_died_is_thawed_by_the_next(armed: FaultHost) -> None:
    if os.getuid() != 0 or cgroup.unavailable():
        pytest.skip("level contained needs root and cgroup v2")
    with armed.client() as client:
        info = client.run(["/bin/sh"], level=Level.CONTAINED)
        session = info.id
        beat = armed.work / "beat"
        client.send(session, f"while :; do echo >>{beat}; sleep 0.01; done &")
        until("it beats", beat.exists)
        me = client.ask(access_messages.ShowActor(0), access_messages.ActorShown).actor.id
        other = identity.make("other")
        client.ask(
            access_messages.AddActor(0, "other", "agent", other.public), access_messages.ActorShown
        )
        client.ask(
            access_messages.GrantEnvelope(0, "other", session, ("execute",)),
            access_messages.Envelopes,
        )
        client.ask(turn_messages.HandOffTurn(0, session, "other"), turn_messages.TurnShown)
        armed.wait_new_daemon(armed.kill_daemon())
        receipt = client.ask(
            turn_messages.Halt(0, session, only_actor=me), turn_messages.Halted
        ).receipt
        assert receipt.frozen and receipt.tasks > 0
        assert me not in Path(f"/proc/{info.pid}/cgroup").read_text(), "the shell is frozen too"
        size = beat.stat().st_size
        armed.wait_new_daemon(armed.kill_daemon())
        connection = Hand(armed, session, other, SEED).connected()
        text = f"echo shell runs >{armed.work}/shell"
        connection.ask(m.Submit(connection.next_id(), session, 1, text), 20)
        until("the shell was not frozen with it", (armed.work / "shell").exists)
        assert beat.stat().st_size == size
        client.ask(turn_messages.Resume(0, session), m.Done)
        until("it beats again", lambda: beat.stat().st_size > size)
