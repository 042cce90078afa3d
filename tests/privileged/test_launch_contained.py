"""Starting sessions at level contained: namespaces, a cgroup, another user's identity."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import mounts
from holdfast.model.errors import CommandNotFound, LaunchFailed
from holdfast.model.state import Ending, Level
from process.launching import Sessions
from process.waiting import parent_of, read_all

NOBODY = 65534


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")
    with Sessions(Level.CONTAINED) as running:
        yield running


def test_a_session_sees_only_itself_on_its_own_first_terminal(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "tty; echo $$; echo /proc/[0-9]*; ls /dev/pts; read x")
    seen = running.until("ptmx").split()
    assert seen[0] == "/dev/pts/0"
    assert seen[1] == "2"
    assert [word for word in seen if word.startswith("/proc/")] == ["/proc/1", "/proc/2"]
    assert running.place.tty == "/dev/pts/0"
    assert parent_of(running.place.pid) == running.keeper_pid
    assert parent_of(running.place.shell_pid) == running.place.pid


def test_everything_it_starts_is_in_its_cgroup(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & echo up; read x")
    running.until("up")
    inside = cgroup.processes(running.place.cgroup)
    assert {running.place.pid, running.place.shell_pid} < set(inside)
    assert len(inside) == 4
    running.type("")
    assert running.finish() == Ending(code=0)
    assert not cgroup.processes(running.place.cgroup)


def test_it_runs_as_the_user_asked_for(sessions: Sessions) -> None:
    running = sessions.launch(
        *("sh", "-c", "id -u; id -g; id -G; stat -c %U:%a /dev/pts/0; echo rw > $(tty); ls /root"),
        uid=NOBODY,
        gid=NOBODY,
        groups=(NOBODY, 4242),
    )
    seen = read_all(running.master).decode()
    assert seen.split()[:7] == ["65534", "65534", "65534", "4242", "nobody:620", "rw", "ls:"]
    assert "Permission denied" in seen
    status = running.finish()
    assert status.code is not None and status.code != 0


def test_command_and_directory_are_looked_up_as_that_user(
    sessions: Sessions, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    tool = secret / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    with pytest.raises(LaunchFailed, match="is not accessible: Permission denied"):
        sessions.launch("true", cwd=str(secret), uid=NOBODY, gid=NOBODY)
    with pytest.raises(CommandNotFound, match="permission denied"):
        sessions.launch(str(tool), uid=NOBODY, gid=NOBODY)
    with pytest.raises(CommandNotFound):
        sessions.launch("tool", env={"PATH": str(secret)}, uid=NOBODY, gid=NOBODY)
    assert sessions.launch("tool", env={"PATH": str(secret)}).finish() == Ending(code=0)


@pytest.mark.parametrize("number", [9, 15])
def test_an_end_by_signal_is_told_from_an_exit_with_the_same_number(
    sessions: Sessions, number: int
) -> None:
    assert sessions.launch("sh", "-c", "exit 7").finish() == Ending(code=7)
    killed = sessions.launch("sh", "-c", f"kill -{number} $$")
    assert killed.finish() == Ending(signal=number)
    exited = sessions.launch("sh", "-c", f"exit {128 + number}")
    assert exited.finish() == Ending(code=128 + number)


def test_a_failed_launch_leaves_nothing(sessions: Sessions) -> None:
    sessions.launch("true").finish()
    home = cgroup.home(sessions.instance)
    assert home is not None
    groups = cgroup.leftovers(home)
    gc.collect()  # so that nothing of another test closes its own meanwhile
    descriptors = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(CommandNotFound, match="nosuch: command not found"):
        sessions.launch("nosuch")
    with pytest.raises(LaunchFailed, match="directory /nosuch does not exist"):
        sessions.launch("true", cwd="/nosuch")
    assert cgroup.leftovers(home) == groups
    assert sorted(os.listdir("/proc/self/fd")) == descriptors


def test_devices_and_kernel_interfaces_are_its_own(sessions: Sessions) -> None:
    running = sessions.launch(
        "sh",
        "-c",
        "echo x > /dev/null && head -c1 /dev/zero | wc -c; touch /sys/x 2>&1; touch /dev/shm/own;"
        "for n in /dev/*; do echo $n; done; hostname",
        hostname="inner",
    )
    seen = read_all(running.master).decode()
    assert "Read-only file system" in seen
    assert seen.split()[-1] == "inner"
    host = {f"/dev/{name}" for name in ("fuse", "kvm") if os.path.exists(f"/dev/{name}")}
    assert host <= set(seen.split())
    assert "/dev/vda" not in seen
    assert not os.path.exists("/dev/shm/own")


def test_freezing_stops_and_thawing_resumes(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "echo up; read x; echo heard $x")
    running.until("up")
    assert cgroup.freeze(running.place.cgroup)
    assert cgroup.frozen(running.place.cgroup)
    running.type("you")
    assert cgroup.thaw(running.place.cgroup)
    running.until("heard you")


def test_a_frozen_tree_can_be_killed(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "sleep 1000 & echo up; wait")
    running.until("up")
    assert cgroup.freeze(running.place.cgroup)
    assert cgroup.kill(running.place.cgroup)
    running.finish()


def test_the_launch_does_not_show_in_the_hosts_mounts(sessions: Sessions) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    sessions.launch("true").finish()
    assert Path("/proc/self/mountinfo").read_text() == before


# Runs in a mount namespace of its own, where the host is laid out otherwise.
_ELSEWHERE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import syscalls
from holdfast.adapters.launch import mounts
from holdfast.model.state import Ending, Level
syscalls.mount("tmpfs", "/mnt", "tmpfs")
os.makedirs("/mnt/deep")
syscalls.mount("tmpfs", "/mnt/deep", "tmpfs")
os.makedirs("/mnt/bound")
syscalls.mount("/etc", "/mnt/bound", None, syscalls.MS_BIND)
for name in ("/mnt/here", "/mnt/deep/there"):
    open(name, "w").close()
syscalls.mount("cgroup2", "/sys/fs/cgroup", "cgroup2")
from process.launching import Sessions
from process.waiting import read_all
with Sessions(Level.CONTAINED) as sessions:
    running = sessions.launch("sh", "-c", "ls /mnt /mnt/deep /mnt/bound/passwd; exit 7")
    seen = read_all(running.master).decode()
    assert "here" in seen and "there" in seen and "/mnt/bound/passwd" in seen, seen
    assert running.place.mounts[-3:] == ("/mnt", "/mnt/bound", "/mnt/deep"), running.place
    assert running.place.cgroup.startswith("/sys/fs/cgroup/holdfast-"), running.place
    assert running.finish() == Ending(code=7)
print("fine")
"""


def test_v2_at_its_usual_place_and_mounts_within_mounts(sessions: Sessions) -> None:
    here = Path(__file__).parent.parent
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", _ELSEWHERE, str(here)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "fine", done.stderr


def test_mounts_hidden_under_others_are_not_offered() -> None:
    assert all(os.path.exists(path) for path in mounts.current_mounts())
