"""What tests/whole_run.py does, shown on small directories of tests that fail on purpose."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
BOUND_S = 100

FAILS_ONCE = """
from pathlib import Path
import pytest

def fail_once(name):
    mark = Path(__file__).with_name(name)
    if not mark.exists():
        mark.touch()
        raise RuntimeError(f"the first try of {name}")
"""


class Directory:
    """A repository with nothing but tests, and what running them says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tests").mkdir()
        # What is installed here but for xdist is not needed, and takes most of the time of a start.
        plugins = "addopts = -p xdist.plugin -p no:cacheprovider"
        (root / "pytest.ini").write_text(f"[pytest]\ntestpaths = tests\n{plugins}\n")
        (root / "tests" / "conftest.py").write_text('pytest_plugins = ["whole_run"]\n')
        self.status = -1
        self.output = ""

    def holds(self, name: str, text: str) -> None:
        (self.root / "tests" / name).write_text(FAILS_ONCE + text)

    def run(self, *words: str) -> None:
        # Nothing of the run that this test is part of may reach the one that it looks at.
        env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
        env |= {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=self.root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=BOUND_S,
        )
        self.status, self.output = done.returncode, done.stdout

    @property
    def last(self) -> str:
        """The closing line, without how long it took."""
        return re.sub(r" in \d+ s", "", self.output.splitlines()[-1])

    @property
    def flaky(self) -> list[str]:
        return (self.root / "build" / "flaky.txt").read_text().splitlines()


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_every_outcome_is_counted_in_the_last_line(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
def test_one(): pass
@pytest.mark.parametrize("n", range(3))
def test_several(n): pass
def test_not_here(): pytest.skip("not here")
@pytest.mark.xfail(strict=True)
def test_known(): assert False
""",
    )
    directory.run("-n", "2")
    assert directory.last == "suite: 4 passed, 0 failed, 0 flaky, 1 skipped, 1 xfailed"
    assert directory.status == 0
    assert directory.flaky == []


def test_what_passes_alone_is_listed_as_flaky_and_the_run_passes(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
@pytest.mark.parametrize("text", ["a b", "[x]::y", "ü"])
def test_call(text): fail_once("call" + str(len(text)))

@pytest.fixture
def broken_once(): fail_once("setup")
def test_setup(broken_once): pass

@pytest.fixture
def left_once():
    yield
    fail_once("teardown")
def test_teardown(left_once): pass
def test_good(): pass
""",
    )
    directory.run("-n", "1")
    assert directory.last == "suite: 1 passed, 0 failed, 5 flaky, 0 skipped, 0 xfailed"
    assert directory.status == 0
    assert directory.flaky == [
        "tests/test_a.py::test_call[a b]",
        "tests/test_a.py::test_call[[x]::y]",
        "tests/test_a.py::test_call[\\xfc]",
        "tests/test_a.py::test_setup",
        "tests/test_a.py::test_teardown",
    ]
    closing = directory.output.splitlines()[-6:-1]
    assert [line.rpartition("alone: ")[2] for line in closing] == directory.flaky


def test_what_fails_twice_fails_the_run_and_shows_both_tracebacks(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
def test_never():
    fail_once("never")
    raise RuntimeError("the second try")
def test_once(): fail_once("once")
""",
    )
    directory.run("-n", "1")
    assert directory.last == "suite: 0 passed, 1 failed, 1 flaky, 0 skipped, 0 xfailed"
    assert directory.status == 1
    assert directory.flaky == ["tests/test_a.py::test_once"]
    assert "E           RuntimeError: the first try of never" in directory.output
    assert "E       RuntimeError: the second try" in directory.output
    assert "failed: tests/test_a.py::test_never" in directory.output.splitlines()


def test_what_is_skipped_the_second_time_has_failed(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
def test_gone():
    fail_once("gone")
    pytest.skip("not a second time")
""",
    )
    directory.run("-n", "1")
    assert directory.last == "suite: 0 passed, 1 failed, 0 flaky, 0 skipped, 0 xfailed"
    assert directory.status == 1


