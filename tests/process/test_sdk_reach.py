"""The SDK through a relay: the same calls, and coming back when relay or daemon are lost."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from holdfast import Piece, Result, errors, events
from process.reaching import Faraway, pid_of_daemon
from process.sdking import PATIENCE_S, lines_of, reached, run, shell


@pytest.fixture(scope="module")
def faraway() -> Iterator[Faraway]:
    made = Faraway()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.requirement("R2", "R6")
def test_a_session_elsewhere_is_used_as_one_here(faraway: Faraway) -> None:
    async def work() -> Result:
        async with reached(faraway.client, on="box") as hold:
            session = await shell(hold, "elsewhere")
            assert session.name in [each.name for each in await hold.sessions()]
            at = await session.type("echo typed", enter=True)
            await session.wait_for(text="^typed$", since=at, timeout=PATIENCE_S)
            await session.wait_for(state="prompt", timeout=PATIENCE_S)
            async with session.turn("for a moment", timeout=PATIENCE_S):
                result = await session.submit("echo out; (exit 3)", key="k")
            assert result == await session.submit("echo out; (exit 3)", key="k")
            assert (await session.graph()).processes
            watching = asyncio.create_task(session.wait_for(ended=True, timeout=PATIENCE_S))
            assert b"out\r\n" in await _until(session.output(0), b"out\r\n")
            assert await session.end() == await watching
            return result

    result = run(work())
    assert (result.status, result.output) == (3, "out\n")


async def _until(pieces: AsyncIterator[Piece], wanted: bytes) -> bytes:
    seen = b""
    async for piece in pieces:
        seen += piece.data
        if wanted in seen:
            return seen
    return seen


@pytest.mark.requirement("M6", "R6")
def test_a_command_elsewhere_runs_once_though_daemon_and_relay_are_killed_under_it(
    faraway: Faraway, tmp_path: Path
) -> None:
    ran, go = tmp_path / "ran", tmp_path / "go"
    os.mkfifo(go)

    async def work() -> None:
        async with reached(faraway.client, on="box") as hold:
            session = await shell(hold, "killed")
            job = await session.start(f"echo ran >> {ran}; echo begun; cat {go}; echo ended")
            told: list[events.Event] = []
            watching = asyncio.create_task(_collect(session.events(), told))
            reading = asyncio.create_task(_until(session.output(0), b"between\r\nended\r\n"))
            os.kill(await asyncio.to_thread(pid_of_daemon, faraway.host), signal.SIGKILL)
            await asyncio.to_thread(faraway.until_reached, 2)
            faraway.relay.process.kill()
            await asyncio.to_thread(faraway.relay_again)
            await asyncio.to_thread(go.write_text, "between\n")
            result = await job.result(PATIENCE_S)
            read = await reading
            assert result.output == "begun\nbetween\nended\n"
            assert read.count(b"begun\r\nbetween\r\nended\r\n") == 1
            assert read.count(b"between\r\n") == 1
            await session.end()
            await watching
            assert isinstance(told[-1], events.Ended)

    run(work())
    assert lines_of(ran) == ["ran"]


async def _collect(stream: AsyncIterator[events.Event], told: list[events.Event]) -> None:
    async for event in stream:
        told.append(event)


def test_a_machine_that_nobody_joined_is_said_at_once(faraway: Faraway) -> None:
    async def work() -> None:
        async with reached(faraway.client, on="nowhere"):
            pass

    with pytest.raises(errors.NoSuchMachine):
        run(work())
