"""A key that comes while a report of the shell waits unread is typed and recorded like any other.

The daemon is stopped while both arrive, the key first. When it goes on it receives the key with the
report already there, which is the only time at which taking a key can take up a report.
"""

from __future__ import annotations

import json
import os
import signal
import termios
from pathlib import Path

from faults.hosting import PATIENCE_S, FaultHost
from holdfast.wire.messages import session as m
from process.waiting import until

ROUNDS = 3
KEY = b"press"


def test_a_key_that_comes_with_a_report_unread_is_in_the_journal(shared_host: FaultHost) -> None:
    for number in range(ROUNDS):
        name = f"keys-{number}"
        type_with_a_report_unread(shared_host, name)
        assert keys_in_journal(shared_host, name) == KEY


def test_a_key_that_comes_with_a_report_unread_is_typed(shared_host: FaultHost) -> None:
    type_with_a_report_unread(shared_host, "typed")


def type_with_a_report_unread(host: FaultHost, name: str) -> None:
    """Into a new bash, received when its report that a command ended is there and not read. The key
    is its operator's first, so nothing about it was decided with one before."""
    gate, said = host.work / f"{name}-gate", host.work / f"{name}-tty"
    os.mkfifo(gate)
    done = host.hold("run", "-d", "--level", "plain", "--name", name, "--", "bash", "--norc")
    assert done.returncode == 0, done.stderr
    done = host.hold("wait", name, "--for", "prompt", "--timeout", "20")
    assert done.returncode == 0, done.stderr
    host.client().send(name, f"tty > {said}; cat {gate}")
    typist, daemon = host.client().connection, until("there is a daemon", host.daemon_pid)
    with open(gate, "w"):  # it opens when `cat` has it open too: the command runs
        terminal = said.read_text().strip()
        assert not reads_keys(terminal)
        os.kill(daemon, signal.SIGSTOP)
        until("the daemon is stopped", lambda: "State:\tT" in status(daemon))
    try:
        request = typist.next_id()
        typist.send(m.Input(request, name, 1, KEY))
        until("the shell reads keys", lambda: reads_keys(terminal))  # it has reported before
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert isinstance(typist.answer_to(request, PATIENCE_S), m.Accepted)
    done = host.hold("wait", name, "--for", f"text:{KEY.decode()}", "--timeout", "20")
    assert done.returncode == 0, done.stderr


def status(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


def reads_keys(terminal: str) -> bool:
    """Whether a line editor reads it."""
    fd = os.open(terminal, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        return not termios.tcgetattr(fd)[3] & termios.ICANON
    finally:
        os.close(fd)


def keys_in_journal(host: FaultHost, name: str) -> bytes:
    done = host.hold("log", name, "--kind", "input", "--json")
    assert done.returncode == 0, done.stderr
    bodies = [json.loads(line)["body"] for line in done.stdout.splitlines()]
    return b"".join(bytes.fromhex(body["data"]) for body in bodies if body["form"] == "keys")
