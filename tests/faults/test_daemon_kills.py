"""S1, S3, M1, M6: the daemon dies again and again, and nobody can tell from the session."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from faults.bystanders import Attacher, Executor, Runner
from faults.crash_points import customized_host
from faults.hosting import HOLD, FaultHost, is_alive
from faults.leftovers import assert_in_order
from faults.numbered import (
    CarefulOperator,
    Follower,
    InputOperator,
    NumberedSession,
    SdkOperator,
    input_faults,
    stream_faults,
)
from holdfast.model.state import Level
from process.waiting import until

KILLS = 50
ANY_KILLS = 500  # of processes, several of them at once
CLIENTS = 2
SEED = 20_251_115


def kill_daemons(host: FaultHost, chance: random.Random) -> None:
    """Again and again; some die while they start."""
    victims = set()
    for _ in range(KILLS):
        victims.add(killed := host.kill_daemon())
        if chance.random() < 0.8:  # else the next dies while it starts
            host.wait_new_daemon(killed)
        time.sleep(chance.uniform(0, 0.25))  # the instant of the kill is what is random here
    host.wait_new_daemon(killed)
    # One that had not been waited for may have been the same that was dying already.
    assert host.client().host().restarts >= len(victims) > KILLS // 2


def kill_anything(host: FaultHost, chance: random.Random) -> None:
    """Daemon, relay, supervisor and clients, one after the other or several at once; the next
    command carries on."""
    clients: list[subprocess.Popen[bytes]] = []
    killed = 0
    try:
        while killed < ANY_KILLS:
            while len(clients) < CLIENTS:
                clients.append(_client(host))
            pids = {
                "daemon": host.daemon_pid(),
                "relay": host.relay_pid(),
                "supervisor": host.supervisor_pid(),
                "client": chance.choice(clients).pid,
            }
            there = [pid for pid in pids.values() if pid is not None]
            for pid in chance.sample(there, chance.randint(1, len(there))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            clients = [client for client in clients if client.poll() is None]
            if chance.random() < 0.5:  # else the next die while they start
                done = host.hold("ls", "--json")
                assert done.returncode == 0, done.stderr + host.story()
            time.sleep(chance.uniform(0, 0.1))  # the instant of the kill is what is random here
        assert host.hold("ls", "--json").returncode == 0
    finally:
        for client in clients:
            client.kill()
            client.wait()


def _client(host: FaultHost) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [HOLD, "watch", "--json"],
        env=host.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.requirement("S1", "S3", "M1", "M6")
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("storm", "relay"), [(kill_daemons, "off"), (kill_anything, "127.0.0.1")], ids=["daemon", "any"]
)
def test_hundreds_of_kills_lose_and_repeat_nothing(
    storm: Callable[[FaultHost, random.Random], None], relay: str
) -> None:
    with FaultHost({"HOLDFAST_RELAY": relay}) as host:
        # Many kills take minutes, and the ring must hold all that is printed meanwhile.
        _survives(host.up(), storm, rest_s=0.0 if storm is kill_daemons else 0.15)


def _survives(
    host: FaultHost, storm: Callable[[FaultHost, random.Random], None], rest_s: float
) -> None:
    sessions = [
        NumberedSession.start(host, level, seed, rest_s)
        for seed, level in enumerate((Level.PLAIN, Level.CONTAINED))
    ]
    operators: dict[str, list[InputOperator]] = {
        session.id: [
            SdkOperator(host, session.id, f"sdk{index}"),
            SdkOperator(host, session.id, f"too{index}"),
            CarefulOperator(host, session.id, f"careful{index}"),
        ]
        for index, session in enumerate(sessions)
    }
    followers = [Follower(host, session.id) for session in sessions]
    others = [Runner(host), Attacher(host, sessions[1].id), Executor(host)]
    threads: list[threading.Thread] = [
        *(operator for group in operators.values() for operator in group),
        *followers,
        *others,
    ]
    for thread in threads:
        thread.start()
    storm(host, random.Random(SEED))
    for group in operators.values():
        for operator in group:
            operator.stop.set()
    for other in others:
        other.stop.set()
    client = host.client()
    for operator in (o for group in operators.values() for o in group):
        operator.join(45)
        assert not operator.is_alive() and not operator.fault, operator.fault
    for session, follower in zip(sessions, followers, strict=True):
        held = session.stop_printing(client)
        assert stream_faults(held) == []
        follower.join(30)
        assert follower.fault == "" and follower.held == held
        assert is_alive(session.process) and client.show(session.id).pid == session.process.pid
        diaries = [operator.diary for operator in operators[session.id]]
        assert input_faults(session.lines, diaries) == []
        assert sum(len(diary.acknowledged) for diary in diaries) > KILLS
    for other in others:
        other.join(30)
        assert not other.is_alive()
    assert [fault for other in others for fault in other.faults()] == []
    assert_in_order(host, client)


# A child between fork and exec has all of its parent's descriptors; this one stays there.
_WITH_A_CHILD = """
import os, time
home = os.environ["HOLDFAST_HOME"]
if os.fork() == 0:
    until = time.monotonic() + 60
    while os.path.exists(home + "/stay") and time.monotonic() < until:
        time.sleep(0.01)
    open(home + "/gone." + str(os.getpid()), "x").close()
    os._exit(0)
"""


@pytest.mark.requirement("S1")
@pytest.mark.timeout(60)
def test_a_child_that_outlives_its_daemon_does_not_confuse_the_supervisor() -> None:
    with customized_host(_WITH_A_CHILD) as host:
        stay = host.home / "stay"
        stay.touch()
        daemon = host.up().wait_new_daemon(0)
        for kill in range(4):
            os.kill(daemon, signal.SIGKILL)
            daemon = host.wait_new_daemon(daemon)
            if kill == 0:  # the first daemon's child ends, and with it the last of its channel
                stay.unlink()
                until("both are gone", lambda: len(list(host.home.glob("gone.*"))) >= 2)
