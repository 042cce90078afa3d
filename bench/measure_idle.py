"""500 idle shells: memory of daemon and keeper for each, and the CPU they all take together.

Memory is what supervisor, daemon and keepers grew by over an empty host (proportional set size of
anonymous and shared memory; libraries do not grow with sessions), per session.
That leaves out pages of a session's ring which the daemon has not mapped, so those are noted too.
The shells' own memory is the same under any system and is not counted. For tmux: its server."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.procfs import cpu_seconds, memfd_kb, proportional_kb
from bench.results import Row, Target
from bench.stage import Stage
from bench.systems import COMMAND_TIMEOUT_S, System

_SHELL = ["bash", "--norc"]
_SETTLE_S = 2.0


def measure(stage: Stage) -> list[Row]:
    count = stage.scale.idle_sessions
    memory: dict[str, float] = {}
    cpu: dict[str, float] = {}
    memory["holdfast"], cpu["holdfast"], note = _holdfast(stage)
    if stage.systems(("tmux",)):
        pids = (stage.tmux.server_pid(),)
        before = proportional_kb(pids)
        _start(stage.tmux, count)
        time.sleep(_SETTLE_S)
        memory["tmux"] = (proportional_kb(pids) - before) / count
        cpu["tmux"] = _cpu_percent(pids, stage.scale.idle_seconds)
    name = f"{count} idle sessions"
    return [
        Row(
            f"{name}: memory each",
            "kB",
            memory,
            target=Target("<=", 60, "value"),
            note=note,
        ),
        Row(f"{name}: CPU", "% of a core", cpu, target=Target("<", 1, "value")),
    ]


def _holdfast(stage: Stage) -> tuple[float, float, str]:
    hold, count = stage.holdfast, stage.scale.idle_sessions
    hold.start("idle-first", _SHELL)  # the launcher, and what the first session brings in
    hold.end("idle-first")
    time.sleep(_SETTLE_S)
    pids = hold.processes()
    before, rings = proportional_kb(pids), memfd_kb(pids)
    began = time.perf_counter()
    _start(hold, count)
    started_ms = (time.perf_counter() - began) / count * 1000
    time.sleep(_SETTLE_S)
    pids = hold.processes()  # now with the keepers
    each = (proportional_kb(pids) - before) / count
    unmapped = memfd_kb(pids) - rings - proportional_kb(pids, ("Shmem",))
    note = (
        f"with ring pages not mapped: {each + max(0.0, unmapped) / count:.0f} kB; "
        f"started one after the other, {started_ms:.0f} ms each"
    )
    return each, _cpu_percent(pids, stage.scale.idle_seconds), note


# They are not ended one by one: leaving the stage ends them all at once.
def _start(system: System, count: int) -> None:
    for number in range(count):
        system.start(f"idle{number}", _SHELL)


def _cpu_percent(pids: Sequence[int], seconds: float) -> float:
    assert seconds < COMMAND_TIMEOUT_S
    before, began = cpu_seconds(pids), time.perf_counter()
    time.sleep(seconds)
    return (cpu_seconds(pids) - before) / (time.perf_counter() - began) * 100
