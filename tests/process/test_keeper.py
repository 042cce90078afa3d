"""The keeper of one session, a C program: what it holds, what it does while no daemon runs, and
what it must survive."""

from __future__ import annotations

import array
import os
import select
import signal
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.keeper import boottime, protocol
from process.custody import Kept, kept, wait_file, waiting
from process.waiting import PATIENCE_S

GAP_BYTES = 2 << 20  # more than a terminal and a pipe hold
PRIVATE_MAX_KB = 40  # alone on a machine; its program text is shared where there are two
ENDINGS = {
    "exit 7": {"code": 7},
    "exit 137": {"code": 137},
    "kill -KILL $$": {"signal": 9},
    "kill -SEGV $$": {"signal": 11},
}


@pytest.mark.requirement("S1")
def test_the_next_daemon_gets_what_the_last_one_left() -> None:
    with kept("cat") as session:
        session.deposit(b"first")
        protocol.send(session.daemon, protocol.update(b"second"))
        old, session.daemon = session.daemon, session.connect()
        protocol.send(session.daemon, protocol.COLLECT)
        news = session.news()
        assert news is not None
        assert (news.kind, news.blob, news.status) == ("D", b"second", None)
        assert (news.names, news.keeper_pid) == (["master", "ring", "output"], session.pid)
        assert [os.fstat(fd).st_ino for fd in news.fds[1:]] == [
            os.fstat(fd).st_ino for fd in (session.ring.memfd, session.ring.conduit)
        ]
        for fd in news.fds:
            os.close(fd)
        assert protocol.receive(old) is None, "one daemon is served at a time"
        old.close()


@pytest.mark.requirement("A9")
@pytest.mark.parametrize("script", ENDINGS)
def test_the_true_status_is_news_and_is_kept_for_the_next_daemon(script: str) -> None:
    with kept(script) as session:
        session.deposit()
        news = session.news()
        assert news is not None and (news.kind, news.status) == ("E", ENDINGS[script])
        assert session.collect().status == ENDINGS[script]
    with kept(f"read line; {script}") as session:
        session.deposit()
        session.leave()
        os.write(session.master, b"\n")  # it ends while no daemon runs
        deadline = time.monotonic() + PATIENCE_S
        while (status := session.collect().status) is None:
            assert time.monotonic() < deadline
        assert status == ENDINGS[script]


@pytest.mark.requirement("S1", "M1")
@pytest.mark.parametrize("capacity", [8 << 20, 64 << 10], ids=["held whole", "wraps"])
def test_output_of_a_gap_is_in_the_ring_and_no_program_waits(tmp_path: Path, capacity: int) -> None:
    done = tmp_path / "done"
    script = f"seq 300000; : > {done}; read y"
    expected = "".join(f"{number}\n" for number in range(1, 300001)).encode()
    assert len(expected) > GAP_BYTES * 0.9
    with waiting(tmp_path, script, capacity) as session:
        session.deposit()
        session.leave()
        os.write(session.master, b"\n")
        wait_file(done)  # it printed everything: it did not wait for a daemon
        session.collect()  # from here on the ring is ours
        session.ring.recover()
        while session.ring.pump(session.master, 1 << 20):
            pass
        ring = session.ring
        assert ring.head == len(expected)
        assert ring.copy(ring.tail, ring.head) == expected[ring.tail :]


@pytest.mark.requirement("S1", "M1")
def test_daemons_that_come_and_go_amid_output_lose_and_double_nothing(tmp_path: Path) -> None:
    done = tmp_path / "done"
    script = f"seq 200000; : > {done}; read y"
    expected = "".join(f"{number}\n" for number in range(1, 200001)).encode()
    with waiting(tmp_path, script) as session:
        session.deposit()
        os.write(session.master, b"\n")
        visits = 0
        while not done.exists() or visits < 20:
            session.collect()
            session.ring.recover()
            session.ring.pump(session.master, 64 << 10)
            if visits % 2:  # die between the two halves of a transfer
                with_conduit = session.ring._burst(session.master, 4)
                assert with_conduit[0] >= 0
            session.leave()
            visits += 1
        session.collect()
        session.ring.recover()
        while session.ring.pump(session.master, 1 << 20):
            pass
        assert session.ring.copy(0, session.ring.head) == expected


@pytest.mark.parametrize("told", ["deposit", "later"])
def test_what_is_printed_in_a_blind_turn_is_read_and_kept_nowhere(
    tmp_path: Path, told: str
) -> None:
    done = tmp_path / "done"
    with waiting(tmp_path, f"seq 100000; : > {done}; read y") as session:
        if told == "deposit":
            session.deposit(output=protocol.DROP_OUTPUT)
        else:
            session.deposit()
            protocol.send(session.daemon, protocol.output(protocol.DROP_OUTPUT))
        session.leave()
        os.write(session.master, b"\n")
        wait_file(done)
        session.collect()
        assert session.output() == b""


def test_output_that_is_to_be_left_stays_in_the_terminal() -> None:
    with kept("stty raw -echo; echo mine; read y") as session:
        session.deposit(output=protocol.LEAVE_OUTPUT)
        session.leave()
        assert select.select([session.master], [], [], PATIENCE_S)[0]
        session.collect()
        assert session.output() == b"" and os.read(session.master, 100) == b"mine\n"


