"""Starting sessions at level plain: a real PTY, a real launcher, real programs."""

from __future__ import annotations

import gc
import os
import resource
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from holdfast.adapters import compiled as native
from holdfast.adapters import pty
from holdfast.model.errors import CommandNotFound, LaunchFailed, LevelUnavailable, NotPermitted
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level
from process.launching import Sessions
from process.waiting import PATIENCE_S, children_of, parent_of, read_all, wait_ended


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with Sessions(Level.PLAIN, nofile=1000) as running:
        yield running


def test_a_program_runs_on_its_own_terminal(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "tty; stty size; echo pid $$ end; read x; exit 7")
    seen = running.until("end")
    assert running.place.tty in seen
    assert "30 100" in seen
    assert f"pid {running.place.shell_pid} end" in seen
    assert pty.foreground_pgid(running.master) == running.place.shell_pid
    running.type("")
    assert running.finish() == Ending(code=7)


def test_the_init_becomes_a_child_of_the_subreaper(sessions: Sessions) -> None:
    running = sessions.launch("sleep", "1000")
    assert parent_of(running.place.pid) == running.keeper_pid
    assert parent_of(running.place.shell_pid) == running.place.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_an_end_by_signal_is_told_from_an_exit_with_the_same_number(
    sessions: Sessions, number: int
) -> None:
    killed = sessions.launch("sh", "-c", f"kill -{number} $$")
    exited = sessions.launch("sh", "-c", f"exit {128 + number}")
    assert killed.finish() == Ending(signal=number)
    assert exited.finish() == Ending(code=128 + number)


def test_the_terminal_hangs_up_when_the_program_ends(sessions: Sessions) -> None:
    running = sessions.launch("echo", "done")
    assert read_all(running.master) == b"done\r\n"


def test_a_program_that_ends_at_once_is_still_launched(sessions: Sessions) -> None:
    for running in sessions.launch_many(10, "true"):
        assert running.place.shell_pid > 0
        assert running.finish() == Ending(code=0)


def test_what_is_left_of_the_tree_ends_with_the_program(sessions: Sessions) -> None:
    # One child that heeds SIGHUP, one that does not, one that left the terminal's session.
    running = sessions.launch(
        "sh",
        "-c",
        "sleep 1000 & echo $!; (trap '' HUP; exec sleep 1000) & echo $!;"
        "setsid sleep 1000 & echo $!; echo all; read x",
    )
    pids = [int(word) for word in running.until("all").split() if word.isdigit()]
    pidfds = [os.pidfd_open(pid) for pid in pids]
    running.type("")
    try:
        assert running.finish() == Ending(code=0)
        for pidfd in pidfds:
            wait_ended(pidfd)
    finally:
        for pidfd in pidfds:
            os.close(pidfd)


def test_a_hangup_does_not_take_the_init_before_its_program(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "trap '' HUP; echo set; read x; exit 5")
    running.until("set")
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.pidfd_send_signal(running.pidfd, number)
    running.type("")
    assert running.finish() == Ending(code=5)


def test_the_environment_and_directory_are_exactly_those_asked_for(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = sessions.launch("env", env={"ODD": "a b\n\udcff"}, cwd=str(tmp_path))
    seen = read_all(running.master)
    assert b"ODD=a b\r\n\xff" in seen
    assert b"VIRTUAL_ENV" not in seen and b"PYTEST" not in seen
    here = sessions.launch("pwd", cwd=str(tmp_path))
    assert read_all(here.master).decode().strip() == str(tmp_path)


def test_descriptors_signals_limits_and_mask_are_clean(sessions: Sessions) -> None:
    running = sessions.launch(
        "sh", "-c", "echo /proc/self/fd/*; grep Sig /proc/self/status; umask; ulimit -Sn"
    )
    seen = read_all(running.master).decode().split()
    # The shell that expands the pattern holds the directory open itself.
    opened = {int(word.rpartition("/")[2]) for word in seen if word.startswith("/proc/self/fd/")}
    assert opened - {3} == {0, 1, 2}
    masks = dict(pairwise(seen))
    assert int(masks["SigBlk:"], 16) == 0
    assert int(masks["SigIgn:"], 16) == 0
    assert seen[-2] == "0022"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert int(seen[-1]) == (1000 if hard < 0 else min(1000, hard))


def test_an_inherited_descriptor_has_its_number_inside_and_ends_with_the_program(
    sessions: Sessions,
) -> None:
    out, into = os.pipe()
    running = sessions.launch("sh", "-c", "echo through >&7; sleep 0", inherit={7: into})
    os.close(into)
    try:
        assert os.read(out, 100) == b"through\n"
        assert os.read(out, 100) == b"", "somebody else still holds the pipe"
    finally:
        os.close(out)
    assert running.finish() == Ending(code=0)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("nosuch-command",), "nosuch-command: command not found"),
        (("/nosuch/command",), "/nosuch/command: no such file or directory"),
        (("/etc/passwd",), "/etc/passwd: permission denied"),
        (("/usr",), "/usr: permission denied"),
    ],
)
def test_a_command_that_cannot_be_run_is_named(
    sessions: Sessions, argv: tuple[str, ...], message: str
) -> None:
    with pytest.raises(CommandNotFound) as refused:
        sessions.launch(*argv)
    assert refused.value.message == message


