"""A9, S1, S2: an end is true, and final; a keeper's death is reported as what it was."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time

import pytest

from faults.hosting import (
    HOLD,
    PATIENCE_S,
    FaultHost,
    ProcessKey,
    descendants,
    ending_of,
    is_alive,
    process_key,
)
from holdfast.model.errors import HoldfastError, InputUnknown, SessionEnded
from holdfast.model.state import Ending, Level
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.exec_reader import ExecReader
from holdfast.wire.messages import session as m
from process.waiting import until

ENDINGS = {
    "exit 0": ("exit 0", Ending(code=0)),
    "exit 7": ("exit 7", Ending(code=7)),
    "exit 137": ("exit 137", Ending(code=137)),
    "SIGKILL": ("kill -KILL $$", Ending(signal=9)),
    "SIGSEGV": ("kill -SEGV $$", Ending(signal=11)),
    "SIGTERM": ("kill -TERM $$", Ending(signal=15)),
}


@pytest.mark.requirement("A9", "S2")
@pytest.mark.timeout(100)
def test_killed_sessions_stay_killed_with_their_true_status(host: FaultHost) -> None:
    client = host.client()
    expected: dict[str, Ending] = {}
    for level in (Level.PLAIN, Level.CONTAINED):
        for name, (script, ending) in ENDINGS.items():
            slug = f"{level}-{name.replace(' ', '-')}"
            info = client.run(["/bin/sh", "-c", script], name=slug, level=level)
            expected[info.id] = ending
    asked = client.run(["cat"], name="asked")
    ended = client.end(asked.id)
    assert ended.ending is not None
    expected[asked.id] = ended.ending

    def all_true() -> None:
        for session, ending in expected.items():
            assert ending_of(client, session) == ending
            with pytest.raises(SessionEnded):
                connection = client.connection
                connection.ask(m.Attach(connection.next_id(), session, 1, observe=True), 10)
            with pytest.raises(SessionEnded):
                client.send(session, "wake up")

    all_true()
    killed = host.kill_daemon()
    host.wait_new_daemon(killed)
    client.reconnect()
    all_true()
    client.shutdown()
    until("the host is down", lambda: not host.supervisor_alive() or None)
    host.up()
    client.reconnect()
    all_true()
    again = client.run(["cat"], name="asked")
    assert again.id != asked.id and client.show("asked").id == again.id
    assert client.show(asked.id).ending == ended.ending


@pytest.mark.requirement("S1", "A9")
def test_the_end_of_the_main_process_while_no_daemon_runs_is_known_later(
    host: FaultHost, level: Level
) -> None:
    client = host.client()
    info = client.run(["/bin/sh", "-c", "read line; exit 9"], level=level)
    killed = host.kill_daemon()
    os.kill(info.pid, signal.SIGKILL)
    host.wait_new_daemon(killed)
    client.reconnect()
    assert until("it ended", lambda: client.show(info.id).ending) == Ending(signal=9)


@pytest.mark.requirement("S1", "A9")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("also_host", [False, True])
def test_the_session_of_a_killed_keeper_ends_alone_and_is_buried_as_lost(
    host: FaultHost, level: Level, also_host: bool
) -> None:
    client = host.client()
    script = "trap '' HUP TERM; sleep 1000 & while :; do sleep 1000; done"
    info = client.run(["/bin/sh", "-c", script], name="doomed", level=level)
    other = client.run(["cat"], name="other", level=level)

    def tree() -> set[ProcessKey]:
        return {key for pid in descendants(info.keeper_pid) if (key := process_key(pid))}

    doomed = until("it all runs", lambda: found if len(found := tree()) >= 3 else None)
    supervisor, daemon = host.supervisor_pid(), host.daemon_pid()
    assert daemon is not None
    if also_host:
        for pid in (supervisor, daemon):
            os.kill(pid, signal.SIGSTOP)  # so that neither can tidy up
    os.kill(info.keeper_pid, signal.SIGKILL)
    if also_host:
        for pid in (supervisor, daemon):
            os.kill(pid, signal.SIGKILL)
        host.up()
        client = host.client()
    ending = ending_of(client, info.id)
    assert (ending.code, ending.signal, ending.lost) == (None, None, "its keeper died")
    assert [each.id for each in client.sessions()] == [other.id]
    assert client.show(other.id).pid == other.pid
    until("no stray is left", lambda: not any(map(is_alive, doomed)) or None, 8)
    if level is Level.CONTAINED:
        until("its group is gone", lambda: len(host.groups()) == 1 or None, 8)
    again = client.run(["cat"], name="doomed")
    assert again.id != info.id


@pytest.mark.requirement("S1")
def test_a_stale_socket_and_a_stale_lock_are_no_obstacle(host: FaultHost) -> None:
    host.client().shutdown()
    until("the host is down", lambda: not host.supervisor_alive() or None)
    stale = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stale.bind(host.socket)
    stale.close()
    (host.home / "run/supervisor.lock").write_text("1\n")
    assert host.hold("ls").returncode == 69  # host_down
    host.up()
    assert host.client().run(["cat"]).pid > 0


@pytest.mark.requirement("S1")
def test_a_second_up_says_so_and_disturbs_nothing(host: FaultHost) -> None:
    daemon, supervisor = host.daemon_pid(), host.supervisor_pid()
    done = host.hold("up", "-d")
    assert done.returncode == 75 and "already_up" in done.stderr
    assert (host.daemon_pid(), host.supervisor_pid()) == (daemon, supervisor)
    assert host.client().sessions() == ()


@pytest.mark.requirement("G4", "M6")
@pytest.mark.parametrize("ends", ["exit 3", "kill -9 $$", "sleep 0.1; exit 3"])
def test_a_command_that_ends_its_session_while_the_daemon_dies_is_not_called_refused(
    host: FaultHost, ends: str
) -> None:
    assert host.hold("run", "-d", "--name", "s", "--level", "plain", "--", "bash").returncode == 0
    assert host.hold("wait", "s", "--for", "prompt").returncode == 0
    client, marker = host.client(), host.work / "ran"
    session = client.show("s").id
    command = f"echo > {marker}; kill -9 {host.daemon_pid()}; {ends}"
    request = m.Exec(0, session, client.next_seq(session), command)
    reader = ExecReader(client.io(time.monotonic() + PATIENCE_S), request)
    with pytest.raises(HoldfastError) as caught:
        while True:
            finish(reader.next())
    assert marker.exists()
    assert caught.type is (SessionEnded if reader.began else InputUnknown)
    assert str(ending_of(client, session)) in caught.value.message


@pytest.mark.requirement("G4", "M6", "A9")
@pytest.mark.parametrize("ends", ["exit 3", "kill -9 $$", "sleep 0.1; exit 3"])
def test_hold_exec_of_a_command_that_ends_its_session_while_the_daemon_dies_never_says_refused(
    host: FaultHost, level: Level, ends: str
) -> None:
    words = ("run", "-d", "--name", "s", "--level", level, "--", "bash")
    assert host.hold(*words).returncode == 0
    assert host.hold("wait", "s", "--for", "prompt").returncode == 0
    session, marker, go = host.client().show("s").id, host.work / "ran", host.work / "go"
    os.mkfifo(go)
    command = f"echo > {marker}; read _ < {go}; {ends}"
    with subprocess.Popen(
        [HOLD, "exec", "s", "--", command],
        env=host.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as execing:
        try:
            until("the command runs", lambda: marker.exists() or None)
            killed = host.kill_daemon()
            go.write_text("\n")
            _, said = execing.communicate(timeout=PATIENCE_S)
        finally:
            execing.kill()
    host.wait_new_daemon(killed)
    client = host.client()
    true = ending_of(client, session)
    assert true == (Ending(signal=9) if "kill" in ends else Ending(code=3))
    status = execing.returncode
    assert status in (SessionEnded.exit_status, InputUnknown.exit_status), (status, said)
    assert "session_ended" not in said or true.sentence() in said, said
