"""Programs of many kinds, checkpointed and restored: what they had before they have after."""

from __future__ import annotations

import fcntl
import socket
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import (
    entries,
    movable_host,
    program,
    put_to_sleep,
    restored,
    said,
    started,
    there_and_back,
    until_screen,
)
from process.commanding import Hold
from process.waiting import until

HEAP = """
import fcntl, hashlib, mmap, os, random, sys
heap = random.Random(1).randbytes(100 << 20)
file = open({path!r}, "w+b"); file.write(b"0123456789"); file.flush(); file.seek(4)
fcntl.flock(file, fcntl.LOCK_EX)
gone = open({path!r} + ".gone", "w+b"); gone.write(b"deleted"); gone.flush()
os.unlink(gone.name)
whole = open({path!r} + ".whole", "w+b"); whole.write(bytes(4096)); whole.flush()
view = mmap.mmap(whole.fileno(), 0)
fcntl.lockf(whole, fcntl.LOCK_EX)
for line in sys.stdin:
    gone.seek(0)
    print(hashlib.sha256(heap).hexdigest()[:16], file.tell(), gone.read().decode(), flush=True)
"""

SERVER = """
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
left, right = socket.socketpair()
left.send(b"in flight")
client.send(b"sent before")
print("ready", flush=True)
for number, line in enumerate(sys.stdin):
    peer.send(b"%d" % number)
    print(client.recv(10).decode(), peer.recv(11).decode() if number == 0 else "", flush=True)
    if number == 0:
        print(right.recv(20).decode(), flush=True)
    socket.create_connection(server.getsockname()).close()
    server.accept()[0].close()
"""

SQLITE = """
import sqlite3, sys
base = sqlite3.connect({path!r}, isolation_level=None)
base.execute("pragma journal_mode=wal"); base.execute("create table t (n)")
base.execute("begin immediate"); base.execute("insert into t values (42)")
print("ready", flush=True)
sys.stdin.readline()
base.execute("commit"); print("done", base.execute("select n from t").fetchall(), flush=True)
sys.stdin.readline()
"""

