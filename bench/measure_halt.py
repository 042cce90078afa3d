"""Halting 200 idle processes: a freeze of the session's cgroup, and SIGSTOP to each of them.

Both end when the tree is proven to be stopped: the freeze when the kernel says `frozen 1` and
nothing in the session's pid namespace was found outside of the group, the loop when every process
was seen stopped in /proc. The loop is given the pids for nothing: finding them, and looking again
for what was forked meanwhile, would come on top. That, as it is done at level plain, where there is
no cgroup to freeze, is the second row; it has no target."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from functools import partial

from bench.results import Row, Target
from bench.sampling import Samples, interleaved, medians
from bench.stage import Stage
from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.halt.stop_tree import Tree, stop_tree
from holdfast.adapters.proc import procfs
from holdfast.model.spec import Place
from holdfast.sdk.client import Host

PROCESSES = 200
_START = f"for i in $(seq {PROCESSES}); do sleep 100000 & done; wait"
_TIMEOUT_S = 20.0
_LOOP = "SIGSTOP to each"
_PLAIN = "as at level plain"


def measure(stage: Stage) -> list[Row]:
    if cgroup.unavailable() or os.geteuid() != 0:
        return []
    with _tree(stage) as (group, init):
        pids = [pid for pid in cgroup.processes(group) if pid != init]
        actions = {
            "holdfast": partial(_freeze, Place(pid=init, shell_pid=init, tty="", cgroup=group)),
            _LOOP: partial(_stop, pids),
            _PLAIN: partial(_stop_unknown, init),
        }
        samples = interleaved(actions, stage.scale.start_repetitions, warm_up=2)
    found = medians(samples)
    return [
        _row(f"halt of {PROCESSES} idle processes", found["holdfast"], found[_LOOP], samples),
        Row(
            "the same without a cgroup",
            "ms",
            {"holdfast": found[_PLAIN]},
            _LOOP,
            baseline=found[_LOOP],
            note="processes looked up, stopped from the top down, and looked up again twice",
        ),
    ]


def _row(name: str, own: float, loop: float, samples: Samples) -> Row:
    return Row(
        name,
        "ms",
        {"holdfast": own},
        _LOOP,
        baseline=loop,
        target=Target("<=", 0.5),
        samples=samples,
    )


@contextlib.contextmanager
def _tree(stage: Stage) -> Iterator[tuple[str, int]]:
    """A contained session with the processes: its cgroup and its init's pid."""
    (hold,) = stage.systems(("holdfast",))
    with Host(f"{hold.env['HOLDFAST_HOME']}/run/hold.sock") as host:
        info = host.run(["sh", "-c", _START], cwd="/", env={"PATH": os.environ["PATH"]})
        try:
            init = host.graph(info.id).root
            group = _group_of(init)
            _wait_idle(group)
            yield group, init
        finally:
            host.end(info.id)


def _group_of(pid: int) -> str:
    found = cgroup.locate(
        procfs.read("/proc/self/mountinfo").decode(),
        procfs.read(f"/proc/{pid}/cgroup").decode(),
        os.path.isdir,
    )
    assert found is not None
    return found


def _wait_idle(group: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not (
        len(pids := cgroup.processes(group)) == PROCESSES + 2
        and all(procfs.stat_of(pid).state == "S" for pid in pids)
    ):
        if time.monotonic() > deadline:
            raise TimeoutError("the processes did not come to rest")
        time.sleep(0.01)


def _freeze(place: Place) -> float:
    began = time.perf_counter()
    halted = freeze.halt(place)
    seconds = time.perf_counter() - began
    assert halted.frozen
    assert cgroup.thaw(place.cgroup)
    return seconds * 1000


def _stop(pids: list[int]) -> float:
    began = time.perf_counter()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    left = pids
    while left := [pid for pid in left if procfs.stat_of(pid).state != "T"]:
        os.sched_yield()
    seconds = time.perf_counter() - began
    for pid in reversed(pids):
        os.kill(pid, signal.SIGCONT)
    return seconds * 1000


def _stop_unknown(init: int) -> float:
    began = time.perf_counter()
    tree = Tree(init)
    frozen, _ = stop_tree(tree)
    seconds = time.perf_counter() - began
    assert frozen
    for who in reversed(tree.stopped):
        os.kill(who.pid, signal.SIGCONT)
    return seconds * 1000