def test_without_a_deposit_the_end_of_its_daemon_is_the_sessions(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with closing(
        Kept(f"trap '' HUP; echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 1000")
    ) as session:
        wait_file(pid)
        program = os.pidfd_open(int(pid.read_text()))
        session.leave()
        assert select.select([program], [], [], PATIENCE_S)[0]
        os.close(program)
        session.wait_exit()
        assert not os.path.exists(session.path)


def test_a_message_that_makes_no_sense_is_dropped() -> None:
    with kept("cat") as session:
        session.deposit(b"good")
        reader, writer = os.pipe()
        ours = [reader] * protocol.DESCRIPTORS_MAX
        before = len(os.listdir(f"/proc/{session.pid}/fd"))
        bad = [b"d", b"u", b"l", b"o", b"o\x09", b"?", b"\0" * 4000, b"d" + b"\xff" * 500]
        for message in bad:
            protocol.send(session.daemon, message)
            protocol.send(session.daemon, message, ours)
        protocol.send(session.daemon, b"u" * (protocol.MESSAGE_MAX_BYTES + 100))
        rights = array.array("i", [reader] * 100)
        session.daemon.sendmsg([b"u"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        protocol.send(session.daemon, protocol.COLLECT)
        news = session.news()
        assert news is not None and news.blob == b"good"
        for fd in (reader, writer, *news.fds):
            os.close(fd)
        # A lease takes one descriptor, even one that is of no use; nothing else stays.
        assert len(os.listdir(f"/proc/{session.pid}/fd")) <= before + 1


@pytest.mark.requirement("F2")
def test_it_freezes_at_the_deadline_unless_that_is_extended(tmp_path: Path) -> None:
    wish = tmp_path / "cgroup.freeze"
    wish.write_text("0")
    with kept("cat") as session:
        session.deposit()
        fd = os.open(wish, os.O_WRONLY)
        protocol.send(session.daemon, protocol.lease(boottime.now() + 0.3), [fd])
        os.close(fd)
        protocol.send(session.daemon, protocol.lease(boottime.now() + 1000))
        assert not select.select([session.daemon], [], [], 0.6)[0]
        assert wish.read_text() == "0"
        protocol.send(session.daemon, protocol.lease(None))
        protocol.send(session.daemon, protocol.lease(boottime.now() + 0.05))
        news = session.news()
        assert news is not None and news.kind == "F" and wish.read_text() == "1"


@pytest.mark.requirement("F2")
def test_word_of_the_lease_that_is_under_way_at_the_deadline_counts(tmp_path: Path) -> None:
    wish = tmp_path / "cgroup.freeze"
    wish.write_text("0")
    with kept("cat") as session:
        session.deposit()
        fd = os.open(wish, os.O_WRONLY)
        due = boottime.now() + 0.2
        protocol.send(session.daemon, protocol.lease(due), [fd])
        os.close(fd)
        session.collect()  # it has been read
        signal.pidfd_send_signal(session.pidfd, signal.SIGSTOP)
        while boottime.now() < due:
            os.sched_yield()
        protocol.send(session.daemon, protocol.lease(due + 1000))
        protocol.send(session.daemon, protocol.COLLECT)
        signal.pidfd_send_signal(session.pidfd, signal.SIGCONT)
        news = session.news()
        assert news is not None and news.kind == "D" and wish.read_text() == "0"
        for fd in news.fds:
            os.close(fd)
        assert not select.select([session.daemon], [], [], 0.1)[0]


@pytest.mark.requirement("F2")
def test_it_freezes_while_no_daemon_runs_and_shows_nothing_from_there_on(tmp_path: Path) -> None:
    wish = tmp_path / "cgroup.freeze"
    wish.write_text("0")
    with waiting(tmp_path, "echo late; read y") as session:
        session.deposit()
        fd = os.open(wish, os.O_WRONLY)
        protocol.send(session.daemon, protocol.lease(boottime.now() + 0.05), [fd])
        os.close(fd)
        session.leave()
        deadline = time.monotonic() + PATIENCE_S
        while wish.read_text() != "1":
            assert time.monotonic() < deadline
        os.write(session.master, b"\n")
        assert select.select([session.master], [], [], PATIENCE_S)[0]
        session.collect()
        assert session.output() == b""


def test_signals_do_not_end_it() -> None:
    with kept("cat") as session:
        session.deposit()
        session.collect()
        spared = {signal.SIGKILL, signal.SIGSTOP}
        for number in signal.valid_signals() - spared:
            os.kill(session.pid, number)
        assert session.collect().blob == b"state"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another unix user")
def test_another_unix_user_is_not_served() -> None:
    with kept("cat") as session:
        session.deposit(b"secret")
        os.chmod(session.directory, 0o755)
        os.chmod(session.path, 0o777)
        pid = os.fork()
        if pid == 0:
            try:
                os.setresuid(65534, 65534, 65534)
                other = session.connect()
                protocol.send(other, protocol.COLLECT)
                os._exit(0 if protocol.receive(other) is None else 1)
            except (BrokenPipeError, ConnectionResetError):
                os._exit(0)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        protocol.send(session.daemon, protocol.COLLECT)
        news = session.news()
        assert news is not None and news.blob == b"secret", "its own daemon is still served"
        for fd in news.fds:
            os.close(fd)


def test_a_terminal_that_nobody_has_open_does_not_keep_it_busy(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with kept(f"exec 0<&- 1>&- 2>&-; : > {closed}; while :; do /bin/sleep 1000; done") as session:
        session.deposit()
        session.leave()
        wait_file(closed)
        before = session.switches()
        assert not select.select([session.pidfd], [], [], 1.2)[0]
        assert session.switches() - before <= 10, "it looks once a second"
        assert session.collect().blob == b"state"


def test_an_idle_one_is_small() -> None:
    with kept("cat") as session:
        session.deposit(b"x" * 2000)
        for _ in range(100):
            protocol.send(session.daemon, protocol.update(b"y" * 150_000))
            protocol.send(session.daemon, protocol.update(b"z" * 2000))
        session.collect()
        assert session.private_kb() <= PRIVATE_MAX_KB
