"""The supervisor: what it must survive, without a host around it."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

from holdfast.keeper import channel
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
