"""The SDK while the daemon dies: a command runs once or is said to be unknown, streams go on
without a hole or a repeat, and cancelled calls leave nothing half done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import aclosing
from pathlib import Path
from unittest import mock

import pytest

from faults.crash_points import arm, crashing_host
from faults.hosting import FaultHost
from holdfast import Piece, Result, Session, connect, errors, events
from holdfast.model.limits import KEYED_EXECS_REMEMBERED
from holdfast.sdk.aio.driver import AsyncDriver, AsyncHostClient
from holdfast.sdk.connection import Connection
from holdfast.wire.messages.session import Answer, Message, Request
from holdfast.wire.messages.turn import CaughtUp
from process.sdking import PATIENCE_S, lines_of, run, shell, until_gone

_SEED = 20261116
_STORM = 100  # calls that are cancelled
_ROUND = KEYED_EXECS_REMEMBERED - 14  # so many keys at once: the host forgets older ones

# Where the daemon dies between the request and the typing, and in the reports of the shell.
BEFORE_TYPING = ["before-keep", "after-keep", "before-record", "before-take", "before-note"]
AFTER_TYPING = ["after-note", "after-take", "before-type", "after-type"]


@pytest.fixture(scope="module")
def armed_host() -> Iterator[FaultHost]:
    with crashing_host() as host:
        yield host.up()


async def _kill(host: FaultHost) -> None:
    """And the next one serves: the SDK is not to find that out by luck."""
    old = await asyncio.to_thread(host.kill_daemon)
    await asyncio.to_thread(host.wait_new_daemon, old)


@pytest.mark.requirement("M6", "G4", "R6")
@pytest.mark.parametrize("key", ["", "deploy"])
@pytest.mark.parametrize("point", [*BEFORE_TYPING, *AFTER_TYPING])
def test_a_command_cut_off_by_a_kill_runs_once_and_gives_its_result(
    armed_host: FaultHost, point: str, key: str
) -> None:
    ran = armed_host.work / f"ran-{point}-{key}"

    async def work() -> None:
        async with connect(armed_host.socket) as hold:
            session = await shell(hold, f"cut-{point}-{key}")
            async with session.turn():  # so that the first thing kept is the command
                gone = arm(armed_host, point)
                result = await session.submit(f"echo ran >> {ran}; (exit 7)", key=key)
            assert not gone.exists(), "the daemon never came by there"
            assert (result.status, result.lost_bytes) == (7, 0)
            await session.end()

    run(work())
    assert lines_of(ran) == ["ran"]


@pytest.mark.requirement("M6", "G4")
@pytest.mark.parametrize("point", ["before-keep", "after-keep"])
@pytest.mark.parametrize("report", ["begin", "end"])
def test_a_report_whose_reader_is_killed_is_read_by_the_next_daemon(
    armed_host: FaultHost, point: str, report: str
) -> None:
    """The shell says a thing once, and it stays in the FIFO until what it means is kept."""
    name = f"{report}-{point}"
    ran, go = armed_host.work / f"ran-{name}", armed_host.work / f"go-{name}"
    os.mkfifo(go)

    async def work() -> None:
        async with connect(armed_host.socket) as hold:
            session = await shell(hold, name)
            command = f"echo ran >> {ran}; cat {go}; echo ended; (exit 7)"
            started = asyncio.create_task(session.submit(command, key="k"))
            await session.wait_for(text="ran >>", timeout=PATIENCE_S)
            if report == "end":
                await session.start(command, key="k")  # it has begun, and that is kept
            gone = arm(armed_host, point)
            await asyncio.to_thread(go.write_text, "")
            await until_gone(gone)
            first = await _outcome(started)
            assert first == (7, "ended\n")
            again = await _outcome(session.submit(command, key="k"))
            assert again == first, "what one was told, the next is told too"
            assert await _once_free(session, "echo on") == "on\n"
            await session.end()

    run(work())
    assert lines_of(ran) == ["ran"]


async def _outcome(work: Awaitable[Result]) -> tuple[int | None, str] | str:
    try:
        result = await work
    except errors.InputUnknown as unknown:
        return unknown.code
    return result.status, result.output


async def _once_free(session: Session, command: str) -> str:
    """A daemon that lost a report finds out after a moment that the shell is free again."""
    while True:
        with contextlib.suppress(errors.SessionBusy):
            return (await session.submit(command)).output


@pytest.mark.requirement("M6", "S1")
async def test_a_running_command_is_followed_over_one_daemon_after_another(
    host: FaultHost, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async with connect(host.socket) as hold:
        session = await shell(hold, "followed")
        job = await session.start(f"seq 500; cat {go}; seq 501 1000")
        reading = asyncio.create_task(_output_of(job.output()))
        early = b""
        async for piece in job.output():  # what it printed is here, and will come again
            early += piece.data
            if early.endswith(b"\n500\r\n"):
                break
        for _ in range(3):
            await _kill(host)
            assert not job.done
        await asyncio.to_thread(go.write_text, "")
        result = await job.result(PATIENCE_S)
        seen = await reading
        wanted = "".join(f"{each}\n" for each in range(1, 1001))
        assert (result.status, result.output, result.lost_bytes) == (0, wanted, 0)
        assert seen == result.output_bytes


async def _output_of(pieces: AsyncIterator[Piece]) -> bytes:
    seen = b""
    async for piece in pieces:
        assert piece.gap == 0
        seen += piece.data
    return seen


@pytest.mark.requirement("M1", "S3")
async def test_streams_go_on_after_a_kill_without_a_hole_or_a_repeat(host: FaultHost) -> None:
    program = "import sys, time\nfor i in range(3000): print(i, flush=True); time.sleep(0.0005)"

    async with connect(host.socket) as hold:
        session = await hold.run([sys.executable, "-c", program], name="printing")
        told: list[events.Event] = []
        watching = asyncio.create_task(_told(session, told))
        whole, position, kills = b"", 0, 0
        async for piece in session.output(0):
            assert (piece.offset, piece.gap) == (position, 0)
            whole, position = whole + piece.data, piece.end
            if kills < 3 and position > 3000 * (kills + 1):
                kills += 1
                await _kill(host)
        assert whole == b"".join(b"%d\r\n" % each for each in range(3000))
        assert kills == 3
        await watching
        assert isinstance(told[-1], events.Ended) and told[-1].ending.code == 0
        dropped = [each for each in told if isinstance(each, events.Dropped)]
        assert dropped and all(each.count is None for each in dropped)


async def _told(session: Session, told: list[events.Event]) -> None:
    async for event in session.events():
        told.append(event)


@pytest.mark.requirement("A4", "S1")
async def test_a_turn_is_held_over_a_kill_and_its_loss_meanwhile_is_noticed(
    host: FaultHost,
) -> None:
    """It is taken while the holder is away: nobody tells it, so it must ask when it is back."""
    for words in (("actor", "add", "agent"), ("grant", "agent", "execute", "--all")):
        assert host.hold(*words).returncode == 0
    key = f"{host.home}/actor-keys/agent.key"

    async with connect(host.socket) as human, connect(host.socket, actor=key) as hold:
        watched = await shell(human, "turned")
        session = await hold.session("turned")
        async with session.turn() as turn:
            await _kill(host)
            assert (await session.submit("echo kept")).output == "kept\n"
            assert not turn.lost.is_set()
            with _kept_away(_link(session)) as back:
                await _kill(host)
                await watched.seize(reason="mine")
                back.set()
                await asyncio.wait_for(turn.lost.wait(), PATIENCE_S)
            with pytest.raises(errors.TurnLost):
                await session.submit("echo never")
        held = await watched.turn_state()
        assert held.yours and turn.lost_to == held.turn.holder_name


@contextlib.contextmanager
def _kept_away(link: AsyncHostClient) -> Iterator[asyncio.Event]:
    """A connection that is lost comes back only when this is set."""
    back, greeted = asyncio.Event(), link._greeted

    async def later() -> Connection:
        await back.wait()
        return await greeted()

    with mock.patch.object(link, "_greeted", later):
        yield back


@pytest.mark.requirement("A6")
async def test_what_others_did_is_told_again_when_the_answer_was_lost_with_the_daemon(
    host: FaultHost,
) -> None:
    ask, lost = AsyncDriver.ask, list[Message]()

    async def losing(self: AsyncDriver, request: Request) -> Answer:
        answer = await ask(self, request)
        if isinstance(answer, CaughtUp) and not lost:
            lost.append(answer)
            await _kill(host)
            raise errors.HostLost("before the answer was here")
        return answer

    async with connect(host.socket) as hold:
        session = await shell(hold, "caught-up")
        await session.catch_up()
        await session.submit("alias ll=ls; echo done")
        with mock.patch.object(AsyncDriver, "ask", losing):
            told = await session.catch_up()
        assert lost and [each.text for each in told.commands] == ["alias ll=ls; echo done"]
        assert [each.name for each in told.changes] == ["ll"]
        assert (await session.catch_up()).commands == ()


async def test_a_host_that_was_stopped_is_told_at_once_and_reached_again_when_it_is_back(
    host: FaultHost,
) -> None:
    async with connect(host.socket) as hold:
        session = await shell(hold, "stopped")
        waiting = asyncio.create_task(session.wait_for(ended=True))
        await asyncio.sleep(0)
        done = await asyncio.to_thread(host.hold, "down", "--end-sessions")
        assert done.returncode == 0, done.stderr
        with pytest.raises((errors.HostLost, errors.HostDown)):
            await session.screen()
        with contextlib.suppress(errors.HostLost):  # it may have heard of the end before
            await waiting
        await asyncio.to_thread(host.up)
        assert (await hold.sessions()) == ()
        assert (await session.info()).ending is not None


# -- cancelling -------------------------------------------------------------------------------


@pytest.mark.requirement("M6", "G4", "R6")
def test_a_storm_of_cancelled_commands_leaves_each_run_once_or_not_at_all(
    host: FaultHost, tmp_path: Path
) -> None:
    """Every key is then asked for its fate: what had not run runs now, what had does not."""
    dice, ran = random.Random(_SEED), tmp_path / "ran"

    async def work() -> int:
        async with connect(host.socket) as hold:
            session = await shell(hold, "storm")
            carrier, early = await _link(session).carrier(), 0
            for first in range(0, _STORM, _ROUND):
                before = len(lines_of(ran))
                for number in range(first, first + _ROUND):
                    task = asyncio.create_task(_submit(session, ran, number))
                    looking = asyncio.create_task(_look(session, dice))
                    await _moment(dice, ran, number)
                    task.cancel()
                    await asyncio.wait((task, looking))
                early += len(lines_of(ran)) - before
                for number in range(first, first + _ROUND):
                    await _submit(session, ran, number)
            assert await _link(session).carrier() is carrier, "the host closed the connection"
            return early

    early = run(work())
    assert sorted(lines_of(ran)) == sorted(f"n{number}" for number in range(_STORM))
    assert 0 < early < _STORM, "some were cut off before they were sent, and some after"


def _link(session: Session) -> AsyncHostClient:
    return session._link


async def _moment(dice: random.Random, ran: Path, number: int) -> None:
    """Any, but however slow the machine is: some before it was sent, and some after it ran."""
    if number % 10 == 1:
        while f"n{number}" not in lines_of(ran):
            await asyncio.sleep(0.01)
    elif number % 10:
        await asyncio.sleep(dice.random() ** 3 * 0.08)


async def _submit(session: Session, ran: Path, number: int) -> None:
    while True:
        try:
            await session.submit(f"echo n{number} >> {ran}", key=f"key-{number}")
            return
        except errors.SessionBusy:  # the one before, whose call was cancelled, still runs
            await session.wait_for(state="prompt", timeout=PATIENCE_S)


async def _look(session: Session, dice: random.Random) -> None:
    """Other calls that are cancelled: a stream, a screen."""

    async def looks() -> None:
        await session.screen()
        async with aclosing(session.output(0)) as pieces:
            async for _ in pieces:
                pass

    task = asyncio.create_task(looks())
    await asyncio.sleep(dice.random() * 0.01)
    task.cancel()
    await asyncio.wait((task,))


@pytest.mark.requirement("M6", "A3")
def test_a_cancelled_input_is_typed_whole_and_once_or_not_at_all(
    host: FaultHost, tmp_path: Path
) -> None:
    dice, typed = random.Random(_SEED), tmp_path / "typed"

    async def work() -> None:
        async with connect(host.socket) as hold:
            session = await hold.run(["sh", "-c", f"stty -echo; cat > {typed}"], name="lines")
            await session.wait_for(state="secret", timeout=PATIENCE_S)
            killed = asyncio.create_task(_kill(host))
            for number in range(_STORM):
                text = f"{number}:" + "x" * dice.choice((1, 300, 3000))
                task = asyncio.create_task(session.type(text, enter=True))
                await asyncio.sleep(dice.random() ** 3 * 0.01)
                task.cancel()
                await asyncio.wait((task,))
            await killed
            await session.type("last", enter=True)
            await session.keys("C-d")
            await session.wait_for(ended=True, timeout=PATIENCE_S)

    run(work())
    lines = lines_of(typed)
    assert lines.pop() == "last"
    numbers = [int(line.partition(":")[0]) for line in lines]
    assert numbers == sorted(set(numbers)), "none twice, and in order"
    assert all(set(line.partition(":")[2]) == {"x"} for line in lines), "none cut or mixed"
