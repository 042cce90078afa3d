"""The enforced halt at level contained, and the leaf of one actor in a session's cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.proc import procfs
from holdfast.host.session.halt_control import thaw_all
from holdfast.model.state import Ending, Level
from process import halt_scenes as scenes
from process.launching import Running, Sessions


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")
    with Sessions(Level.CONTAINED) as running:
        yield running


@pytest.mark.requirement("A5")
def test_two_hundred_busy_processes_are_halted(sessions: Sessions) -> None:
    halted = scenes.check_halts_and_goes_on(scenes.started(sessions, scenes.BUSY), 201)
    assert halted.stopped == ()


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("script", [scenes.FORKING, scenes.SCATTERING, scenes.CONTINUING])
def test_a_tree_that_works_against_it_is_halted(sessions: Sessions, script: str) -> None:
    running = scenes.started(sessions, script)
    for _ in range(5):
        scenes.check_halts_and_goes_on(running, 1)


@pytest.mark.requirement("A5")
def test_a_process_that_is_never_there_when_looked_at_is_halted(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.comet(sessions, tmp_path)
    for _ in range(5):
        scenes.check_halts_and_goes_on(running, 3)


@pytest.mark.requirement("A5")
def test_a_process_deaf_to_every_signal_it_may_ignore_is_halted(
    sessions: Sessions, tmp_path: Path
) -> None:
    scenes.check_deaf_process(sessions, tmp_path)


@pytest.mark.requirement("A5")
def test_a_write_under_way_is_completed_and_not_called_frozen_before(
    sessions: Sessions, tmp_path: Path
) -> None:
    scenes.check_write_under_way(sessions, tmp_path)


def test_a_parent_held_in_vfork_does_not_hold_up_the_halt(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.vforking(sessions, tmp_path)
    halted = freeze.halt(running.place)
    assert halted.frozen and halted.tasks == 5  # with the init
    assert scenes.is_quiet_once_asleep(running.place)


def test_a_job_that_was_suspended_before_stays_suspended(sessions: Sessions) -> None:
    scenes.check_suspended_job_stays_suspended(sessions)


def test_a_halted_tree_can_be_killed(sessions: Sessions) -> None:
    running = scenes.started(sessions, scenes.BUSY)
    assert freeze.halt(running.place).frozen
    assert freeze.kill(running.place)
    assert not cgroup.processes(running.place.cgroup)
    running.finish()


def test_a_session_that_is_gone_is_not_called_halted(sessions: Sessions) -> None:
    running = sessions.launch("true")
    running.finish()
    assert cgroup.remove(running.place.cgroup)
    assert freeze.halt(running.place).frozen is False


# -- the leaf of one actor --------------------------------------------------------------------


def _counting(running: Running, actor: str, tmp_path: Path) -> tuple[Path, int]:
    """A background job of this actor that appends to a file for ever; the shell stays with it."""
    cgroup.enter(cgroup.leaf(running.place.cgroup, actor), running.place.shell_pid)
    counter = tmp_path / actor
    told = running.ask(f"{{ while :; do echo >> {counter}; sleep 0.001; done; }} & echo $!")
    scenes.soon(lambda: _size(counter) > 10, "it does not count")
    inner = int(told.split()[-1])
    (job,) = [pid for pid in cgroup.processes(running.place.cgroup) if _inner(pid) == inner]
    return counter, job


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _inner(pid: int) -> int:
    try:
        lines = procfs.read(f"/proc/{pid}/status").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[-1]) for line in lines if line.startswith(b"NSpid"))


@pytest.mark.requirement("A5")
def test_one_actors_jobs_are_halted_while_the_shell_and_the_others_go_on(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.shell(sessions)
    place = running.place
    of_ann, job_of_ann = _counting(running, "ann", tmp_path)
    of_bob, job_of_bob = _counting(running, "bob", tmp_path)
    assert cgroup.actors_of(place.cgroup, job_of_ann) == ("ann",)
    assert cgroup.actors_of(place.cgroup, job_of_bob) == ("bob",)
    assert cgroup.actors_of(place.cgroup, place.shell_pid) == ("bob",)
    assert cgroup.actors_of(place.cgroup, place.pid) == ()

    leaf = cgroup.leaf(place.cgroup, "ann")
    halted = freeze.halt_group(leaf)
    assert halted.frozen and halted.tasks >= 1
    ann, bob = _size(of_ann), _size(of_bob)
    scenes.soon(lambda: _size(of_bob) > bob + 20, "the other's job does not go on")
    assert "alive" in running.ask("echo alive")
    assert _size(of_ann) == ann
    assert not cgroup.frozen(place.cgroup)

    assert cgroup.thaw(leaf)
    scenes.soon(lambda: _size(of_ann) > ann, "it does not go on")


def test_the_session_is_halted_found_and_removed_with_its_leaves(
    sessions: Sessions, tmp_path: Path
) -> None:
    running = scenes.shell(sessions)
    place = running.place
    of_ann, job_of_ann = _counting(running, "ann", tmp_path)
    _, job_of_bob = _counting(running, "bob", tmp_path)
    everyone = {place.pid, place.shell_pid, job_of_ann, job_of_bob}
    assert everyone <= set(cgroup.processes(place.cgroup))
    assert everyone <= set(procfs.members(place, 100))
    assert list(cgroup.leaves(place.cgroup)) == ["ann", "bob"]

    halted = freeze.halt(place)
    assert halted.frozen and halted.tasks >= 4
    size = _size(of_ann)
    assert scenes.is_quiet_once_asleep(place) and _size(of_ann) == size
    assert freeze.resume(place)
    scenes.soon(lambda: _size(of_ann) > size, "it does not go on")

    assert freeze.halt_group(cgroup.leaf(place.cgroup, "ann")).frozen
    assert freeze.kill(place)  # frozen in part
    assert running.finish() == Ending(signal=9)
    assert cgroup.remove(place.cgroup)
    assert not os.path.exists(place.cgroup)


@pytest.mark.requirement("A5")
def test_a_leaf_that_was_not_frozen_in_time_is_let_go_with_the_rest(
    sessions: Sessions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task deep in the kernel freezes when it comes back: the wish must not stand until then."""
    running = scenes.shell(sessions)
    _counting(running, "ann", tmp_path)
    leaf = cgroup.leaf(running.place.cgroup, "ann")
    cgroup.ask_to_freeze(leaf)
    with monkeypatch.context() as not_yet:
        not_yet.setattr(cgroup, "frozen", lambda directory: False)
        assert thaw_all(running.place, ())
    assert not cgroup.asked_to_freeze(leaf)


