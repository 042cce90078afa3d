"""Attempts to run on through a halt at level contained: on the real product, and with the adapter
where the escape has to be arranged from outside."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup, escapes, freeze
from holdfast.adapters.launch import syscalls
from holdfast.model.state import Level
from process import halt_scenes as scenes
from process.commanding import HOLD, PATIENCE_S, Hold
from process.launching import Running, Sessions

# Mounts cgroupfs and moves to the group at the top of what it shows, then counts for ever.
_ESCAPE = """
mkdir {mount} && mount -t cgroup2 none {mount} && echo $$ > {mount}/cgroup.procs
while :; do echo >> {counter}; done
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")


@pytest.fixture
def hold() -> Iterator[Hold]:
    with Hold() as hold:
        hold.ok("up", "-d")
        yield hold


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    with Sessions(Level.CONTAINED) as running:
        yield running


@pytest.fixture(params=["number", "link"])
def by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How it is found out who is in the session's pid namespace: kernels before 6.11 have links."""
    if request.param == "link":
        monkeypatch.setattr(escapes, "_by_number", lambda *_: None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.requirement("A5")
def test_a_process_that_mounts_cgroupfs_does_not_run_through_a_confirmed_halt(
    hold: Hold, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    script = _ESCAPE.format(mount=tmp_path / "groups", counter=counter)
    hold.ok("run", "-d", "--name", "x", "--level", "contained", "--", "sh", "-c", script)
    scenes.soon(lambda: _size(counter) > 0, "it does not count")
    receipt = hold.json("halt", "x")
    assert receipt["frozen"] and receipt["caught"] == []
    assert not _grows(counter)
    at_halt = _size(counter)
    hold.ok("resume", "x")
    scenes.soon(lambda: _size(counter) > at_halt, "it does not go on")


@pytest.mark.requirement("A5")
def test_cgroupfs_mounted_inside_shows_the_sessions_own_groups_only(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.shell(sessions)
    running.ask(f"mkdir {tmp_path}/groups; mount -t cgroup2 none {tmp_path}/groups")
    cgroup.enter(cgroup.leaf(running.place.cgroup, "ann"), running.place.shell_pid)
    assert "0::/actor-ann" in running.ask("cat /proc/self/cgroup")
    shown = running.ask(f"ls {tmp_path}/groups")
    assert "actor-ann" in shown and "holdfast-" not in shown


@pytest.mark.requirement("A5")
def test_a_caught_process_is_named_by_hold_halt_and_in_the_journal(
    hold: Hold, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    script = f"while :; do echo >> {counter}; done"
    hold.ok("run", "-d", "--name", "y", "--level", "contained", "--", "sh", "-c", script)
    scenes.soon(lambda: _size(counter) > 0, "it does not count")
    root = hold.json("graph", "y")["processes"]
    escaped = next(each["pid"] for each in root if each["name"] == "sh")
    cgroup.enter(os.path.dirname(_group_of(escaped)), escaped)
    said = hold.ok("halt", "y")
    assert f"had left the session's group and was caught: {escaped}" in said
    assert not _grows(counter)
    assert f"caught {escaped}" in hold.ok("log", "y")


def _group_of(pid: int) -> str:
    membership = Path(f"/proc/{pid}/cgroup").read_text()
    found = cgroup.locate(Path("/proc/self/mountinfo").read_text(), membership, os.path.isdir)
    assert found is not None
    return found


def _grows(path: Path) -> bool:
    """Whether it does while it is watched."""
    before = _size(path)
    time.sleep(scenes.WATCHED_S)
    return _size(path) > before


def _counting(sessions: Sessions, counter: Path) -> Running:
    running = scenes.started(sessions, f"echo up; while :; do echo >> {counter}; done")
    scenes.soon(lambda: _size(counter) > 0, "it does not count")
    return running


def _outside(place_cgroup: str) -> str:
    """The group above the session's: whoever gets there is out of reach of a freeze."""
    return os.path.dirname(place_cgroup)


@pytest.mark.usefixtures("by")
@pytest.mark.requirement("A5")
def test_hold_halt_of_what_cannot_be_caught_is_incomplete_and_names_it(tmp_path: Path) -> None:
    counter, hold = tmp_path / "counter", Hold()
    own_mounts = ("unshare", "--mount", "--propagation", "private")
    try:
        done = subprocess.run([*own_mounts, HOLD, "up", "-d"], env=hold.env, timeout=PATIENCE_S)
        assert done.returncode == 0
        script = f"while :; do echo >> {counter}; done"
        hold.ok("run", "-d", "--name", "z", "--level", "contained", "--", "sh", "-c", script)
        scenes.soon(lambda: _size(counter) > 0, "it does not count")
        processes = hold.json("graph", "z")["processes"]
        escaped = next(each["pid"] for each in processes if each["name"] == "sh")
        group = _group_of(escaped)
        cgroup.enter(os.path.dirname(group), escaped)
        # For the daemon alone, a move to the session's group has no effect.
        daemon = hold.json("doctor")["daemon_pid"]
        entered = ("nsenter", "--target", str(daemon), "--mount")
        bind = ("mount", "--bind", "/dev/null", f"{_session_group(group)}/cgroup.procs")
        subprocess.run([*entered, *bind], check=True, timeout=PATIENCE_S)
        halted = hold("halt", "z")
        assert halted.returncode != 0 and "(halt_failed)" in halted.stderr, halted
        assert "NOT confirmed" in halted.stdout
        assert f"could not be stopped: {escaped}\n" in halted.stdout
        receipt = json.loads(hold("halt", "z", "--json").stdout)
        assert not receipt["frozen"] and receipt["running"] == [escaped]
        assert f"NOT proven frozen; could not stop {escaped}" in hold.ok("log", "z")
        subprocess.run(
            [*entered, "umount", f"{_session_group(group)}/cgroup.procs"],
            check=True,
            timeout=PATIENCE_S,
        )
        assert hold.json("halt", "z")["caught"] == [escaped]
        assert not _grows(counter)
    finally:
        hold.close()


def _session_group(group: str) -> str:
    """The session's, of a leaf or of itself."""
    home, name, *_ = group.partition(f"/{cgroup.PREFIX}")[2].split("/")
    return f"{group.partition(f'/{cgroup.PREFIX}')[0]}/{cgroup.PREFIX}{home}/{name}"


@pytest.mark.requirement("A5")
def test_a_process_outside_the_sessions_group_is_caught_by_a_halt_and_named(
    sessions: Sessions, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    running = _counting(sessions, counter)
    place = running.place
    cgroup.enter(_outside(place.cgroup), place.shell_pid)
    halted = freeze.halt(place)
    assert halted.frozen and place.shell_pid in halted.caught
    assert not _grows(counter)
    assert place.shell_pid in cgroup.processes(place.cgroup)
    assert freeze.resume(place)
    before = _size(counter)
    scenes.soon(lambda: _size(counter) > before, "it does not go on")


@pytest.mark.usefixtures("by")
@pytest.mark.requirement("A5")
def test_a_process_in_a_pid_namespace_of_its_own_is_caught_too(
    sessions: Sessions, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    loop = f"while :; do echo >> {counter}; done"
    running = scenes.started(sessions, f"echo up; unshare --pid --fork sh -c '{loop}'")
    scenes.soon(lambda: _size(counter) > 0, "it does not count")
    place = running.place
    for pid in cgroup.processes(place.cgroup):
        if pid != place.pid:
            cgroup.enter(_outside(place.cgroup), pid)
    halted = freeze.halt(place)
    assert halted.frozen and len(halted.caught) >= 3
    assert not _grows(counter)


@pytest.mark.usefixtures("by")
@pytest.mark.requirement("A5")
def test_what_cannot_be_caught_makes_the_halt_incomplete_and_is_named(
    sessions: Sessions, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    running = _counting(sessions, counter)
    place = running.place
    cgroup.enter(_outside(place.cgroup), place.shell_pid)

    # In a mount namespace where the group takes nobody: a move has no effect.
    child = os.fork()
    if child == 0:
        status = 70
        try:
            syscalls.unshare(syscalls.CLONE_NEWNS)
            syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
            syscalls.mount("/dev/null", f"{place.cgroup}/cgroup.procs", None, syscalls.MS_BIND)
            halted = freeze.halt(place, timeout_s=0.3)
            named = place.shell_pid in halted.running
            status = 0 if named and not halted.frozen else 1
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert cgroup.thaw(place.cgroup)


@pytest.mark.requirement("A5")
def test_whose_processes_are_whose_is_told_alike_by_number_and_by_link(sessions: Sessions) -> None:
    running = scenes.started(sessions, "echo up; unshare --pid --fork sleep 100")
    place = running.place
    scenes.soon(lambda: len(cgroup.processes(place.cgroup)) >= 4, "it does not start")
    namespace = os.open(f"/proc/{place.pid}/ns/pid", os.O_RDONLY)
    try:
        by_link = escapes._by_link(namespace)
        by_number = escapes._by_number(namespace, place.pid) or by_link
        for pid in cgroup.processes(place.cgroup):
            assert by_number(pid) and by_link(pid)
        for pid in (1, os.getpid(), os.getppid(), 2**22 - 1):
            assert not by_number(pid) and not by_link(pid)
    finally:
        os.close(namespace)
