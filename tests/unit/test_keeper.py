"""The keeper: what it must survive, without a host around it."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

from holdfast.keeper import channel, custody
from holdfast.keeper.__main__ import Keeper


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(str(tmp_path), 0o600, None)


def test_a_daemon_that_cannot_be_started_is_tried_again(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    gc.collect()  # so that nothing of another test closes its own meanwhile
    open_before = os.listdir("/proc/self/fd")
    keeper.try_daemon()
    assert keeper.daemon is None
    assert keeper.start_at is not None
    assert len(os.listdir("/proc/self/fd")) == len(open_before)


def test_a_message_that_makes_no_sense_is_no_death(keeper: Keeper) -> None:
    ours, theirs = channel.pair()
    ours.setblocking(False)
    keeper.channel = ours
    theirs.send(b"\xff\xff\xff\xff not a message")
    keeper.on_daemon()
    channel.send(theirs, {"do": "deposit", "session": "x", "pid": 1, "names": ["too", "few"]})
    keeper.on_daemon()
    channel.send(theirs, {"do": "ready"})
    keeper.on_daemon()
    assert keeper.was_ready
    for end in (ours, theirs):
        end.close()


def test_news_for_a_daemon_that_does_not_read_do_not_pile_up(keeper: Keeper) -> None:
    ours, theirs = channel.pair()
    ours.setblocking(False)
    keeper.channel = ours
    with pytest.raises(BlockingIOError):
        while True:
            channel.send(ours, {"news": "before"})
    for number in range(100):
        keeper.tell({"news": "relay", "port": number})
        keeper.tell({"news": "terminate"})
    keeper.tell({"news": "ended", "session": "x", "status": {"code": 0}})
    assert [each["news"] for each in keeper.outgoing] == ["relay", "terminate", "ended"]
    assert keeper.outgoing[0]["port"] == 99
    for end in (ours, theirs):
        end.close()


def test_a_status_of_long_ago_is_not_taken_for_a_new_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = custody.Custody()
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    held.ended(4711, {"code": 1})
    assert held.deposit("soon", 4711, {}, b"").status == {"code": 1}
    held.ended(4711, {"code": 1})
    now += 3600
    assert held.deposit("late", 4711, {}, b"").status is None


def test_descriptors_arrive_whole_or_not_at_all() -> None:
    ours, theirs = channel.pair()
    reader, writer = os.pipe()
    channel.send(ours, {"do": "x"}, b"blob", reader, writer)
    parcel = channel.receive(theirs)
    assert parcel is not None
    assert (parcel.head, parcel.blob, len(parcel.fds)) == ({"do": "x"}, b"blob", 2)
    os.write(parcel.fds[1], b"through")
    assert os.read(reader, 7) == b"through"
    for fd in (reader, writer, *parcel.fds):
        os.close(fd)
    ours.close()
    assert channel.receive(theirs) is None
    theirs.close()