def test_killing_a_leaf_leaves_the_shell(sessions: Sessions, tmp_path: Path) -> None:
    running = scenes.shell(sessions)
    _, job = _counting(running, "ann", tmp_path)
    cgroup.enter(running.place.cgroup, running.place.shell_pid)
    assert cgroup.kill(cgroup.leaf(running.place.cgroup, "ann"))
    scenes.soon(lambda: scenes.has_ended(job), "it does not end")
    assert "alive" in running.ask("echo alive")


def test_a_leaf_is_made_once_and_never_brings_a_session_back(sessions: Sessions) -> None:
    running = scenes.started(sessions, "echo up; read x")
    directory = running.place.cgroup
    assert cgroup.leaf(directory, "ann") == cgroup.leaf(directory, "ann")
    with pytest.raises(FileNotFoundError):
        cgroup.leaf(f"{directory}x", "ann")
    for bad in ("", ".", "a/b", "..", "a\n", "cgroup.procs", "é", "a" * 129):
        with pytest.raises(ValueError, match="not an id"):
            cgroup.leaf(directory, bad)


def test_the_actors_are_read_below_this_session_only() -> None:
    mine = "/sys/fs/cgroup/holdfast-x/s1"
    for membership, actors in (
        ("0::/holdfast-x/s1/actor-ann\n", ("ann",)),
        ("3:cpu:/\n0::/a/holdfast-x/s1/actor-ann/deeper\n", ("ann",)),
        ("0::/holdfast-x/s1/actor-ann (deleted)\n", ("ann",)),
        ("0::/holdfast-x/s1/actor-ann/with-bob/with-eve/deeper/with-x\n", ("ann", "bob", "eve")),
        ("0::/holdfast-x/s1\n", ()),
        ("0::/holdfast-x/s1/deeper\n", ()),
        ("0::/holdfast-x/s2/actor-ann\n", None),
        ("0::/holdfast-x/s10/actor-ann\n", None),
    ):
        assert cgroup.actors_in(membership, mine) == actors, membership
    nested = "0::/holdfast-x/s1/actor-ann/holdfast-y/s9/actor-bob\n"
    assert cgroup.actors_in(nested, mine) == ("ann",)
    assert cgroup.actors_in(nested, "/sys/fs/cgroup/a/holdfast-y/s9") == ("bob",)
