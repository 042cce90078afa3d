"""Near ends are written soon, at a bounded rate, and the failing of a disk is said once."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.host.near_end import NearEnd, differences
from holdfast.host.near_end_writer import NearEndWriter
from holdfast.host.session.near_look import NearLook
from holdfast.model.errors import StorageFailed
from holdfast.model.ids import SessionId
from holdfast.model.info import LastKnown
from holdfast.model.limits import NEAR_END_AT_ONCE, NEAR_END_EVERY_S, NEAR_END_SETTLE_S
from holdfast.model.size import Size
from holdfast.model.state import SessionState
from unit.virtual_time import VirtualLoop

PAINT = NearEnd(LastKnown(0.0, SessionState.PROMPT, "/here"), Size(80, 24), "", 0, b"x", 0, b"")


class Live:
    """As much of a session as the writer asks about itself."""

    def __init__(self, number: int) -> None:
        self.spec = type("Spec", (), {"id": SessionId.of_key(number.to_bytes(32))})()
        self.is_closed = False
        over = {"is_over": False, "is_lost": False}
        self.core = type("Core", (), {"state": type("State", (), over)()})()


class Disk:
    """Keeps what is written, and when."""

    def __init__(self) -> None:
        self.writes: list[tuple[float, SessionId]] = []
        self.full = False
        self.forgotten: list[SessionId] = []

    def save_near_end(self, session: SessionId, near: NearEnd) -> None:
        if self.full:
            raise StorageFailed("no space left")
        self.writes.append((asyncio.get_running_loop().time(), session))

    def near_end(self, session: SessionId) -> NearEnd | None:
        return None

    def forget_near_end(self, session: SessionId) -> None:
        self.forgotten.append(session)


async def inline(call: Callable[[Any], None], looks: Any) -> None:
    call(looks)


def in_virtual_time(test: Callable[[NearEndWriter, Disk], Any]) -> Disk:
    loop, disk = VirtualLoop(), Disk()
    asyncio.set_event_loop(loop)

    async def main() -> None:
        def look(_: object) -> NearLook:
            return NearLook(PAINT, "", "", 0, "/first")

        writer = NearEndWriter(disk, look, in_thread=inline)
        await test(writer, disk)
        writer.close()

    try:
        loop.run_until_complete(main())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    return disk


def test_a_session_that_prints_all_the_time_is_written_at_a_bounded_rate() -> None:
    live: Any = Live(1)

    async def busy(writer: NearEndWriter, _: Disk) -> None:
        for _tick in range(300):  # a minute
            writer.changed(live)
            await asyncio.sleep(0.2)

    times = [at for at, _ in in_virtual_time(busy).writes]
    assert 60 / (NEAR_END_EVERY_S + 2 * NEAR_END_SETTLE_S) <= len(times) <= 60 / NEAR_END_EVERY_S
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert min(gaps) >= NEAR_END_EVERY_S


def test_the_first_change_is_on_disk_within_the_settling_time_and_silence_costs_nothing() -> None:
    live: Any = Live(1)

    async def quiet(writer: NearEndWriter, disk: Disk) -> None:
        writer.changed(live)
        await asyncio.sleep(NEAR_END_SETTLE_S + 0.01)
        assert len(disk.writes) == 1
        await asyncio.sleep(3600)
        assert len(disk.writes) == 1

    in_virtual_time(quiet)


def test_many_sessions_are_written_in_rounds_and_none_is_left_out() -> None:
    lives: Any = [Live(number) for number in range(3 * NEAR_END_AT_ONCE)]

    async def all_at_once(writer: NearEndWriter, disk: Disk) -> None:
        for live in lives:
            writer.changed(live)
        await asyncio.sleep(NEAR_END_SETTLE_S + 0.01)
        assert len(disk.writes) == NEAR_END_AT_ONCE
        await asyncio.sleep(3 * NEAR_END_SETTLE_S)

    disk = in_virtual_time(all_at_once)
    assert {session for _, session in disk.writes} == {live.spec.id for live in lives}


def test_a_session_that_ends_while_it_is_written_leaves_nothing() -> None:
    live: Any = Live(1)

    async def ends(writer: NearEndWriter, disk: Disk) -> None:
        writer.changed(live)
        live.is_closed = live.core.state.is_over = True
        await asyncio.sleep(NEAR_END_SETTLE_S + 0.01)
        assert disk.writes == [] and disk.forgotten == [live.spec.id]

    in_virtual_time(ends)


def test_a_full_disk_is_reported_once_and_written_again_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live: Any = Live(1)

    async def full(writer: NearEndWriter, disk: Disk) -> None:
        disk.full = True
        for _tick in range(30):
            writer.changed(live)
            await asyncio.sleep(1)
        assert len([each for each in caplog.records if each.levelno >= logging.ERROR]) == 1
        disk.full = False
        writer.changed(live)
        await asyncio.sleep(NEAR_END_EVERY_S + 2 * NEAR_END_SETTLE_S)
        assert disk.writes

    in_virtual_time(full)


def test_a_tree_that_is_gone_keeps_the_directory_it_was_last_seen_in() -> None:
    gone = PAINT.replace(known=PAINT.known.replace(cwd="", state=SessionState.WORKING))
    looked = NearLook(gone, "", "", 0, "/first")
    assert looked.finished(lambda: PAINT).known.cwd == "/here"
    assert looked.finished(lambda: PAINT).known.state is SessionState.PROMPT
    assert looked.finished(lambda: None).known.cwd == "/first"


def test_only_what_the_session_changed_counts_as_different() -> None:
    before = {"A": "1", "B": "2", "HOLDFAST_SESSION": "x"}
    assert differences(before, {"A": "1", "C": "3", "HOLDFAST_SESSION": "y"}) == ("B", "C")
    assert differences(before, None) == ()
