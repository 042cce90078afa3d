"""Every example runs, against a real host, and prints what it says it does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from process.acting import add_actor
from process.commanding import PATIENCE_S, Hold

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PRINTED = {
    "run_and_follow.py": r"step 1\nstep 2\nstep 3\nstatus 1 after \d+\.\d s, journal \d+\n",
    "deploy_once.py": r"deployed as \d+\nthe same deployment\n",
    "answer_a_question.py": (r"it asks: Drop the table\? \[y/N\]\nit ended: exit 0\nyou said no\n"),
    "wait_for_a_server.py": r"pid \d+ \(python3?\S*\) listens\nand is gone again\n",
    "share_the_turn.py": r"halted: True\nstopped: let me look first \(turn_lost\)\n",
    "autonomy_by_record.py": (
        r"(approved: score 1\.00\n){3}by itself: score 1\.00\n"
        r"it breaks something: score 0\.\d+\napproved again\n"
    ),
    "keep_a_counter.py": r"goes on at \d+\n",
    "plain_script.py": r"cd /tmp: 0\npwd: 0 /tmp\nended: signal SIGHUP\n",
}


@pytest.fixture(scope="module")
def otto(host_home: Hold) -> str:
    """The agent that one of them speaks of."""
    return add_actor(host_home, "otto", "execute", "--all")


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_does_what_it_says(host_home: Hold, otto: str, name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env=host_home.env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(PRINTED[name], done.stdout.replace("\r", "")), done.stdout
    # So that it can be run again: its name is free, or it finds its own session.
    assert {each["name"] for each in host_home.json("ls")} <= {"deploys"}