def test_the_second_run_has_fixtures_of_its_own(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
@pytest.fixture(scope="module")
def shared():
    fail_once("shared")
    return []
def test_one(shared): shared.append(1); assert len(shared) == 1
def test_two(shared): shared.append(2); assert len(shared) == 1
""",
    )
    directory.run("-n", "1")
    assert directory.last == "suite: 0 passed, 0 failed, 2 flaky, 0 skipped, 0 xfailed"
    assert directory.status == 0


def test_six_that_are_flaky_fail_the_run(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
@pytest.mark.parametrize("n", range(6))
def test_call(n): fail_once(str(n))
""",
    )
    directory.run("-n", "1")
    counts = "suite: 0 passed, 0 failed, 6 flaky, 0 skipped, 0 xfailed"
    assert directory.last == f"{counts}: more than 5 are flaky"
    assert directory.status == 1
    assert len(directory.flaky) == 6


def test_where_too_many_fail_nothing_is_run_again(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
@pytest.mark.parametrize("n", range(26))
def test_call(n): fail_once(str(n))
""",
    )
    directory.run("-n", "1")
    counts = "suite: 0 passed, 26 failed, 0 flaky, 0 skipped, 0 xfailed"
    assert directory.last == f"{counts}: more than 25 failed, so none was run again"
    assert directory.status == 1


def test_a_worker_that_crashes_fails_the_run(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        """
def test_crash():
    import os
    if not Path(__file__).with_name("crash").exists():
        Path(__file__).with_name("crash").touch()
        os.kill(os.getpid(), 9)
def test_good(): pass
""",
    )
    directory.run("-n", "2")
    counts = "suite: 1 passed, 1 failed, 0 flaky, 0 skipped, 0 xfailed"
    assert directory.last == f"{counts}: a worker crashed"
    assert directory.status == 1


def test_a_run_that_is_interrupted_fails_and_says_so(directory: Directory) -> None:
    directory.holds(
        "test_a.py",
        f"""
def test_good(): pass
def test_interrupted():
    import os, time
    os.kill(os.getppid(), {int(signal.SIGINT)})
    time.sleep(5)
def test_never_begun(): pass
""",
    )
    directory.run("-n", "2")
    assert directory.last.endswith("0 failed, 0 flaky, 0 skipped, 0 xfailed: interrupted")
    assert directory.status == pytest.ExitCode.INTERRUPTED


def test_a_file_that_cannot_be_collected_fails_the_run(directory: Directory) -> None:
    directory.holds("test_a.py", 'fail_once("collected")')
    directory.holds("test_b.py", "def test_good(): pass")
    directory.run("-n", "2")
    assert directory.last.endswith(": not everything could be collected")
    assert directory.status not in (0, -1)


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_a_file_that_is_named_runs_as_usual(directory: Directory, words: tuple[str, ...]) -> None:
    directory.holds("test_a.py", 'def test_once(): fail_once("once")')
    directory.run(*words, "tests/test_a.py")
    assert directory.status == 1
    assert "suite:" not in directory.output
    assert not (directory.root / "build").exists()


def test_the_longest_files_start_first_and_what_was_measured_is_kept(directory: Directory) -> None:
    for name in ("short", "long", "middle", "new"):
        directory.holds(
            f"test_{name}.py",
            f"""
def test_first():
    with open({str(directory.root / "order")!r}, "a") as order: order.write("{name} first\\n")
def test_second():
    with open({str(directory.root / "order")!r}, "a") as order: order.write("{name} second\\n")
""",
        )
    known = {"short": 1.0, "long": 30.5, "middle": 7.0, "gone": 99.0}
    table = {f"tests/test_{name}.py": seconds for name, seconds in known.items()}
    (directory.root / "tests" / "durations.json").write_text(json.dumps(table))
    directory.run("-n", "1")
    assert directory.status == 0
    order = (directory.root / "order").read_text().splitlines()
    names = ("new", "long", "middle", "short")
    assert order == [f"{name} {each}" for name in names for each in ("first", "second")]
    measured = json.loads((directory.root / "build" / "durations.json").read_text())
    assert measured.keys() == {f"tests/test_{name}.py" for name in names}
    assert all(0 <= seconds < BOUND_S for seconds in measured.values())
    assert measured["tests/test_long.py"] != table["tests/test_long.py"]
