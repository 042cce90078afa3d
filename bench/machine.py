"""What the numbers were taken on."""

from __future__ import annotations

import os
import platform
import time

from bench.stage import Stage


def describe(stage: Stage) -> dict[str, object]:
    """Machine, versions and load, for the JSON file and the document."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
        "versions": {system.name: system.version() for system in stage.systems()},
        "missing": list(stage.missing),
    }


def _cpu_model() -> str:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model"):
                return value.strip()
    return platform.machine()
