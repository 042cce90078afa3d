"""A program's own state at the levels with namespaces: its process id is the one inside (M2)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from privileged.checkpointing import movable_host
from process.commanding import Hold
from process.waiting import until

COUNTER = str(Path(__file__).resolve().parents[2] / "examples" / "keep_a_counter.py")


@pytest.fixture
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


def went_on(hold: Hold) -> list[str]:
    """From which count, each time."""
    return re.findall(r"goes on at (\d+)", hold.ok("tail", "counter"))


def went_on_so_often(hold: Hold, times: int) -> bool:
    return len(went_on(hold)) == times


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("level", ["contained", "movable"])
def test_a_program_in_a_namespace_is_asked_and_goes_on(hold: Hold, level: str) -> None:
    words = ("run", "-d", "--name", "counter", "--level", level, "--")
    session = hold.ok(*words, sys.executable, COUNTER, "--serve").strip()
    hold.ok("wait", "counter", "--for", "text:count 5", "--timeout", "20")
    for epoch in (2, 3):  # and once more, from its second life
        assert hold.json("checkpoint", "counter", "--end")["kind"] == "application"
        done = hold.json("restore", "counter")
        assert (done["id"], done["epoch"], done["level"]) == (session, epoch, level)
        until("it does not go on", partial(went_on_so_often, hold, epoch - 1))
    points = [int(each) for each in went_on(hold)]
    assert 5 <= points[0] <= points[1]
    assert hold.json("verify", session)["verdict"] == "intact"
