"""The enforced halt: stop everything of a session, whether it cooperates or not, and prove it.

Contained: the session's cgroup is frozen, and the kernel says when it is, which is when the last
task has nothing left to do but to go to sleep or to end. Then everything in the session's pid
namespace is compared with the group (`escapes`). Plain: see `stop_tree`.
Either way `frozen` is only given when it was seen; when time is up the wish stays in force, and
the answer names what still runs.

Deliberately knows nothing of who may halt, and does not hold back input: a frozen program's
terminal still takes bytes, so the host has to refuse them.
"""

from __future__ import annotations

import signal
import time

from holdfast.adapters.halt import cgroup, escapes, stop_tree
from holdfast.adapters.halt.stop_tree import STOP_TIMEOUT_S, Tree
from holdfast.adapters.proc import procfs
from holdfast.model.spec import Place
from holdfast.ports.halt import HaltResult, Stopped


def halt(place: Place, session: str = "", timeout_s: float | None = None) -> HaltResult:
    """Stop the session's tree. Its first process must not have been reaped.

    At level plain, `session` also finds processes that only their environment ties to it."""
    if place.cgroup:
        limit_s = cgroup.FREEZE_TIMEOUT_S if timeout_s is None else timeout_s
        return _halt_contained(place, limit_s)
    began = time.monotonic()
    tree = Tree(place.pid, session)
    frozen, found = stop_tree.stop_tree(tree, STOP_TIMEOUT_S if timeout_s is None else timeout_s)
    tasks = sum(stat.threads for stat in found.values() if stat.runs)
    running = () if frozen else tuple(p for p, s in found.items() if not stop_tree.is_still(p, s))
    return HaltResult(
        frozen=frozen and tasks > 0,  # what has ended is not halted
        tasks=tasks,
        seconds=time.monotonic() - began,
        stopped=tuple(tree.stopped),
        running=tuple(sorted(running)),
    )


def resume(place: Place, stopped: tuple[Stopped, ...] = ()) -> bool:
    """Let the session go on. What was stopped before the halt stays stopped.

    False: the kernel did not say in time that it is thawed, or a process may not be signalled."""
    if place.cgroup:
        return cgroup.thaw(place.cgroup)
    return stop_tree.continue_tree(stopped)


def _halt_contained(place: Place, timeout_s: float) -> HaltResult:
    """Freeze the group, move back what left it, and look again until nothing is outside: each look
    follows a freeze that the kernel confirmed, so what is inside then can no longer leave."""
    began = time.monotonic()
    caught: set[int] = set()
    while True:
        left_s = max(0.0, began + timeout_s - time.monotonic())
        halted, tasks = _freeze(place.cgroup, left_s)
        outside = escapes.outside(place.pid, set(tasks)) if halted.frozen else []
        if not outside:
            break
        caught.update(outside)
        if left_s == 0.0:
            halted = halted.replace(frozen=False, running=tuple(outside))
            break
        escapes.move_back(outside, place.cgroup)
    caught -= set(halted.running)
    return halted.replace(seconds=time.monotonic() - began, caught=tuple(sorted(caught)))


def halt_group(directory: str) -> HaltResult:
    """Freeze one cgroup with those below it: a session's, or the leaf of one actor."""
    return _freeze(directory, cgroup.FREEZE_TIMEOUT_S)[0]


def _freeze(directory: str, timeout_s: float) -> tuple[HaltResult, list[int]]:
    """The result, and the threads in the group by then."""
    began = time.monotonic()
    try:
        frozen = cgroup.freeze(directory, timeout_s)
    except FileNotFoundError:  # the group went with the session
        return HaltResult(frozen=False, tasks=0, seconds=0.0), []
    seconds = time.monotonic() - began
    running = () if frozen else tuple(sorted(filter(_runs, cgroup.processes(directory))))
    tasks = cgroup.tasks(directory)
    return HaltResult(frozen=frozen, tasks=len(tasks), seconds=seconds, running=running), tasks


def kill(place: Place, session: str = "", timeout_s: float = cgroup.KILL_TIMEOUT_S) -> bool:
    """SIGKILL to the whole tree, halted or not, without letting any process run first; True when
    only the init is left, and that ends by itself.

    At level plain `launcher.end` would not do after a halt: the kernel and the init would continue
    what the shell leaves behind, so that it may clean up."""
    if place.cgroup:
        return cgroup.kill(place.cgroup, timeout_s)
    tree = Tree(place.pid, session)
    frozen, found = stop_tree.stop_tree(tree, timeout_s)
    everything = [Stopped(pid, stat.start_ticks) for pid, stat in found.items() if stat.runs]
    allowed = True
    # Children first: a stopped job whose shell ends before it would be continued by the kernel.
    for who in stop_tree.bottom_up(everything):
        try:
            stop_tree.send(who, signal.SIGKILL)
        except PermissionError:
            allowed = False
    return frozen and allowed


def _runs(pid: int) -> bool:
    """A frozen task sleeps interruptibly; one that is not frozen yet runs, or is in the kernel."""
    try:
        return any(procfs.task_state(pid, tid) in "RD" for tid in procfs.tasks(pid))
    except OSError:
        return False
