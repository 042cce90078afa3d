"""Re-homeable sessions of a real host that is cut off from its coordination point, stopped, or
robbed of a lease: frozen in time, and running again only as the one incarnation there is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup
from holdfast.adapters.nats.server import NatsCluster
from holdfast.adapters.sqlite.coordination import SqliteCoordination
from holdfast.core.lease.machine import Lease
from holdfast.core.lease.table import LeaseStep
from holdfast.host.coordination_point import terms_of
from holdfast.host.session.lease import BootClock
from holdfast.host.session.lease_runner import LeaseRunner
from holdfast.model.errors import Fenced, HoldfastError
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord
from holdfast.wire.messages import session as m
from privileged.leasing import (
    LEASE_S,
    LeasedHost,
    counts,
    locked,
    moved_s,
    needs_contained,
    size,
    soon,
    stands_still,
)
from process.acting import connected
from process.commanding import PATIENCE_S
from process.reaching import Faraway
from process.terminals import Terminal

pytestmark = pytest.mark.skipif(bool(needs_contained()), reason=needs_contained())

TERMS = terms_of("", LEASE_S)


@pytest.fixture
def host() -> Iterator[LeasedHost]:
    with leased() as host:
        yield host


@contextmanager
def leased(coordination: str = "", lease_s: float = LEASE_S) -> Iterator[LeasedHost]:
    with LeasedHost(coordination, lease_s) as host:
        host.ok("up", "-d", "--no-relay")
        yield host


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# -- what is asked for ------------------------------------------------------------------------


def test_sessions_are_pinned_unless_asked_otherwise_and_show_says_which(host: LeasedHost) -> None:
    host.ok("run", "-d", "--name", "p", "--", "sleep", "100")
    host.ok("run", "-d", "--name", "r", "--rehomeable", "--", "sleep", "100")
    assert host.lease("p") is None
    assert host.lease("r")["state"] == "held" and host.lease("r")["length_s"] == LEASE_S
    assert 0 < host.lease("r")["left_s"] <= TERMS.usable_s()
    assert "lease     pinned" in host.ok("show", "p")
    assert "lease     re-homeable, held" in host.ok("show", "r")
    assert "the host holds the session's lease (3 s)" in host.ok("log", "r")


def test_a_session_that_could_not_be_stopped_for_sure_is_not_rehomeable(host: LeasedHost) -> None:
    host.fails(
        "level_unavailable", "run", "-d", "--rehomeable", "--level", "plain", "--", "sleep", "100"
    )
    assert host.json("ls") == []


def test_without_its_coordination_point_a_start_is_refused_and_leaves_nothing(
    host: LeasedHost,
) -> None:
    host.ok("run", "-d", "--name", "first", "--rehomeable", "--", "sleep", "100")
    with host.cut_off():
        host.fails("coordination_down", "run", "-d", "--name", "r", "--rehomeable", "--", "cat")
        host.ok("run", "-d", "--name", "p", "--", "sleep", "100")
    assert sorted(each["name"] for each in host.json("ls")) == ["first", "p"]
    assert len(os.listdir(f"{host.home}/sessions")) == 2
    assert len(os.listdir(f"{host.home}/run/tokens")) == 2


# -- cut off ----------------------------------------------------------------------------------


@pytest.mark.requirement("F1", "F2", "F3", "F4")
def test_a_host_that_is_cut_off_freezes_it_within_the_lease_and_goes_on_in_a_new_epoch(
    host: LeasedHost,
) -> None:
    counter, pinned = host.counting("r", "--rehomeable"), host.counting("p")
    group, token = host.group("r"), f"{host.home}/run/tokens/{host.json('show', 'r')['id']}"
    assert Path(token).read_text() == "1\n"
    with connected(host) as operator, host.cut_off():
        cut = time.time()
        soon(lambda: cgroup.frozen(group), "it is not frozen")
        assert moved_s(counter, cut) < TERMS.wait_s(LEASE_S), "another could have had it by then"
        assert stands_still(counter)
        for asked in ("send r x", "signal r INT", "resize r 90x30", "tail r", "seize r"):
            host.fails("fenced", *asked.split())
        for asked in ("resume r", "turn r request", "keys r Enter"):
            host.fails("fenced", *asked.split())
        with pytest.raises(Fenced):
            operator.send("r", "x")
        assert host.json("show", "r")["state"] == "halted"
        assert "re-homeable, fenced" in host.ok("show", "r")
        # What can be looked at without being routed to it, can be.
        host.ok("screen", "r")
        host.ok("graph", "r")
        counts(pinned)
        host.ok("send", "p", "x")
        assert host.epoch("r") == 1
    counts(counter)
    assert host.epoch("r") == 2 and host.epoch("p") == 1
    assert Path(token).read_text() == "2\n"
    told = host.ok("log", "r")
    lost = told.index("lost the session's lease (lapse)")
    assert lost < told.index("proven frozen") < told.index("again, after epoch 1")
    assert told.index("again, after epoch 1") < told.index("resumed")
    assert re.match(r"continuous: .* in epoch 2 since entry \d+\n", host.ok("status", "r"))
    host.ok("verify", "r")


@pytest.mark.requirement("F2")
def test_a_session_whose_lease_nobody_remembers_runs_on_by_an_attributed_force(
    host: LeasedHost,
) -> None:
    counter = host.counting("r", "--rehomeable")
    host.ok("run", "-d", "--name", "p", "--", "cat")
    host.fails("invalid_argument", "resume", "p", "--force-lease", "it has none")
    host.fails("invalid_argument", "resume", "r", "--force-lease", "it is held")
    with contextlib.closing(sqlite3.connect(host.registry, timeout=PATIENCE_S)) as store, store:
        store.execute("DELETE FROM entries")
    soon(lambda: host.fenced("r"), "it goes on without a lease")
    assert stands_still(counter)
    host.fails("fenced", "resume", "r")
    host.ok("actor", "add", "bot")
    host.ok("grant", "bot", "execute", "r")
    host.fails("not_permitted", "--as", "bot", "resume", "r", "--force-lease", "I want to")
    assert "is resumed" in host.ok("resume", "r", "--force-lease", "the file was lost")
    counts(counter)
    assert host.epoch("r") == 2 and host.lease("r")["state"] == "held"
    (forced,) = (line for line in host.ok("log", "r").splitlines() if "by force" in line)
    assert "the file was lost" in forced and "root" in forced
    host.ok("verify", "r")


@pytest.mark.requirement("F2")
def test_an_interruption_that_heals_before_the_lapse_is_not_noticed() -> None:
    with leased(lease_s=2 * LEASE_S) as host, connected(host) as operator:
        counter = host.counting("r", "--rehomeable")

        def left_s() -> float:
            lease = operator.show("r").lease
            assert lease is not None and lease.state == "held"
            return lease.left_s

        for _ in range(2):
            with host.cut_off():
                soon(lambda: left_s() < LEASE_S, "the lease is renewed all the same")
            soon(lambda: left_s() > LEASE_S * 1.2, "it is not renewed again")
            counts(counter)
        assert host.epoch("r") == 1
        assert "lost the session's lease" not in host.ok("log", "r")


@pytest.mark.requirement("F2")
def test_who_is_attached_is_sent_away_with_the_reason_and_gets_no_more_output(
    host: LeasedHost,
) -> None:
    host.counting("r", "--rehomeable")
    with connected(host) as operator:
        shown = operator.show("r")
        connection = operator.connection
        connection.send(m.Attach(connection.next_id(), shown.id, 7, observe=True, raw=True))
        with host.cut_off():
            while not isinstance(said := connection.receive(PATIENCE_S), m.Dismissed):
                pass
            assert (said.channel, said.code) == (7, "fenced")
            with pytest.raises(Fenced):
                operator.ask(m.Attach(0, shown.id, 8), m.Attached)


@pytest.mark.requirement("F2")
def test_a_terminal_and_a_command_that_is_waited_for_are_told_why_they_end(
    host: LeasedHost,
) -> None:
    host.ok("run", "-d", "--name", "r", "--rehomeable", "--", "bash", "--norc")
    host.ok("wait", "r", "--for", "prompt", "--timeout", "20")
    with host.start("exec", "r", "--", "echo begun; sleep 1000") as waiting:
        assert waiting.stdout is not None and waiting.stdout.readline() == b"begun\n"
        with contextlib.closing(Terminal(host, "attach", "--observe", "r")) as terminal:
            terminal.until(b"begun")
            with host.cut_off():
                terminal.until(b"its host lost its lease")
                assert terminal.wait() == 0
                _, complaint = waiting.communicate(timeout=PATIENCE_S)
        assert b"(fenced)" in complaint and waiting.returncode == 75
    counter = Path(host.files, "after")
    soon(lambda: host.epoch("r") == 2, "no new epoch")
    host.ok("keys", "r", "C-c")
    host.ok("wait", "r", "--for", "prompt", "--timeout", "20")
    host.ok("exec", "r", "--", f"echo x > {counter}")
    assert size(counter) == 2


@pytest.mark.requirement("F2")
def test_a_halt_outlasts_the_fence_and_is_not_ended_by_it(host: LeasedHost) -> None:
    counter = host.counting("r", "--rehomeable")
    host.ok("halt", "r")
    with host.cut_off():
        soon(lambda: host.fenced("r"), "it is not fenced")
    soon(lambda: host.epoch("r") == 2, "no new epoch")
    assert stands_still(counter)
    host.ok("resume", "r")
    counts(counter)


def test_a_fenced_session_can_be_ended(host: LeasedHost) -> None:
    counter = host.counting("r", "--rehomeable")
    with host.cut_off():
        soon(lambda: host.fenced("r"), "it is not fenced")
        before = size(counter)
        host.ok("end", "r")
        assert size(counter) == before


# -- daemons ----------------------------------------------------------------------------------


@pytest.mark.requirement("F2", "S1")
def test_a_new_daemon_carries_the_lease_on_in_the_same_incarnation() -> None:
    # Long enough for a slow machine to start a daemon. That what the killed one had renewed ends is
    # not waited for: its end moves on only if the next one renews it.
    with leased(lease_s=5 * LEASE_S) as host:
        counter = host.counting("r", "--rehomeable")
        for _ in range(3):
            host.ok("daemon", "restart")
            counts(counter)
        killed = host.daemon_pid
        ends = time.monotonic() + host.lease("r")["left_s"]
        os.kill(killed, signal.SIGKILL)
        soon(lambda: time.monotonic() + host.lease("r")["left_s"] > ends + 1, "it is not renewed")
        assert host.daemon_pid != killed
        counts(counter)
        assert host.epoch("r") == 1 and host.lease("r")["state"] == "held"
        assert "lost the session's lease" not in host.ok("log", "r")


@pytest.mark.requirement("F2")
def test_a_new_daemon_finds_it_fenced_and_leaves_it_frozen(host: LeasedHost) -> None:
    counter = host.counting("r", "--rehomeable")
    with host.cut_off():
        soon(lambda: host.fenced("r"), "it is not fenced")
        host.ok("daemon", "restart")
        assert host.fenced("r") and stands_still(counter)
        host.fails("fenced", "send", "r", "x")
    counts(counter)
    assert host.epoch("r") == 2


@pytest.mark.requirement("F2")
def test_the_keeper_freezes_it_when_the_daemon_is_stopped(host: LeasedHost) -> None:
    counter, pinned = host.counting("r", "--rehomeable"), host.counting("p")
    group, pid = host.group("r"), host.daemon_pid
    with connected(host) as operator:
        refused: list[HoldfastError] = []

        def type_into() -> None:
            try:
                operator.send("r", "typed while nobody could know better")
            except HoldfastError as error:
                refused.append(error)

        typing = threading.Thread(target=type_into)
        with stopped(pid):
            typing.start()
            began = time.time()
            soon(lambda: cgroup.frozen(group), "the keeper does not freeze it")
            late = moved_s(counter, began) >= TERMS.wait_s(LEASE_S)
            assert not late, "another could have had it by then"
            assert stands_still(counter)
            counts(pinned)
        typing.join(PATIENCE_S)
        assert [error.code for error in refused] == ["fenced"]
    counts(counter)
    assert host.epoch("r") == 2
    assert "its lease was not renewed in time" in Path(host.home, "host.log").read_text()


@pytest.mark.requirement("F2")
def test_a_new_daemon_finds_what_the_keeper_froze_and_judges_by_the_lease(
    host: LeasedHost,
) -> None:
    counter = host.counting("r", "--rehomeable")
    group, pid = host.group("r"), host.daemon_pid
    with host.cut_off():
        os.kill(pid, signal.SIGSTOP)
        soon(lambda: cgroup.frozen(group), "the keeper does not freeze it")
        os.kill(pid, signal.SIGKILL)
        assert host.fenced("r") and stands_still(counter)
        assert host.epoch("r") == 1
    counts(counter)
    assert host.epoch("r") == 2
    told = host.ok("log", "r")
    assert told.index("carried on") < told.index("lost the session's lease (lapse)")
    assert told.index("lease (lapse)") < told.index("proven frozen") < told.index("after epoch 1")


@pytest.mark.requirement("N9")
def test_a_damaged_journal_leaves_its_successor_halted_and_pinned(host: LeasedHost) -> None:
    counter = host.counting("r", "--rehomeable")
    old = host.json("show", "r")["id"]
    host.ok("daemon", "restart")  # so that everything is sealed and on disk
    segment = Path(host.home, "sessions", old, "journal-00000001.seg")
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    host.ok("daemon", "restart")
    found = host.json("show", "r")
    assert found["id"] != old and found["lease"] is None
    soon(lambda: bool(host.json("show", "r")["state"] == "halted"), "it is not halted")
    time.sleep(LEASE_S)  # nobody has the old lease; that is nothing to the successor
    assert stands_still(counter)
    host.ok("resume", "r")
    counts(counter)


@pytest.mark.requirement("F2")
def test_nothing_is_shown_that_a_stopped_daemon_finds_after_the_lapse(host: LeasedHost) -> None:
    host.ok(
        *("run", "-d", "--name", "r", "--rehomeable", "--"),
        *("sh", "-c", "while :; do echo x; sleep 0.005; done"),
    )
    group, pid = host.group("r"), host.daemon_pid
    with connected(host) as operator:
        connection, shown = operator.connection, operator.show("r")
        connection.send(m.Attach(connection.next_id(), shown.id, 7, observe=True, raw=True))
        while not isinstance(connection.receive(PATIENCE_S), m.Output):
            pass
        with stopped(pid):
            soon(lambda: cgroup.frozen(group), "the keeper does not freeze it")
            while True:  # what was sent before
                try:
                    connection.receive(0.2)
                except HoldfastError:
                    break
        late = 0
        while not isinstance(said := connection.receive(PATIENCE_S), m.Dismissed):
            late += len(said.data) if isinstance(said, m.Output) else 0
        # Stopped between the check and the sending, it could send what it had in hand; but not the
        # kilobyte that was printed since.
        assert late < 100
        assert said.code == "fenced"


# -- another host -----------------------------------------------------------------------------


class Other:
    """Another host that waits for the lease by the rules, and gets it."""

    def __init__(self, session: str, registry: Path) -> None:
        self.session, self.registry = SessionId(session), registry
        self.at = 0.0

    def take(self) -> None:
        async def story() -> None:
            store = SqliteCoordination(self.registry)
            lease = Lease(self.session, "other", "another life", TERMS)
            runner = LeaseRunner(lease, store, BootClock(), self)
            assert await runner.acquire(PATIENCE_S)
            self.at = time.monotonic()
            runner.release()
            async with asyncio.timeout(PATIENCE_S):
                await runner.settled.wait()
            runner.close()
            await store.close()

        asyncio.run(story())

    def acquired(self, epoch: int, until: float) -> None:
        assert epoch == 2

    def renewed(self, until: float) -> None: ...

    def lost(self, step: LeaseStep) -> None: ...

    def taken(self, by: LeaseRecord) -> None: ...

    def save(self) -> None: ...


@pytest.mark.requirement("F1", "F3")
def test_what_another_host_took_over_never_runs_here_again(host: LeasedHost) -> None:
    counter = host.counting("r", "--rehomeable")
    group, pid = host.group("r"), host.daemon_pid
    other = Other(host.json("show", "r")["id"], host.registry)
    with stopped(pid):
        taking = threading.Thread(target=other.take)
        taking.start()
        soon(lambda: cgroup.frozen(group), "the keeper does not freeze it")
        frozen_at = time.monotonic()
        taking.join(PATIENCE_S)
        assert other.at > frozen_at, "taken while it ran here"
        before = size(counter)
    soon(lambda: host.lease("r")["state"] == "taken", "it is not noticed")
    assert host.lease("r")["later_epoch"] == 2 and host.epoch("r") == 1
    host.fails("fenced", "send", "r", "x")
    host.fails("fenced", "resume", "r")
    host.ok("daemon", "restart")
    time.sleep(TERMS.wait_s(LEASE_S))  # the other gave it back long ago: that changes nothing
    assert host.lease("r")["state"] == "taken"
    assert size(counter) == before
    host.fails("fenced", "tail", "r")
    assert "the session lives on another host, in epoch 2" in host.ok("log", "r")
    host.ok("end", "r")
    assert size(counter) == before


def test_the_lease_is_given_back_at_the_end(host: LeasedHost) -> None:
    host.ok("run", "-d", "--name", "r", "--rehomeable", "--", "cat")
    other = Other(host.json("show", "r")["id"], host.registry)
    host.ok("end", "r")
    began = time.monotonic()
    other.take()
    assert other.at - began < TERMS.usable_s()


# -- from afar --------------------------------------------------------------------------------


@pytest.mark.requirement("F1", "F2", "F5")
def test_nobody_is_routed_to_it_from_afar_while_it_is_fenced() -> None:
    with contextlib.closing(Faraway()) as far:
        host, client = far.host, far.client
        settings = Path(host.home, "config.toml")
        settings.write_text(f"{settings.read_text()}lease_s = {LEASE_S}\n")
        host.ok("daemon", "restart")
        far.until_reached(2)
        host.ok("run", "-d", "--name", "r", "--rehomeable", "--", "cat")
        host.ok("run", "-d", "--name", "p", "--", "cat")
        terminal = Terminal(client, "attach", "box/r")
        terminal.until(b"\x1b[?2026l")
        terminal.type(b"before")
        terminal.until_shown("before")
        with locked(Path(host.home, "registry.sqlite")):
            terminal.wait()
            terminal.close()
            for asked in ("send box/r x", "keys box/r Enter", "tail box/r"):
                assert client(*asked.split()).returncode != 0, asked
            assert client.json("show", "box/r")["lease"]["state"] == "fenced"
            client.ok("send", "box/p", "x")
        soon(lambda: bool(host.json("show", "r")["epoch"] == 2), "no new epoch")
        client.ok("send", "box/r", "after")
        client.ok("wait", "box/r", "--for", "text:after", "--timeout", "20")
        assert "x" not in host.ok("screen", "r")


# -- NATS -------------------------------------------------------------------------------------


@pytest.mark.requirement("F2", "F5")
def test_a_nats_that_does_not_answer_fences_in_time_and_heals(tmp_path: Path) -> None:
    lease_s = 6.0
    with NatsCluster(tmp_path, 1) as cluster, leased(cluster.urls[0], lease_s) as host:
        counter, pinned = host.counting("r", "--rehomeable"), host.counting("p")
        group, (node,) = host.group("r"), cluster.nodes
        with connected(host) as operator:  # a look by command takes too much of the lease

            def left_s() -> float:
                lease = operator.show("r").lease
                assert lease is not None
                return lease.left_s

            node.pause()
            soon(lambda: left_s() < lease_s / 2, "it is renewed all the same")
            node.resume()
            soon(lambda: left_s() > lease_s / 2, "it is not renewed again")
        assert host.epoch("r") == 1
        node.pause()
        paused = time.time()
        soon(lambda: cgroup.frozen(group), "it is not frozen")
        assert moved_s(counter, paused) < TERMS.wait_s(lease_s), "another could have had it by then"
        assert stands_still(counter)
        host.fails("fenced", "send", "r", "x")
        counts(pinned)
        node.resume()
        soon(lambda: host.epoch("r") == 2, "no new epoch")
        counts(counter)
        host.ok("end", "r")


# -- the token --------------------------------------------------------------------------------


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("options", [(), ("--rehomeable",), ("--level", "plain")])
def test_programs_of_a_session_read_its_token(host: LeasedHost, options: tuple[str, ...]) -> None:
    host.ok("run", "-d", "--name", "r", *options, "--", "bash", "--norc")
    host.ok("wait", "r", "--for", "prompt", "--timeout", "20")
    asked = "echo $HOLDFAST_EPOCH $(cat $HOLDFAST_TOKEN_FILE) $(stat -c %a $HOLDFAST_TOKEN_FILE)"
    assert host.ok("exec", "r", "--", asked).split() == ["1", "1", "644"]
    host.ok("end", "r")
    assert os.listdir(f"{host.home}/run/tokens") == []


@pytest.mark.requirement("F4")
def test_a_program_sees_the_new_token_when_it_runs_again(host: LeasedHost) -> None:
    seen = Path(host.files, "seen")
    line = f"while :; do cat $HOLDFAST_TOKEN_FILE >> {seen}; sleep 0.01; done"
    host.ok("run", "-d", "--name", "r", "--rehomeable", "--", "sh", "-c", line)
    soon(lambda: size(seen) > 10, "it does not read")
    with host.cut_off():
        soon(lambda: host.fenced("r"), "it is not fenced")
        before = len(seen.read_text().split())
    soon(lambda: len(seen.read_text().split()) > before + 10, "it does not run on")
    tokens = seen.read_text().split()
    # One that had been read before the freeze may be written after it.
    assert set(tokens[: before - 1]) == {"1"} and set(tokens[before + 1 :]) == {"2"}


@pytest.mark.requirement("F4")
def test_without_room_for_its_token_nothing_runs_in_a_new_epoch(host: LeasedHost) -> None:
    counter = host.counting("r", "--rehomeable")
    shown = host.json("show", "r")
    token = Path(host.home, "run/tokens", shown["id"])
    with host.cut_off():
        soon(lambda: host.fenced("r"), "it is not fenced")
        in_the_way = Path(f"{token}.new")
        in_the_way.mkdir()  # as if there were no room
    soon(lambda: bool(host.lease("r")["why"]), "it is not said why it stands still")
    assert "token" in host.ok("show", "r") and host.fenced("r")
    os.kill(host.daemon_pid, signal.SIGKILL)  # the next daemon judges the same
    soon(lambda: bool(host.lease("r")["why"]), "a new daemon does not say why")
    assert stands_still(counter)
    assert token.read_text() == "1\n" and host.epoch("r") == 1
    host.fails("fenced", "send", "r", "x")
    in_the_way.rmdir()
    counts(counter)
    assert int(token.read_text()) == host.epoch("r") > 1
    assert host.lease("r")["state"] == "held"