def test_a_script_whose_interpreter_is_missing_is_named(sessions: Sessions, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/nosuch/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(CommandNotFound, match="cannot be executed") as refused:
        sessions.launch(str(script))
    assert "interpreter" in refused.value.hint


def test_a_directory_that_is_not_there_is_named(sessions: Sessions) -> None:
    with pytest.raises(LaunchFailed, match="directory /nosuch does not exist"):
        sessions.launch("true", cwd="/nosuch")
    with pytest.raises(LaunchFailed, match="directory /etc/passwd is not a directory"):
        sessions.launch("true", cwd="/etc/passwd")


def test_a_failed_launch_leaves_no_process_and_no_descriptor(sessions: Sessions) -> None:
    others = set(children_of(os.getpid()))  # hosts of other tests may have been adopted here
    with pytest.raises(CommandNotFound):
        sessions.launch("nosuch-command")
    launcher = sessions.launcher_pid()
    gc.collect()  # so that nothing of another test closes its own meanwhile
    before = sorted(os.listdir("/proc/self/fd")), sorted(os.listdir(f"/proc/{launcher}/fd"))
    for _ in range(3):
        with pytest.raises(CommandNotFound):
            sessions.launch("nosuch-command")
    after = sorted(os.listdir("/proc/self/fd")), sorted(os.listdir(f"/proc/{launcher}/fd"))
    assert after == before
    assert set(children_of(os.getpid())) - others == {launcher}


def test_a_session_whose_caller_went_away_is_ended(sessions: Sessions) -> None:
    sessions.launch("true").finish()
    gc.collect()  # so that nothing of another test closes its own meanwhile
    before = sorted(os.listdir("/proc/self/fd"))
    first = sessions.running[-1]
    sessions.cancel_launch("sleep", "1000")
    second = sessions.running[-1]
    deadline = time.monotonic() + PATIENCE_S
    while set(children_of(sessions.launcher_pid())) != {first.keeper_pid, second.keeper_pid}:
        assert time.monotonic() < deadline, "the keeper of the cancelled one stays"
        os.sched_yield()
    assert len(os.listdir("/proc/self/fd")) == len(before) + 3, "only the second session's"


def test_a_launch_whose_launcher_dies_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = set(children_of(os.getpid()))
    never = tmp_path / "init"
    os.mkfifo(never)  # opening it waits for a writer that does not come
    monkeypatch.setattr(native, "build", lambda name, into=None: never)
    with Sessions(Level.PLAIN) as sessions:
        with pytest.raises(LaunchFailed, match="the launcher died"):
            sessions.break_launch("true")
        assert set(children_of(os.getpid())) <= others


def test_a_launcher_that_died_is_replaced(sessions: Sessions) -> None:
    first = sessions.launch("sleep", "1000")
    old = sessions.launcher_pid()
    pidfd = os.pidfd_open(old)
    os.kill(old, signal.SIGKILL)
    wait_ended(pidfd)
    os.close(pidfd)
    second = sessions.launch("sh", "-c", "exit 3")
    assert second.finish() == Ending(code=3)
    assert sessions.launcher_pid() != old
    assert parent_of(first.place.pid) == first.keeper_pid, "the first session lives on"


def test_the_size_can_be_changed_and_the_program_hears_of_it(sessions: Sessions) -> None:
    running = sessions.launch(
        "sh", "-c", "trap 'stty size' WINCH; echo rea''dy; while :; do read x; done"
    )
    running.until("ready")
    pty.set_size(running.master, Size(120, 40))
    assert pty.size(running.master) == Size(120, 40)
    running.until("40 120")


def test_unread_input_is_counted(sessions: Sessions) -> None:
    running = sessions.launch("sh", "-c", "echo rea''dy; exec sleep 1000")
    running.until("ready")
    assert pty.unread_input(running.master) == 0
    running.type("hello")
    running.until("hello")
    assert pty.unread_input(running.master) == 6


def test_only_root_starts_sessions_for_others(sessions: Sessions) -> None:
    if os.geteuid() == 0:
        pytest.skip("this is root")
    with pytest.raises(NotPermitted):
        sessions.launch("true", uid=0)
    with Sessions(Level.CONTAINED) as higher, pytest.raises(LevelUnavailable, match="needs root"):
        higher.launch("true")


def test_without_a_compiler_there_is_no_session_and_the_reason_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(native, "build", lambda name, into=None: "no compiler")
    with Sessions(Level.PLAIN) as sessions, pytest.raises(LaunchFailed, match="no compiler"):
        sessions.launch("true")
