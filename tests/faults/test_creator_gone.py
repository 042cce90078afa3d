"""S1: the creator's terminal, shell and login are nothing to a session."""

from __future__ import annotations

import contextlib
import os
import pty
import signal

import pytest

from faults.hosting import HOLD, FaultHost, descendants, is_alive, kill_process, process_key
from holdfast.model.errors import HoldfastError
from holdfast.model.state import Level
from holdfast.sdk.client import Host
from process.waiting import until


@pytest.mark.requirement("S1", "S3")
@pytest.mark.parametrize("starts_host", [False, True])
def test_killing_the_creators_terminal_shell_and_login_changes_nothing(
    host: FaultHost, level: Level, starts_host: bool
) -> None:
    if starts_host:  # the login also started the host itself, by its first `hold run`
        host.client().shutdown()
        until("the host is down", lambda: not host.supervisor_alive() or None)
    pid, master = pty.fork()
    if pid == 0:
        script = f"{HOLD} run -d --name orphan --level {level} -- cat; exec sleep 1000"
        os.execve("/bin/sh", ["/bin/sh", "-c", script], host.environment)
    login = [key for p in (pid, *descendants(pid)) if (key := process_key(p))]
    try:
        client = until("the host serves", lambda: _client(host))
        info = until("it was started", lambda: next(iter(client.sessions()), None))
        before = process_key(info.pid)
        assert before is not None and os.getsid(info.pid) != pid
        os.close(master)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGHUP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    finally:
        for process in login:
            kill_process(process)
        os.waitpid(pid, 0)
    assert is_alive(before) and client.show("orphan").pid == before.pid
    client.send("orphan", "hello")
    until("it echoes", lambda: client.screen("orphan").text.count("hello") == 2 or None)


def _client(host: FaultHost) -> Host | None:
    with contextlib.suppress(HoldfastError):
        return host.client()
    return None
