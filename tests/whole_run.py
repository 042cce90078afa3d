"""A run of the whole suite, or of a whole directory: in several processes, the longest files first,
what failed once more alone, and a closing line with counts.

Only where directories are run and xdist is there: a file that is named runs in one process, as does
everything under `-n 0`, `-p no:xdist`, `-s` or `--pdb`, and nothing of it is run twice; `-n` with a
number is always obeyed. A file is never divided (`loadfile`): its tests may share a host, and those
of one file never run at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import pytest

WORKERS = 4  # two for each core of a small machine: half of the time a test waits
FLAKY_MAX = 5  # more than a busy machine explains: the run fails
SECOND_RUN_MAX = 25  # more failures than this are not chance, and none of them is run again
SECOND_RUN_S = 900  # for one test; its own bound ends it long before, unless its process hangs
# Files that no run has measured go before the others, by directory: a new one may be a long one.
FIRST = ("simulation", "e2e", "privileged", "faults", "process", "contract")

# Relative to the root of the repository.
DURATIONS = Path("tests/durations.json")  # seconds by file, committed; the order comes from it
MEASURED = Path("build/durations.json")  # the same with what this run measured
FLAKY = Path("build/flaky.txt")  # node ids, one on each line; empty if there were none

INCOMPLETE: dict[int | None, str] = {
    pytest.ExitCode.INTERRUPTED: "interrupted",
    pytest.ExitCode.INTERNAL_ERROR: "internal error of pytest",
    pytest.ExitCode.NO_TESTS_COLLECTED: "no tests were found",
}


class FirstRun:
    """What the workers report, one outcome for each test."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.broken = ""

    def having(self, outcome: str) -> list[str]:
        return [nodeid for nodeid, each in self.outcomes.items() if each == outcome]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid.partition("::")[0]] += report.duration
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
        elif report.skipped:
            outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            self.outcomes.setdefault(report.nodeid, outcome)
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.broken = "not everything could be collected"

    def pytest_testnodedown(self, error: object) -> None:
        if error:
            self.broken = self.broken or "a worker crashed"


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, int | None, int | None]:
    """Around everything: before xdist looks how many to start, and after all workers have ended."""
    _spread(config)
    if not (getattr(config.option, "numprocesses", None) and _has_directory(config)):
        return (yield)
    first = FirstRun()
    config.pluginmanager.register(first)
    began = time.monotonic()
    status = yield
    return _close(config.rootpath, first, status, began)


def _spread(config: pytest.Config) -> None:
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or "PYTEST_XDIST_WORKER" in os.environ:
        return
    by_hand = option.usepdb or option.capture == "no" or option.collectonly
    if option.numprocesses is None and not by_hand and _has_directory(config):
        option.numprocesses = WORKERS
    if option.numprocesses and option.dist == "no":
        option.dist = "loadfile"
        option.maxworkerrestart = 0  # a crash fails the run anyway, and could leave it waiting
        option.loadscopereorder = False  # ours is the better one


def _has_directory(config: pytest.Config) -> bool:
    return any(Path(word).is_dir() for word in config.args)


def _close(root: Path, first: FirstRun, status: int | None, began: float) -> int | None:
    broken = first.broken or INCOMPLETE.get(status, "")
    failed, flaky = first.having("failed"), list[str]()
    if status and not failed and not broken:
        broken = f"pytest ended with status {int(status)}"
    if not broken and len(failed) > SECOND_RUN_MAX:
        broken = f"more than {SECOND_RUN_MAX} failed, so none was run again"
    if failed and not broken:
        print("\nwhat failed is run once more, alone", flush=True)
        try:
            flaky = [nodeid for nodeid in failed if _passes_alone(root, nodeid)]
        except KeyboardInterrupt:
            broken = "interrupted"
    if len(flaky) > FLAKY_MAX:
        broken = f"more than {FLAKY_MAX} are flaky"
    if broken:
        status = status or pytest.ExitCode.TESTS_FAILED  # a worker that died idle failed no test
    elif flaky == failed:
        status = pytest.ExitCode.OK

    (root / FLAKY).parent.mkdir(exist_ok=True)
    (root / FLAKY).write_text("".join(f"{nodeid}\n" for nodeid in flaky))
    if status == pytest.ExitCode.OK:
        _keep_durations(root, first.seconds)
    for nodeid in failed:
        print("flaky, failed once and then passed alone:" if nodeid in flaky else "failed:", nodeid)
    counts = Counter(first.outcomes.values())
    print(
        f"suite: {counts['passed']} passed, {len(failed) - len(flaky)} failed, {len(flaky)} flaky,"
        f" {counts['skipped']} skipped, {counts['xfailed']} xfailed"
        f" in {time.monotonic() - began:.0f} s" + (f": {broken}" if broken else ""),
        flush=True,
    )
    return status


def _passes_alone(root: Path, nodeid: str) -> bool:
    """In a process of its own, so that it shares no fixture with what ran before."""
    with TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        command += [f"--junitxml={report}", nodeid]
        try:
            subprocess.run(command, cwd=root, check=True, timeout=SECOND_RUN_S)
        except subprocess.SubprocessError:
            return False
        # One that is skipped now has not passed.
        suite = ElementTree.parse(report).getroot().find("testsuite")
        return suite is not None and (suite.get("tests"), suite.get("skipped")) == ("1", "0")


def _keep_durations(root: Path, measured: dict[str, float]) -> None:
    """A run of one directory keeps what is known of the others."""
    known = {**_durations(root), **measured}
    kept = {name: round(known[name], 1) for name in sorted(known) if (root / name).exists()}
    (root / MEASURED).write_text(json.dumps(kept, indent=1) + "\n")


def _durations(root: Path) -> dict[str, float]:
    path = root / DURATIONS
    return json.loads(path.read_text()) if path.exists() else {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, so that no worker is left alone with one at the end."""
    durations = _durations(config.rootpath)

    def rank(item: pytest.Item) -> tuple[float, int]:
        name = item.nodeid.partition("::")[0]
        if name in durations:
            return -durations[name], 0
        directories = Path(name).parts
        found = (place for place, each in enumerate(FIRST) if each in directories)
        return float("-inf"), next(found, len(FIRST))

    items.sort(key=rank)  # stable: a file stays together, and in order
