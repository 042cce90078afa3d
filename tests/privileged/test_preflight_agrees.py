"""M2: `hold can-move` says beforehand what CRIU then does: what it calls movable is checkpointed;
what it says blocks is refused, and runs on."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

import pytest

from privileged.checkpointing import movable_host, until_screen
from privileged.test_preflight import CALL, MADE, STAY
from process.commanding import Hold

MOVABLE = {
    "nothing special": "",
    "descriptors of every kind that CRIU saves": (
        "import select, signal, socket, tempfile\n"
        "kept = [select.epoll(), socket.socketpair(), socket.create_server(('127.0.0.1', 0)),\n"
        "        os.pipe(), os.memfd_create('x'), os.pidfd_open(os.getpid()),\n"
        "        os.eventfd(0), open('/dev/null'), tempfile.TemporaryFile(dir='/var/tmp')]\n"
        "kept[-1].truncate(65 << 20)  # it has nothing on disk"
    ),
    "a child and threads": (
        "import threading\n"
        "if os.fork() == 0: time.sleep(1000)\n"
        "[threading.Thread(target=time.sleep, args=(1000,)).start() for _ in range(3)]"
    ),
}


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


def started(hold: Hold, name: str, code: str) -> None:
    program = CALL + code + STAY
    words = ("--level", "movable", "--gate", "off", "--", sys.executable, "-c", program)
    hold.ok("run", "-d", "--name", name, *words)
    until_screen(hold, name, "ready")


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("what", MOVABLE)
def test_what_is_called_movable_is_checkpointed(hold: Hold, what: str) -> None:
    name = f"m{list(MOVABLE).index(what)}"
    started(hold, name, MOVABLE[what])
    answer = hold.json("can-move", name)
    assert answer["movable"], answer
    made = hold.json("checkpoint", name)
    assert made["bytes"] > 0
    # The estimate is of an idle machine: only its order is promised here.
    assert 0.2 < answer["estimate"]["bytes"] / made["bytes"] < 5


@pytest.mark.requirement("M2")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="calls by their x86-64 numbers")
@pytest.mark.parametrize("what", MADE)
def test_what_is_said_to_block_is_refused_and_runs_on(hold: Hold, what: str) -> None:
    name = f"b{list(MADE).index(what)}"
    started(hold, name, MADE[what])
    answer = hold.json("can-move", name)
    named = [finding["what"] for each in answer["processes"] for finding in each["findings"]]
    assert not answer["movable"] and any(what in each for each in named), answer
    hold.fails("checkpoint_failed", "checkpoint", name)
    assert hold.json("show", name)["state"] in ("working", "input")


@pytest.mark.requirement("M2")
def test_asking_takes_no_more_than_half_of_what_it_predicts(hold: Hold) -> None:
    """100 MB, on the same machine in the same seconds; without what starting `hold` takes, which
    is the same for both."""
    started(hold, "heap", "kept = [os.urandom(4096) for _ in range(25_000)]")
    base = min(_seconds(hold, "show", "heap") for _ in range(3))
    asked = min(_seconds(hold, "can-move", "heap", "--json") for _ in range(3)) - base
    dumped = _seconds(hold, "checkpoint", "heap", "--json") - base
    assert asked < 0.5 * dumped, f"asking took {asked:.3f} s, the checkpoint {dumped:.3f} s"


def _seconds(hold: Hold, *words: str) -> float:
    began = time.monotonic()
    hold.ok(*words)
    return time.monotonic() - began
