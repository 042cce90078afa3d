"""One execution, whoever comes: its identity is its own, and any client finds it by that alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.model.ids import SessionId
from holdfast.sdk.client import Host
from process.acting import add_actor
from process.commanding import Hold
from process.terminals import Terminal
from process.waiting import until


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.requirement("S2")
def test_an_id_is_derived_from_the_sessions_own_key_and_outlives_daemons(host_home: Hold) -> None:
    session = host_home.shell("identity")
    key = Path(host_home.home, "sessions", session, "session.key")
    assert key.stat().st_mode & 0o777 == 0o600
    public = Ed25519PrivateKey.from_private_bytes(key.read_bytes()).public_key()
    assert SessionId.of_key(public.public_bytes_raw()) == session
    host_home.ok("daemon", "restart")
    assert host_home.json("show", "identity")["id"] == session
    os.kill(host_home.json("daemon", "status")["daemon_pid"], signal.SIGKILL)
    for address in ("identity", session, session[:9]):
        assert host_home.json("show", address)["id"] == session


@pytest.mark.requirement("S2", "S3", "S4")
def test_a_killed_client_is_replaced_by_another_kind_that_knows_only_the_id(
    host_home: Hold, tmp_path: Path
) -> None:
    session = host_home.shell("passed-on")
    pid = host_home.json("show", session)["pid"]
    began = start_time(pid)
    terminal = Terminal(host_home, "attach", session)
    terminal.until_shown("$")
    terminal.type(b"secret=known-to-the-shell\r")
    terminal.until_shown("known-to-the-shell")
    terminal.signal(signal.SIGKILL)
    terminal.close()
    # Another kind of client, another process, nothing but the id.
    program = (
        "import sys; from holdfast.sdk.client import Host\n"
        "with Host() as host: host.send(sys.argv[1], 'echo it-is-$secret')\n"
    )
    env = {**host_home.env, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, session], env=env, check=True, timeout=30)
    host_home.ok("wait", session, "--for", "text:it-is-known-to-the-shell", "--timeout", "20")
    assert host_home.ok("exec", session, "--", "echo $secret") == "known-to-the-shell\n"
    assert (host_home.json("show", session)["pid"], start_time(pid)) == (pid, began)


@pytest.mark.requirement("S5")
def test_each_kind_of_client_gets_its_own_view_of_one_execution(host_home: Hold) -> None:
    session = host_home.shell("views")
    host_home.ok("exec", session, "--", r"printf '\033[1;31mred\033[0m\n'")
    assert "red" in host_home.ok("screen", session)
    assert (
        b"\x1b[1;31mred"
        in subprocess.run(
            [sys.executable, "-c", "from holdfast.cli import main; main()", "tail", session],
            env={**host_home.env, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            timeout=30,
            check=True,
        ).stdout
    )
    with Host(f"{host_home.home}/run/hold.sock") as host:
        assert "red" in host.screen(session).text
        assert host.graph(session).processes[1].name == "bash"
    terminal = Terminal(host_home, "attach", session, "--observe")
    terminal.until_shown("red")
    terminal.close()


@pytest.mark.requirement("S3")
def test_who_is_attached_is_told_by_name_first_come_first(host_home: Hold) -> None:
    host_home.shell("attended")
    add_actor(host_home, "bot", "read", "attended")
    first = Terminal(host_home, "attach", "attended")
    first.until_shown("$")
    second = Terminal(host_home, "--as", "bot", "attach", "--observe", "attended")
    second.until_shown("$")
    present = host_home.json("show", "attended")["present"]
    assert [(one["name"], one["observe"]) for one in present] == [("root", False), ("bot", True)]
    assert present[0]["since"] < present[1]["since"]
    assert "operators root, bot (observing)" in host_home.ok("show", "attended")
    first.close()
    second.close()
    until("they have left", lambda: not host_home.json("show", "attended")["present"])
