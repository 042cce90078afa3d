"""Trees that do not want to be halted, and how it is shown that they are. For both levels."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.halt import freeze
from holdfast.adapters.proc import procfs
from holdfast.model.spec import Place
from holdfast.ports.halt import HaltResult
from process.launching import Running, Sessions
from process.waiting import PATIENCE_S, children_of

WATCHED_S = 0.15  # how long a halted tree is watched: a busy one would get far more than this
WRITTEN_BYTES = 512 << 20  # in one system call; takes a tenth of a second or more

BUSY = "for i in $(seq 200); do while :; do :; done & done; echo up; wait"
FORKING = "echo up; while :; do /bin/true; done"
# Each round leaves a process in a kernel session of its own, without a parent, that ends shortly.
SCATTERING = "echo up; while :; do (setsid sh -c '(sleep 0.02 &)' &); done"
# The children continue what is stopped before they are.
CONTINUING = "for i in 1 2 3; do while :; do kill -CONT $$ $!; done & done; echo up; wait"

# Forks, and ends in the parent, for ever: no process of it lives as long as a look takes.
_COMET = """
#include <unistd.h>
int main(void) { for (;;) { setsid(); if (fork() > 0) _exit(0); } }
"""
# A parent held in vfork, which the kernel shows as uninterruptible, and its child.
_VFORK = """
#include <unistd.h>
int main(void) {
    if (vfork() == 0) { write(1, "up\\n", 3); for (;;) ; }
    return 0;
}
"""

WRITER = f"""
import os, sys
piece = bytes(1 << 20)
print("up", flush=True)
sys.stdin.readline()
os.writev(3, [piece] * {WRITTEN_BYTES >> 20})
os.close(os.open(sys.argv[1], os.O_CREAT))
sys.stdin.readline()
"""


def compiled(source: str, tmp_path: Path) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path / "program"
    subprocess.run(
        [compiler, "-O1", "-x", "c", "-", "-o", program], input=source.encode(), check=True
    )
    return str(program)


def started(sessions: Sessions, script: str, inherit: dict[int, int] | None = None) -> Running:
    running = sessions.launch("sh", "-c", script, inherit=inherit)
    running.until("up")
    return running


def comet(sessions: Sessions, tmp_path: Path) -> Running:
    return _beside_sleep(sessions, f"{compiled(_COMET, tmp_path)} & echo up;")


def vforking(sessions: Sessions, tmp_path: Path) -> Running:
    return _beside_sleep(sessions, f"{compiled(_VFORK, tmp_path)} &")


def _beside_sleep(sessions: Sessions, script: str) -> Running:
    """With everything there that will be: the shell's own last command too."""
    running = started(sessions, f"{script} sleep 1000")
    soon(lambda: "sleep" in map(_name_of, children_of(running.place.shell_pid)), "no sleep")
    return running


def _name_of(pid: int) -> str:
    try:
        return procfs.stat_of(pid).name
    except OSError:
        return ""


def spent(place: Place) -> dict[tuple[int, int], int]:
    """Nanoseconds on a CPU of every task of the session but its init, which only reaps."""
    found = {}
    for pid in procfs.members(place, 10_000):
        if pid == place.pid:
            continue
        try:
            for tid in procfs.tasks(pid):
                told = procfs.read(f"/proc/{pid}/task/{tid}/schedstat")
                found[pid, tid] = int(told.split()[0])
        except OSError:
            continue
    return found


def is_quiet(place: Place) -> bool:
    """Nothing came, went or was given the CPU while it was watched."""
    before = spent(place)
    time.sleep(WATCHED_S)
    return spent(place) == before


def is_quiet_once_asleep(place: Place) -> bool:
    """The kernel says `frozen` when the last task has nothing left to do but to go to sleep, or to
    end: microseconds of its own that are still counted as the task's."""
    soon(lambda: all(state_of(pid) != "R" for pid, _ in spent(place)), "one never sleeps")
    return is_quiet(place)


def check_halts_and_goes_on(running: Running, least_tasks: int) -> HaltResult:
    halted = freeze.halt(running.place)
    assert halted.frozen, halted
    assert halted.running == ()
    assert halted.tasks >= least_tasks
    assert is_quiet_once_asleep(running.place)
    assert freeze.resume(running.place, halted.stopped)
    soon(lambda: not is_quiet(running.place), "it does not go on")
    return halted


def soon(condition: Callable[[], bool], otherwise: str) -> None:
    """Until it is so; the kernel has no event for it to us."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, otherwise
        os.sched_yield()


def check_deaf_process(sessions: Sessions, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    deaf = "trap '' INT TERM HUP QUIT TSTP TTIN TTOU; echo up; "
    running = started(sessions, f"{deaf} while :; do echo >> {counter}; done")
    soon(lambda: counter.exists() and counter.stat().st_size > 10, "it does not count")
    halted = freeze.halt(running.place)
    assert halted.frozen
    size = counter.stat().st_size
    assert is_quiet_once_asleep(running.place)
    assert counter.stat().st_size == size
    assert freeze.resume(running.place, halted.stopped)
    soon(lambda: counter.stat().st_size > size, "it does not count again")


def check_write_under_way(sessions: Sessions, tmp_path: Path) -> None:
    """The system call under way is completed, what comes after it is not begun; and before it is
    completed, nothing is said to be frozen."""
    after = tmp_path / "after"
    memory = os.memfd_create("written")
    try:
        running = sessions.launch("python3", "-c", WRITER, str(after), inherit={3: memory})
        running.until("up")
        running.type("")
        soon(lambda: os.fstat(memory).st_size > 0, "it does not write")
        early = freeze.halt(running.place, timeout_s=0.001)
        if os.fstat(memory).st_size < WRITTEN_BYTES:  # else this machine is too fast to be early
            assert not early.frozen
            assert running.place.shell_pid in early.running, early
        late = freeze.halt(running.place)
        assert late.frozen, late
        assert os.fstat(memory).st_size == WRITTEN_BYTES
        assert is_quiet_once_asleep(running.place)
        assert not after.exists()
        assert freeze.resume(running.place, (*early.stopped, *late.stopped))
        soon(after.exists, "it does not go on")
    finally:
        os.close(memory)


def has_ended(pid: int) -> bool:
    try:
        return not procfs.stat_of(pid).runs
    except OSError:
        return True


def state_of(pid: int) -> str:
    try:
        return procfs.stat_of(pid).state
    except OSError:
        return "gone"


def check_suspended_job_stays_suspended(sessions: Sessions) -> None:
    running = shell(sessions)
    running.type("sleep 1234")
    soon(lambda: len(children_of(running.place.shell_pid)) == 1, "no job")
    (job,) = children_of(running.place.shell_pid)
    soon(lambda: procfs.stat_of(job).name == "sleep", "no job")
    os.write(running.master, b"\x1a")
    running.until("Stopped")
    assert state_of(job) == "T"
    halted = freeze.halt(running.place)
    assert halted.frozen
    assert job not in [process.pid for process in halted.stopped]
    assert freeze.resume(running.place, halted.stopped)
    assert "Stopped" in running.ask("jobs")
    assert state_of(job) == "T"


def shell(sessions: Sessions) -> Running:
    running = sessions.launch("bash", "--norc", "--noprofile", "-i")
    running.until("$ ")
    return running
