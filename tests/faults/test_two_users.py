"""Two unix users on one machine: to each, the other's sessions do not exist."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faults.hosting import FaultHost, process_key
from holdfast.model.state import Level

PROGRAM = str(Path(__file__).with_name("programs") / "stranger.py")

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="becoming other users needs root"),
    pytest.mark.timeout(60),
]


@contextlib.contextmanager
def stranger(host: FaultHost, name: str, *targets: str) -> Iterator[dict[str, Any]]:
    """What the user `name` came to. The home of a test's host is root's alone, as any state
    directory; starting in its run directory stands for a system host's /run/holdfast, which all
    can reach."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, name, *targets],
        cwd=host.home / "run",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdin is not None
    line = process.stdout.readline()
    try:
        if not line:
            process.wait(10)
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        yield json.loads(line)
    finally:
        process.kill()
        process.communicate(timeout=10)


def ways_to_name(session: str, name: str) -> tuple[str, ...]:
    return (name, session, session[:8], session[:1])


def judge(seen: dict[str, Any], user: str) -> None:
    outcomes = dict(seen["outcomes"])
    for what in ("run as root", "restart", "shutdown", "shutdown all"):
        assert outcomes.pop(what) == "not_permitted", what
    assert outcomes and set(outcomes.values()) == {"no_such_session"}, outcomes
    assert seen["listed"] == []
    entry = pwd.getpwnam(user)
    for _, said in seen["own"]:
        assert f"uid={entry.pw_uid} gid={entry.pw_gid} groups={entry.pw_gid}" in said


@pytest.mark.requirement("S3", "A2")
def test_users_cannot_see_or_touch_each_others_sessions(host: FaultHost) -> None:
    client = host.client()
    roots = client.run(["cat"], name="roots")
    ended = client.run(["/bin/true"], name="ended")
    before, daemon = process_key(roots.pid), host.daemon_pid()
    targets = (*ways_to_name(roots.id, "roots"), *ways_to_name(ended.id, "ended"))
    with stranger(host, "nobody", *targets) as first:
        judge(first, "nobody")
        own = [str(session) for session, _ in first["own"]]
        names = [f"own-{Level.PLAIN}", f"own-{Level.CONTAINED}"]
        # The second user's own sessions have the same names; they are other sessions.
        with stranger(host, "daemon", *targets, *own, *names) as second:
            judge(second, "daemon")
            assert not set(own) & {str(session) for session, _ in second["own"]}
        for session in own:
            assert client.show(session).user == "nobody"
    assert process_key(roots.pid) == before and host.daemon_pid() == daemon
    assert str(client.show(roots.id).size) == "80x24" and client.screen(roots.id).text.strip() == ""
    assert len(client.sessions()) == 5, "root sees all, and all outlive their creators' clients"


@pytest.mark.requirement("S3")
def test_files_and_fifos_of_a_root_host_tell_other_users_nothing(host: FaultHost) -> None:
    client = host.client()
    info = client.run(["bash", "--norc"], user="nobody", cwd="/")
    nobody = pwd.getpwnam("nobody")

    def mode(path: str) -> int:
        return stat.S_IMODE(os.stat(host.home / path).st_mode)

    assert mode(".") == 0o700 and mode("sessions") == 0o700
    assert mode(f"sessions/{info.id}") == 0o700
    for path in (host.home / "sessions" / info.id).iterdir():
        with contextlib.suppress(FileNotFoundError):  # what is written anew has another name first
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert mode("run/keeper.lock") == 0o600 and mode("host.log") == 0o600
    bell = os.stat(host.home / f"run/bells/{info.id}")
    assert bell.st_uid == nobody.pw_uid and stat.S_IMODE(bell.st_mode) & 0o077 == 0


@pytest.mark.requirement("S3")
def test_the_bells_can_be_reached_by_their_users_and_listed_by_nobody(host: FaultHost) -> None:
    host.client().run(["bash", "--norc"], user="nobody", cwd="/")
    assert stat.S_IMODE(os.stat(host.home / "run/bells").st_mode) == 0o711
