"""S1, M1: no process of ours but a session's own keeper takes a session with it. Daemon, relay and
supervisor are killed, one by one and all at once; sessions do not notice, and the next command
carries on."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from faults.hosting import (
    FaultHost,
    ProcessKey,
    command_line,
    ending_of,
    is_alive,
    process_key,
)
from faults.leftovers import assert_in_order
from holdfast.keeper import supervisor
from holdfast.model.discontinuity import DiscontinuityKind
from holdfast.model.state import Ending, Level
from holdfast.sdk.client import Host
from process.waiting import until

GAP_LINES = 300_000
_LISTEN = {"HOLDFAST_RELAY": "127.0.0.1"}


def processes_of(host: FaultHost) -> dict[str, ProcessKey]:
    """Daemon, supervisor and relay, as `hold doctor` names them."""

    def look() -> dict[str, ProcessKey] | None:
        info = host.client().host()
        pids = {
            "daemon": info.daemon_pid,
            "supervisor": info.supervisor_pid or 0,
            "relay": info.relay_pid or 0,
        }
        keys = {name: process_key(pid) for name, pid in pids.items() if pid}
        return {name: key for name, key in keys.items() if key} if len(keys) == 3 else None

    return until("all three run", look)


def kill(process: ProcessKey) -> None:
    if is_alive(process):
        os.kill(process.pid, signal.SIGKILL)


def serving(host: FaultHost) -> Host:
    """A client, once a command has been answered."""
    done = host.hold("ls", "--json")
    assert done.returncode == 0, done.stderr + host.log()
    return host.client()


@pytest.fixture
def relayed() -> FaultHost:
    return FaultHost(_LISTEN)


@pytest.mark.requirement("S1")
@pytest.mark.timeout(100)
@pytest.mark.parametrize(
    "order",
    [
        *itertools.permutations(("daemon", "relay", "supervisor")),
        ("daemon",),
        ("relay",),
        ("supervisor",),
    ],
    ids="-".join,
)
def test_daemon_relay_and_supervisor_may_be_killed_in_any_order(
    relayed: FaultHost, order: tuple[str, ...]
) -> None:
    with relayed.up() as host:
        client = host.client()
        before = client.run(["bash", "--norc"], name="work")
        until("a prompt", lambda: client.show("work").state == "prompt" or None)
        assert host.hold("exec", "work", "--", "variable=kept").returncode == 0
        for name in order:
            kill(processes_of(host)[name])
            serving(host)
        after = serving(host).show("work")
        same = ("id", "epoch", "pid", "keeper_pid")
        assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
        assert host.hold("exec", "work", "--", "echo $variable").stdout == "kept\n"


@pytest.mark.requirement("S1", "M1")
@pytest.mark.timeout(100)
def test_another_version_of_the_supervisor_takes_over_what_the_killed_one_left(
    relayed: FaultHost, level: Level, tmp_path: Path
) -> None:
    """An upgrade in the place of what is killed, and a downgrade after that."""
    marker, source = "of another build", Path(supervisor.__file__)
    other = tmp_path / "holdfast"
    shutil.copytree(source.parents[1], other, ignore=shutil.ignore_patterns("__pycache__"))
    text = source.read_text()
    begins = "    options = parser.parse_args()\n"
    assert text.count(begins) == 1
    changed = text.replace(begins, f'{begins}    _log("{marker}")\n')
    (other / "keeper" / "supervisor.py").write_text(changed)
    with relayed.up() as host:
        client = host.client()
        before = client.run(["bash", "--norc"], name="work", level=level)
        until("a prompt", lambda: client.show("work").state == "prompt" or None)
        assert host.hold("exec", "work", "--", "variable=kept").returncode == 0
        for path, times in ((str(tmp_path), 1), ("", 1)):
            host.environment["PYTHONPATH"] = path
            running = processes_of(host)
            os.kill(running["daemon"].pid, signal.SIGSTOP)  # or it starts one of its own build
            kill(running["supervisor"])
            kill(running["daemon"])
            after = serving(host).show("work")
            assert host.log().count(marker) == times
            assert (after.id, after.pid) == (before.id, before.pid)
            assert after.keeper_pid == before.keeper_pid
            assert host.hold("exec", "work", "--", "echo $variable").stdout == "kept\n"


@pytest.mark.requirement("S1", "M1", "A9")
@pytest.mark.timeout(100)
def test_all_three_at_once_output_of_the_gap_and_statuses_are_there_afterwards(
    relayed: FaultHost, level: Level
) -> None:
    with relayed.up() as host:
        client = host.client()
        done, begin = host.work / "done", host.work / "begin"
        wait = f"until [ -e {begin} ]; do sleep 0.05; done"
        printing = client.run(
            ["sh", "-c", f"stty raw; {wait}; seq {GAP_LINES}; : > {done}; read x"],
            name="printing",
            level=level,
            ring_bytes=8 << 20,
        )
        endings = {
            client.run(["sh", "-c", f"{wait}; {script}"], level=level).id: ending
            for script, ending in (
                ("exit 7", Ending(code=7)),
                ("exit 137", Ending(code=137)),
                ("kill -KILL $$", Ending(signal=9)),
            )
        }
        trio = processes_of(host)
        for process in trio.values():
            os.kill(process.pid, signal.SIGSTOP)  # so that none notices another's end
        for process in trio.values():
            kill(process)
        until("they are gone", lambda: not any(map(is_alive, trio.values())) or None)
        begin.touch()
        until("it printed all, with nobody to read it", lambda: done.exists() or None)
        client = serving(host)
        after = client.show("printing")
        assert (after.pid, after.keeper_pid) == (printing.pid, printing.keeper_pid)
        text = b"".join(f"{number}\n".encode() for number in range(1, GAP_LINES + 1))
        until("all is held", lambda: client.show("printing").output_offset == len(text) or None)
        assert after.held_from == 0
        shown = host.hold("tail", "printing")
        assert shown.stdout.replace("\r", "").encode() == text
        for session, ending in endings.items():
            assert ending_of(client, session) == ending
        client.end("printing")
        assert_in_order(host, client)


@pytest.mark.requirement("M1")
@pytest.mark.timeout(60)
def test_more_than_the_ring_holds_rolls_through_it_in_the_gap_and_the_end_is_shown(
    host: FaultHost,
) -> None:
    client = host.client()
    done, begin = host.work / "done", host.work / "begin"
    wait = f"until [ -e {begin} ]; do sleep 0.05; done"
    script = f"echo first; {wait}; seq {GAP_LINES}; : > {done}; read x; echo more; read y"
    client.run(["sh", "-c", script], name="printing", ring_bytes=256 << 10)
    until("it prints", lambda: "first" in client.screen("printing").text or None)
    pids = host.supervisor_pid(), host.daemon_pid() or 0
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    begin.touch()
    until("it printed all", lambda: done.exists() or None)
    client = serving(host)
    client.send("printing", "\n")
    shown = until("it goes on", lambda: found if "more" in (found := _screen(client)) else None)
    assert f"{GAP_LINES - 1}\n{GAP_LINES}\n" in shown
    held = client.show("printing")
    assert held.output_offset - held.held_from == 256 << 10
    assert "Traceback" not in host.log()


def _screen(client: Host) -> str:
    return "\n".join(line.rstrip() for line in client.screen("printing").text.splitlines())


@pytest.mark.requirement("S1")
@pytest.mark.timeout(60)
def test_a_daemon_that_hangs_is_killed_before_another_serves_its_sessions(
    host: FaultHost,
) -> None:
    client = host.client()
    before = client.run(["cat"], name="work")
    daemon, supervisor = host.daemon_pid(), host.supervisor_pid()
    assert daemon is not None
    hung = process_key(daemon)
    assert hung is not None
    os.kill(daemon, signal.SIGSTOP)  # it cannot see that its supervisor is gone
    os.kill(supervisor, signal.SIGKILL)
    until("the supervisor left", lambda: not host.supervisor_alive() or None)
    host.up()
    assert not is_alive(hung)
    after = host.client().show("work")
    assert (after.id, after.pid) == (before.id, before.pid)


@pytest.mark.requirement("S1")
@pytest.mark.timeout(60)
def test_a_keeper_that_does_not_answer_holds_up_nobody_and_is_not_buried(host: FaultHost) -> None:
    client = host.client()
    stopped, other = client.run(["cat"], name="stopped"), client.run(["cat"], name="other")
    os.kill(stopped.keeper_pid, signal.SIGSTOP)
    try:
        host.wait_new_daemon(host.kill_daemon())
        client.reconnect()
        assert [each.id for each in client.sessions()] == [other.id]
        assert not (host.home / "sessions" / stopped.id / "tombstone.json").exists()
    finally:
        os.kill(stopped.keeper_pid, signal.SIGCONT)
    found = until(
        "it is back", lambda: {each.id: each for each in client.sessions()}.get(stopped.id)
    )
    assert found.pid == stopped.pid


@pytest.mark.requirement("S1")
@pytest.mark.timeout(60)
def test_a_signal_to_the_supervisor_stops_the_host_and_no_session(host: FaultHost) -> None:
    client = host.client()
    before = client.run(["cat"], name="work")
    daemon = host.daemon_pid()
    assert daemon is not None
    os.kill(host.supervisor_pid(), signal.SIGTERM)
    until("the host is down", lambda: not host.supervisor_alive() or None)
    assert process_key(daemon) is None
    assert process_key(before.pid) is not None
    after = serving(host).show("work")
    assert (after.id, after.pid, after.epoch) == (before.id, before.pid, before.epoch)


@pytest.mark.requirement("S1")
@pytest.mark.timeout(60)
def test_down_ends_only_what_the_asking_actor_may_end(host: FaultHost) -> None:
    client = host.client()
    mine = client.run(["cat"], name="mine", labels=["mine"])
    other = client.run(["cat"], name="other")
    for words in (
        ("actor", "add", "steward"),
        ("grant", "steward", "observe", "grant", "--all"),
        ("grant", "steward", "observe", "end", "--label", "mine"),
    ):
        done = host.hold(*words)
        assert done.returncode == 0, done.stderr
    done = host.hold("--as", "steward", "down", "--end-sessions")
    assert (done.returncode, done.stdout) == (0, "the host is down\nstill running: other\n")
    client = serving(host)
    after = client.show("other")
    assert (after.id, after.pid) == (other.id, other.pid)
    assert client.show(mine.id).ending is not None
    asked = [line for line in host.hold("log", mine.id).stdout.splitlines() if "end" in line]
    assert any("steward" in line for line in asked), asked


@pytest.mark.requirement("A9")
@pytest.mark.timeout(60)
def test_what_a_restart_of_the_machine_ended_is_recorded_with_that_cause(host: FaultHost) -> None:
    client = host.client()
    lost = client.run(["cat"], name="work")
    for pid in (host.supervisor_pid(), host.daemon_pid() or 0):
        os.kill(pid, signal.SIGSTOP)
    for pid in (host.supervisor_pid(), host.daemon_pid() or 0, lost.keeper_pid):
        os.kill(pid, signal.SIGKILL)
    spec = host.home / f"sessions/{lost.id}/spec.json"
    spec.write_text(json.dumps(json.loads(spec.read_text()) | {"boot_id": "another"}))
    host.up()
    ending = host.client().show(lost.id).ending
    assert ending is not None and ending.cause is not None
    assert ending.cause.kind == DiscontinuityKind.HOST_LOST and ending.cause.boot_id == "another"


@pytest.mark.timeout(100)
def test_daemon_and_keeper_of_an_idle_session_take_little_memory(host: FaultHost) -> None:
    count = 40
    client = host.client()
    client.end(client.run(["bash", "--norc"]).id)  # what the first one brings in
    client.run(["bash", "--norc"], name="first")

    def taken_kb(pids: list[int]) -> float:
        total = 0.0
        for pid in pids:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    total += int(line.split()[1])
        return total

    daemon = client.host().daemon_pid
    before = taken_kb([daemon, *host.keepers()])
    for number in range(count):
        client.run(["bash", "--norc"], name=f"idle{number}")
    until("all wait", lambda: all(i.state == "prompt" for i in client.sessions()) or None)
    each = (taken_kb([daemon, *host.keepers()]) - before) / count
    assert each <= 60, f"{each:.0f} kB each"


@pytest.mark.requirement("S1")
def test_keepers_belong_to_no_daemon_no_launcher_and_no_terminal(host: FaultHost) -> None:
    client = host.client()
    info = client.run(["cat"], name="work")
    assert os.getsid(info.keeper_pid) == info.keeper_pid
    assert command_line(info.keeper_pid).startswith("hold-keeper")
    host.wait_new_daemon(host.kill_daemon())
    deadline = time.monotonic() + 10
    while host.client().show("work").keeper_pid != info.keeper_pid:
        assert time.monotonic() < deadline