OUTSIDE = """
import socket, sys
far = socket.create_connection(("127.0.0.1", {port}))
print("ready", flush=True)
sys.stdin.readline()
try:
    print("got", far.recv(10), flush=True)
except OSError as error:
    print("lost", type(error).__name__, flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


def run_python(hold: Hold, name: str, program: str) -> None:
    started(hold, name, sys.executable, "-u", "-c", program, prompt=False)


@pytest.mark.requirement("M2")
def test_a_heap_an_offset_a_lock_and_a_deleted_file(hold: Hold, tmp_path: Path) -> None:
    path = tmp_path / "file"
    run_python(hold, "heap", HEAP.format(path=str(path)))
    hold.ok("wait", "heap", "--for", "input", "--timeout", "30")
    hold.ok("keys", "heap", "Enter")
    before = until_screen(hold, "heap", r"[0-9a-f]{16} 4 deleted").split()
    there_and_back(hold, "heap")
    with path.open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(f"{path}.whole", "r+b") as file, pytest.raises(BlockingIOError):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of a file that is mapped, too
    hold.ok("keys", "heap", "Enter")
    after = until_screen(hold, "heap", r"(?s)4 deleted.*4 deleted").split()
    assert after[-3:] == before[-3:]


@pytest.mark.requirement("M3")
def test_connections_inside_the_session_stay(hold: Hold) -> None:
    run_python(hold, "loopback", SERVER)
    until_screen(hold, "loopback", "ready")
    back = there_and_back(hold, "loopback")
    assert back["restore"]["reset"] == []
    hold.ok("keys", "loopback", "Enter")
    until_screen(hold, "loopback", r"0 sent before\nin flight")
    hold.ok("keys", "loopback", "Enter")
    until_screen(hold, "loopback", r"(?m)^1 *$")


@pytest.mark.requirement("M3")
def test_a_connection_to_a_peer_outside_is_reset_and_named(hold: Hold) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run_python(hold, "outside", OUTSIDE.format(port=port))
        far, _ = server.accept()
        with far:
            until_screen(hold, "outside", "ready")
            back = there_and_back(hold, "outside")
            (reset,) = back["restore"]["reset"]
            assert reset["peer"] == f"127.0.0.1:{port}" and reset["process"].startswith("python")
            (entry,) = entries(hold, "outside", "restored")
            assert entry["body"]["reset"] == [reset] and entry["body"]["resets"] == 1
            hold.ok("keys", "outside", "Enter")
            until_screen(hold, "outside", "lost ConnectionAbortedError")


def test_a_database_in_the_middle_of_a_transaction(hold: Hold, tmp_path: Path) -> None:
    path = tmp_path / "base.sqlite"
    run_python(hold, "sqlite", SQLITE.format(path=str(path)))
    until_screen(hold, "sqlite", "ready")
    there_and_back(hold, "sqlite")
    with sqlite3.connect(path, timeout=0) as other, pytest.raises(sqlite3.OperationalError):
        other.execute("insert into t values (1)")  # its lock is held
    hold.ok("keys", "sqlite", "Enter")
    until_screen(hold, "sqlite", r"done \[\(42,\)\]")


def test_an_editor_with_unsaved_text(hold: Hold, tmp_path: Path) -> None:
    path = tmp_path / "text"
    command = f"cd {tmp_path} && exec {program('vim')} -u NONE text"
    started(hold, "vim", "sh", "-c", command, prompt=False)
    until_screen(hold, "vim", "~")
    hold.ok("keys", "vim", "i", *"not saved")
    before = until_screen(hold, "vim", "not saved")
    there_and_back(hold, "vim")
    assert hold.ok("screen", "vim") == before
    hold.ok("keys", "vim", *" yet", "Esc", ":", "w", "q", "Enter")
    until("it was not saved", path.exists)
    until("it is not what was typed", lambda: path.read_text() == "not saved yet\n")


def test_a_build_in_the_middle(hold: Hold, tmp_path: Path) -> None:
    names = [f"part{number}" for number in range(12)]
    rule = "\n\t@sleep 0.3; echo made $@ >$@; echo made $@\n"
    (tmp_path / "Makefile").write_text(f"all: {' '.join(names)}\n{' '.join(names)}:{rule}")
    started(hold, "build")
    hold.ok("keys", "build", *f"{program('make')} -j2 -C {tmp_path}; echo status=$?", "Enter")
    until("the build does not begin", lambda: (tmp_path / "part1").exists())
    put_to_sleep(hold, "build")
    assert not (tmp_path / "part11").exists()
    restored(hold, "build")
    until_screen(hold, "build", r"(?m)^status=0")
    assert all((tmp_path / name).read_text() == f"made {name}\n" for name in names)


def test_many_threads_and_a_stopped_job(hold: Hold) -> None:
    started(hold, "jobs")
    said(hold, "jobs", "(trap 'echo caught' USR1; while :; do sleep 0.1; done) & echo $!")
    thread = "threading.Thread(target=time.sleep, args=(999,))"
    program = f"import threading, time; [{thread}.start() for _ in range(50)]"
    said(hold, "jobs", f"{sys.executable} -c '{program}' & sleep 0.5")
    count = "ls /proc/$!/task | wc -l"
    assert said(hold, "jobs", count) == "51"
    there_and_back(hold, "jobs")
    assert said(hold, "jobs", count) == "51"
    assert "caught" in said(hold, "jobs", "kill -USR1 %1; sleep 0.5")


def test_a_shell_below_the_shell_reports_after_it_as_before(hold: Hold) -> None:
    started(hold, "nested")
    hold.ok("send", "nested", "--enter", "bash --norc")
    # Until it is at its prompt, it takes no command.
    until(
        "no shell below the shell",
        lambda: "2" in hold("exec", "nested", "--", "echo $SHLVL").stdout,
    )
    pid = said(hold, "nested", "kept=inside; echo $$")
    there_and_back(hold, "nested")
    assert said(hold, "nested", "echo $kept $$").split() == ["inside", pid.strip()]
    hold.ok("send", "nested", "--enter", "exit")
    until(
        "it does not end",
        lambda: hold("exec", "nested", "--", "echo $$").stdout.strip() not in ("", pid.strip()),
    )
    assert said(hold, "nested", "echo $kept$?").strip() == "0"


def test_an_open_terminal_device_is_the_right_one_or_refused(hold: Hold) -> None:
    started(hold, "outer")
    said(hold, "outer", "exec 8<>/dev/tty")
    there_and_back(hold, "outer")
    said(hold, "outer", "echo visible >&8")
    until_screen(hold, "outer", r"(?m)^visible")
    inner = (
        "import os, pty, time\n"
        "pid, master = pty.fork()\n"
        "if pid == 0: held = open('/dev/tty', 'r+b', 0); time.sleep(999)\n"
        "time.sleep(999)"
    )
    said(hold, "outer", f'{sys.executable} -c "{inner}" & sleep 0.7')
    hold.fails("checkpoint_failed", "checkpoint", "outer")
    assert said(hold, "outer", "echo here") == "here"
