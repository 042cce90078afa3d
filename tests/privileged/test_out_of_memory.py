"""A machine without memory ends the program that took it, and nothing of ours (S1)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.hosting import (
    HOLD,
    FaultHost,
    command_line,
    process_key,
    resident_bytes,
)
from holdfast.model.state import Level
from process.waiting import until

LIMIT = 400 << 20  # a daemon takes 80 MiB, and a command 40
_RAISED = 500  # of the host from its start: lowered again by whom it protects, whoever that is
_SMALL_BYTES = 4 << 20
# Each holds its block in memory, because nobody reads what it writes.
_MANY_SMALL = (
    f"read x; for i in $(seq {2 * LIMIT // _SMALL_BYTES}); do "
    f"dd if=/dev/zero bs={_SMALL_BYTES} count=1 & done | sleep 1000"
)
_EATER = "import time\nheld = []\nwhile True:\n    held.append(bytearray(8 << 20))\n"


def _group() -> Path:
    """A new control group of the memory controller, below this process's own."""
    name = f"hf-test-{uuid.uuid4().hex[:8]}"
    membership = Path("/proc/self/cgroup").read_text().splitlines()
    for line in membership:
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path(f"/sys/fs/cgroup/memory{path}", name)
        if number == "0" and Path(f"/sys/fs/cgroup{path}/memory.max").exists():
            return Path(f"/sys/fs/cgroup{path}").parent / name
    raise AssertionError("no memory controller")


@pytest.fixture
def limited() -> Iterator[Path]:
    group = _group()
    try:
        group.mkdir()
        v1 = group / "memory.limit_in_bytes"
        (v1 if v1.exists() else group / "memory.max").write_text(str(LIMIT))
    except (OSError, AssertionError) as error:
        pytest.skip(f"no group with a limit on memory can be made here: {error}")
    try:
        yield group
    finally:
        until("everything in the group ended", lambda: not _members(group) or None)
        group.rmdir()


@pytest.fixture
def host() -> Iterator[FaultHost]:
    with FaultHost() as host:
        yield host.up()


def _members(group: Path) -> list[str]:
    return (group / "cgroup.procs").read_text().split()


def _may_protect() -> bool:
    """Whether this user may lower the score of a process."""
    pid = os.fork()
    if pid == 0:
        try:
            with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("-1")
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.mark.requirement("S1")
@pytest.mark.timeout(100)
@pytest.mark.parametrize("level", [Level.PLAIN, Level.CONTAINED])
def test_out_of_memory_the_kernel_ends_the_program_that_took_it(
    limited: Path, level: Level
) -> None:
    with FaultHost() as host:
        subprocess.run(
            [HOLD, "up", "-d"],
            env=host.environment,
            check=True,
            timeout=40,
            preexec_fn=lambda: (limited / "cgroup.procs").write_text(str(os.getpid())) and None,
        )
        client = host.client()
        bystander = client.run(["cat"], name="bystander", level=level)
        eater = client.run(
            ["sh", "-c", 'read x; python3 -c "$EATER"; exit $?'],
            name="eater",
            level=level,
            env={**os.environ, "EATER": _EATER},
        )
        before = client.host()
        ours = [before.daemon_pid, before.supervisor_pid or 0, *host.keepers()]
        keys = [process_key(pid) for pid in ours]
        assert all(str(pid) in _members(limited) for pid in ours)
        client.send("eater", "\n")
        ending = until("the eater was ended", lambda: client.show(eater.id).ending, 60)
        assert ending.code == 128 + signal.SIGKILL, "the program, and not even its shell"
        after = client.host()
        assert (after.daemon_pid, after.restarts) == (before.daemon_pid, before.restarts)
        living = {key for key in keys if key is not None and process_key(key.pid) == key}
        assert len(living) >= len(keys) - 1, "all but the keeper of what ended"
        assert client.show("bystander").pid == bystander.pid


def _kills(group: Path) -> int:
    """How often the kernel ended a process of the group for want of memory."""
    v1 = group / "memory.oom_control"
    lines = (v1 if v1.exists() else group / "memory.events").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("oom_kill ")))


@pytest.mark.requirement("S1")
@pytest.mark.timeout(100)
def test_the_supervisor_stays_where_every_program_is_smaller_than_it(limited: Path) -> None:
    """By size alone the kernel would end it right after the daemon; its score decides."""
    host = FaultHost()

    def enter() -> None:
        (limited / "cgroup.procs").write_text(str(os.getpid()))
        Path("/proc/self/oom_score_adj").write_text(str(_RAISED))

    try:
        subprocess.run(
            [HOLD, "up", "-d"], env=host.environment, check=True, timeout=40, preexec_fn=enter
        )
        client = host.client()
        bystander = client.run(["cat"], name="bystander")
        assert _score(bystander.pid) == _score(client.host().daemon_pid) == _RAISED
        until("the keeper is protected", lambda: _score(bystander.keeper_pid) < _RAISED)
        assert _score(host.supervisor_pid()) < _RAISED
        eaters = client.run(["sh", "-c", _MANY_SMALL], name="eaters", env=dict(os.environ))
        supervisor, keepers = host.supervisor_pid(), [bystander.keeper_pid, eaters.keeper_pid]
        assert resident_bytes(supervisor) // 2 > _SMALL_BYTES
        client.send("eaters", "\n")
        until("the kernel ended something several times", lambda: _kills(limited) >= 4, 60)
        for pid in map(int, _members(limited)):
            if command_line(pid).startswith("dd "):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert host.supervisor_pid() == supervisor and process_key(supervisor) is not None
        assert all(map(process_key, keepers))
        host.wait_new_daemon(0)
        assert host.client().show("bystander").pid == bystander.pid
    finally:
        host.down()


@pytest.mark.requirement("S1")
def test_keepers_and_supervisor_are_protected_where_that_is_permitted_and_sessions_never(
    host: FaultHost,
) -> None:
    client = host.client()
    mine = _score(os.getpid())
    info, here = client.run(["cat"], name="work"), client.host()
    protected = -900 if _may_protect() else min(mine, 0)
    deadline = time.monotonic() + 10
    while _score(info.keeper_pid) != protected:
        assert time.monotonic() < deadline, "the keeper is not protected"
    assert _score(here.supervisor_pid or 0) == protected
    assert _score(here.daemon_pid) == mine
    assert _score(info.pid) == mine
