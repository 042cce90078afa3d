"""The supervisor: what it must survive, without a host around it."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

from holdfast.keeper import channel
from holdfast.keeper import supervisor as supervisor_module
from holdfast.keeper.supervisor import Supervisor


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    return Supervisor(str(tmp_path), 0o600, None)


def test_a_daemon_that_cannot_be_started_is_tried_again(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    gc.collect()  # so that nothing of another test closes its own meanwhile
    open_before = os.listdir("/proc/self/fd")
    supervisor.try_daemon()
    assert supervisor.daemon is None
    assert supervisor.start_at is not None
    assert len(os.listdir("/proc/self/fd")) == len(open_before)


def test_a_message_that_makes_no_sense_is_no_death(supervisor: Supervisor) -> None:
    ours, theirs = channel.pair()
    ours.setblocking(False)
    supervisor.channel = ours
    theirs.send(b"\xff\xff\xff\xff not a message")
    supervisor.on_daemon()
    channel.send(theirs, {"do": "relay", "words": ["and nothing else"]})
    supervisor.on_daemon()
    channel.send(theirs, {"do": "ready"})
    supervisor.on_daemon()
    assert supervisor.was_ready
    for end in (ours, theirs):
        end.close()


def test_news_for_a_daemon_that_does_not_read_do_not_pile_up(supervisor: Supervisor) -> None:
    ours, theirs = channel.pair()
    ours.setblocking(False)
    supervisor.channel = ours
    with pytest.raises(BlockingIOError):
        while True:
            channel.send(ours, {"news": "before"})
    for number in range(100):
        supervisor.tell({"news": "relay", "port": number})
        supervisor.tell({"news": "terminate"})
    assert [each["news"] for each in supervisor.outgoing] == ["relay", "terminate"]
    assert supervisor.outgoing[0]["port"] == 99
    for end in (ours, theirs):
        end.close()


@pytest.mark.parametrize("before", ["", "7\n", "4194303\n"], ids=["none", "shorter", "longer"])
def test_whoever_reads_the_lock_while_the_next_one_takes_it_finds_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """After each step of it; but for the very first one in this home, before which it is empty."""
    lock, seen = tmp_path / "supervisor.lock", []

    def watched(name: str) -> None:
        step = getattr(os, name)

        def then_read(*arguments: object) -> object:
            result = step(*arguments)
            seen.append(lock.read_text().splitlines()[:1])
            return result

        monkeypatch.setattr(os, name, then_read)

    if before:
        lock.write_text(before)
    for name in ("write", "pwrite", "ftruncate"):
        watched(name)
    fd = supervisor_module._lock(str(tmp_path))
    assert fd is not None
    os.close(fd)
    assert seen and all(line and line[0].isdecimal() for line in seen)
    assert lock.read_text() == f"{os.getpid()}\n"
