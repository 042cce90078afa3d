"""The whole suite runs in several processes: most of it waits for other processes, not for a CPU.

Only where whole directories are run, and xdist is there. What is named by its file runs here, as
under `-n 0`, `-p no:xdist`, `-s` or `--pdb`; `-n` with a number is always obeyed. A file is never
divided (`loadfile`): its tests may share a host, and those of one file never run at the same time.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

WORKERS = 4  # two for each core of a small machine: half of the time a test waits
# Files that take longest are begun first, so that no worker is left alone with one at the end.
FIRST = ("simulation", "e2e", "privileged", "faults", "process", "contract")
TESTS = Path(__file__).parent

# Whatever started the suite (`nohup`, a shell in the background) may have these ignored, and every
# program inherits that: none in a test could be interrupted or hung up.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(_number, signal.SIG_DFL)

# `hold` is started thousands of times here; compiled anew, each start takes four times as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A fish that finds no such directory reads every manual page of the machine, in the background, for
# minutes: each that a test starts would.
_DATA = Path(tempfile.gettempdir()) / f"hf-data-{os.getuid()}"
(_DATA / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
os.environ["XDG_DATA_HOME"] = str(_DATA)

# How long an example takes says how busy the machine is, not whether the statement is true of it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Before xdist looks how many it is to start."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if option.numprocesses is None and _is_worth_it(config):
        option.numprocesses = WORKERS
    if option.numprocesses and option.dist == "no":
        option.dist = "loadfile"
        option.loadscopereorder = False  # ours is the better one


def _is_worth_it(config: pytest.Config) -> bool:
    by_hand = config.option.usepdb or config.option.capture == "no" or config.option.collectonly
    return not by_hand and any(Path(word).is_dir() for word in config.args)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)  # stable: within a directory all stays as it is


def _rank(item: pytest.Item) -> int:
    found = (rank for rank, name in enumerate(FIRST) if TESTS / name in item.path.parents)
    return next(found, len(FIRST))
