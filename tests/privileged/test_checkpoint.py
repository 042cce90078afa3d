"""A contained shell, written to disk with CRIU and brought back, is the same shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.criu import checkpoint
from holdfast.adapters.halt import cgroup
from holdfast.model.errors import LaunchFailed
from holdfast.model.ids import SessionId
from holdfast.model.state import Ending, Level
from process.launching import Running, Sessions

NOBODY = 65534

# Says itself when it is in the foreground, so that a key is never sent too early. It reads the pipe
# that a signal's arrival writes to: `signal.pause` sleeps through one that came just before it.
_TELLS_WHEN_RESUMED = (
    "import os, signal; say = lambda word: os.write(1, word.encode() + bytes([33, 10]));"
    "bell, ring = os.pipe(); os.set_blocking(ring, False); signal.set_wakeup_fd(ring);"
    'signal.signal(signal.SIGCONT, lambda *_: say("resumed"));'
    'say("ready"); exec("while True: os.read(bell, 1)")'
)


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")
    found = checkpoint.find()
    if isinstance(found, str):
        pytest.skip(f"needs CRIU: {found}")
    with Sessions(Level.MOVABLE) as running:
        yield running


def revived(sessions: Sessions, directory: Path) -> Running:
    session = SessionId.of_key(os.urandom(32))
    return sessions.adopt(checkpoint.restore(str(directory), session, sessions.instance))


def shell(sessions: Sessions, uid: int = 0) -> Running:
    running = sessions.launch(
        "bash", "--norc", "--noprofile", "-i", env={"HOME": "/tmp"}, uid=uid, gid=uid
    )
    running.until("$ ")
    return running


@pytest.mark.parametrize("uid", [0, NOBODY])
def test_a_shell_comes_back_with_its_variables_and_jobs(
    sessions: Sessions, tmp_path: Path, uid: int
) -> None:
    before = shell(sessions, uid)
    before.type("kept=treasure; sleep 1000 &")
    asked = "echo $kept $$ $!; jobs -p; tty; stty size; id -u"
    there = before.ask(asked)
    assert "treasure" in there

    checkpoint.dump(before.place, before.master, str(tmp_path))
    before.finish()
    after = revived(sessions, tmp_path)

    assert after.ask(asked) == there
    assert after.place.pid != before.place.pid
    assert after.place.shell_pid > 0
    assert after.place.shell_pid in cgroup.processes(after.place.cgroup)


def test_job_control_works_after_a_restore_also_in_a_nested_shell(
    sessions: Sessions, tmp_path: Path
) -> None:
    before = shell(sessions)
    before.type("PS1='inner> ' bash --norc --noprofile -i")
    before.until("inner> ")
    checkpoint.dump(before.place, before.master, str(tmp_path))
    before.finish()
    after = revived(sessions, tmp_path)

    after.type(f"python3 -c '{_TELLS_WHEN_RESUMED}'")
    after.until("ready!")
    os.write(after.master, b"\x1a")  # ^Z
    after.until("Stopped")
    assert "Stopped" in after.ask("jobs")
    after.type("fg")
    after.until("resumed!")
    os.write(after.master, b"\x03")  # ^C
    after.until("KeyboardInterrupt")
    assert after.ask("echo $?; : < /dev/tty && echo has-tty").endswith("has-tty")


def test_a_session_left_running_is_undisturbed_and_its_copy_lives_beside_it(
    sessions: Sessions, tmp_path: Path
) -> None:
    before = shell(sessions)
    before.ask("kept=both")
    checkpoint.dump(before.place, before.master, str(tmp_path), leave_running=True)
    assert before.ask("echo $kept; kept=mine") == "both"
    after = revived(sessions, tmp_path)
    assert after.ask("echo $kept") == "both"
    assert before.ask("echo $kept") == "mine"


def test_the_true_status_is_still_told_after_a_restore(sessions: Sessions, tmp_path: Path) -> None:
    before = shell(sessions)
    checkpoint.dump(before.place, before.master, str(tmp_path))
    before.finish()
    after = revived(sessions, tmp_path)
    after.type("kill -9 $$")
    assert after.finish() == Ending(signal=9)


def test_a_frozen_session_can_be_dumped_and_stays_frozen(
    sessions: Sessions, tmp_path: Path
) -> None:
    before = shell(sessions)
    assert cgroup.freeze(before.place.cgroup)
    checkpoint.dump(before.place, before.master, str(tmp_path), leave_running=True)
    assert cgroup.frozen(before.place.cgroup)
    assert cgroup.thaw(before.place.cgroup)
    assert before.ask("echo alive") == "alive"


def test_a_refused_dump_says_why_and_the_session_runs_on(
    sessions: Sessions, tmp_path: Path
) -> None:
    before = shell(sessions)
    before.type("unshare --fork --pid sh -c 'echo nest''ed; exec sleep 1000' &")
    before.until("nested")
    with pytest.raises(checkpoint.DumpError, match="nested pid namespace"):
        checkpoint.dump(before.place, before.master, str(tmp_path))
    assert before.ask("echo alive") == "alive"


def test_a_failed_restore_leaves_nothing(sessions: Sessions, tmp_path: Path) -> None:
    before = shell(sessions)
    checkpoint.dump(before.place, before.master, str(tmp_path))
    before.finish()
    for image in tmp_path.glob("core-*.img"):
        image.write_bytes(b"")
    with pytest.raises(LaunchFailed):
        revived(sessions, tmp_path)
    home = cgroup.home(sessions.instance)
    assert home is not None
    assert len(cgroup.leftovers(home)) == 1  # the first session's own, until the test ends


# Runs in a mount namespace of its own, on a host with separate /run, /mnt and a bound file.
_MANY_MOUNTS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from holdfast.adapters.criu import checkpoint
from holdfast.adapters.launch import syscalls
syscalls.unshare(syscalls.CLONE_NEWNS)
syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
syscalls.mount("tmpfs", "/run", "tmpfs")
syscalls.mount("tmpfs", "/mnt", "tmpfs")
open("/mnt/file", "w").close()
syscalls.mount("/etc/hostname", "/mnt/file", None, syscalls.MS_BIND)
from process.launching import Sessions
from holdfast.model.ids import SessionId
from holdfast.model.state import Level
with Sessions(Level.MOVABLE) as sessions:
    before = sessions.launch("bash", "--norc", "--noprofile", "-i", cwd="/mnt")
    before.ask("exec 5>/run/log; echo one >&5")
    assert set(before.place.mounts) >= {"/run", "/mnt", "/mnt/file"}, before.place
    checkpoint.dump(before.place, before.master, sys.argv[2])
    before.finish()
    session = SessionId.of_key(os.urandom(32))
    after = sessions.adopt(checkpoint.restore(sys.argv[2], session, sessions.instance))
    after.ask("echo two >&5")
    assert after.ask("pwd; cat file") == "/mnt\\n" + open("/etc/hostname").read().strip()
    assert open("/run/log").read() == "one\\ntwo\\n"
print("fine")
"""


def test_a_session_on_a_host_with_many_mounts_comes_back_to_them(
    sessions: Sessions, tmp_path: Path
) -> None:
    here = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", _MANY_MOUNTS, str(here), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.stdout.strip() == "fine", done.stderr
