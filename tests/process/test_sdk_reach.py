"""The SDK through a relay: the same calls, and coming back when relay or daemon are lost."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from holdfast import Piece, Result, errors, events
from holdfast.model.limits import RELAY_DRAIN_S
from holdfast.sdk.connection import target_host
from holdfast.sdk.reach.machines import Machine
from process.commanding import Hold
from process.reaching import Faraway, pid_of_daemon
from process.relaying import RelayProcess
from process.sdking import PATIENCE_S, lines_of, reached, run, shell


@pytest.fixture(scope="module")
def faraway() -> Iterator[Faraway]:
    with closing(Faraway()) as made:
        yield made


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
            by_id = f"{session.id}@{faraway.relay.url}"
            async with reached(faraway.client, on=by_id) as there:
                assert (await there.session(session.id)).name == "elsewhere"
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


@pytest.mark.requirement("F5", "M6")
def test_a_relay_that_drains_is_left_soon_and_what_is_typed_meanwhile_is_typed_once(
    faraway: Faraway,
) -> None:
    """With a host and an operator as they are. First there is another relay; then none, until the
    first is there again."""

    async def drained(relay: RelayProcess, within_s: float) -> None:
        began = time.monotonic()
        relay.signal(signal.SIGTERM)
        assert await asyncio.to_thread(relay.process.wait, PATIENCE_S) == 0
        assert time.monotonic() - began < within_s, "it waited for those who stayed"

    async def work(second: RelayProcess) -> None:
        async with reached(faraway.client, on="box") as hold:
            session = await hold.run(["cat"], name="drained")
            reading = asyncio.create_task(_until(session.output(0), b"end\r\nend\r\n"))
            draining = asyncio.create_task(drained(faraway.relay, RELAY_DRAIN_S / 2))
            typed = 0
            while not draining.done():
                await session.type(f"line-{typed}", enter=True)
                typed += 1
                await asyncio.wait([draining], timeout=0.02)  # as fast as nobody types
            await draining
            await session.type("there", enter=True)
            assert await second.metric("operators") == 1, "it did not go there"
            await drained(second, RELAY_DRAIN_S / 3)  # nobody is in the middle of anything
            again = asyncio.create_task(asyncio.to_thread(faraway.relay_again))
            await session.type("end", enter=True)
            await again
            read = (await reading).split(b"\r\n")
            for word in ("there", *(f"line-{number}" for number in range(typed))):
                assert read.count(word.encode()) == 2, f"typed and echoed, once: {word}"
            await session.end()

    with RelayProcess() as second:
        faraway.host.ok("host", "--relay", second.url)
        faraway.join(faraway.client)
        run(work(second))
        faraway.host.ok("host", "--no-relay", second.url)


async def _collect(stream: AsyncIterator[events.Event], told: list[events.Event]) -> None:
    async for event in stream:
        told.append(event)


@pytest.mark.requirement("R2")
def test_a_machine_that_is_this_one_is_spoken_to_by_its_own_socket(faraway: Faraway) -> None:
    """By its name; and where another machine has the name of this one, through the relay."""
    faraway.join(faraway.host)

    def found(home: str) -> str | Machine:
        with mock.patch.dict(os.environ, {"HOLDFAST_HOME": home, "HOLDFAST_ON": "box"}):
            return target_host()

    assert found(faraway.host.home) == f"{faraway.host.home}/run/hold.sock"
    assert isinstance(found(faraway.client.home), Machine), "it has no host at all"
    with Hold() as other:
        faraway.join(other)
        other.ok("up", "-d", "--no-relay")
        assert isinstance(found(other.home), Machine), "its host has another key"


def test_a_machine_that_nobody_joined_is_said_at_once(faraway: Faraway) -> None:
    async def work() -> None:
        async with reached(faraway.client, on="nowhere"):
            pass

    with pytest.raises(errors.NoSuchMachine):
        run(work())
