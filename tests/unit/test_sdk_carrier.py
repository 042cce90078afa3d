"""What the SDK puts on the wire, seen from the other end: whole frames only, in the order of their
numbers, whatever is cancelled; and nothing of an answer that came too late is taken for another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from holdfast.model.errors import HostLost, InputUnknown, SessionBusy
from holdfast.model.ids import SessionId
from holdfast.model.size import Size
from holdfast.model.state import Ending
from holdfast.sdk.aio.command_run import Running, _Kept
from holdfast.sdk.aio.driver import AsyncHostClient
from holdfast.sdk.aio.session import Session
from holdfast.sdk.client_core.client_machine import offer
from holdfast.sdk.client_core.output_reader import Piece
from holdfast.wire.frames import Decoder, encode
from holdfast.wire.messages import session as m
from unit.scripted_io import INFO

SESSION = SessionId("0" * 26)
_SEED = 7
PATIENCE_S = 2.0  # of the link

Answering = Callable[[m.Request], Iterable[m.Message]]


class FakeHost:
    """Greets, answers as it is told, and remembers every request. It reads slowly if asked to."""

    def __init__(self, path: str, answering: Answering, read_bytes: int = 1 << 16) -> None:
        self.path, self._answering, self._read_bytes = path, answering, read_bytes
        self.heard: list[m.Message] = []
        self.whole = True  # each connection ended between two frames
        self.connections = 0
        self.left = asyncio.Event()  # a connection was read to its end
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        decoder = Decoder()
        while data := await reader.read(self._read_bytes):
            for message in decoder.feed(data):
                self.heard.append(message)
                if isinstance(message, m.Hello):
                    writer.write(encode(m.Welcome(1, "fake", 1)))
                elif isinstance(message, m.Request):
                    for answer in self._answering(message):
                        writer.write(encode(answer))
            if self._read_bytes < 1 << 16:
                await asyncio.sleep(0.0005)
        self.whole = self.whole and decoder.between_frames
        self.left.set()
        writer.close()

    def drop(self) -> None:
        """Every connection, at once."""
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    def inputs(self) -> list[m.Input]:
        return [message for message in self.heard if isinstance(message, m.Input)]


@asynccontextmanager
async def linked(
    tmp_path: Path, answering: Answering, read_bytes: int = 1 << 16
) -> AsyncIterator[tuple[FakeHost, AsyncHostClient]]:
    host = FakeHost(str(tmp_path / "s"), answering, read_bytes)
    server = await asyncio.start_unix_server(host.serve, host.path)
    link = AsyncHostClient(host.path, "test", None, patience_s=PATIENCE_S)
    try:
        yield host, link
    finally:
        await link.close()
        server.close()


async def typed(link: AsyncHostClient, data: bytes) -> m.Accepted:
    async with link.inputs(SESSION).next() as seq:
        return await offer(link, m.Input(0, SESSION, seq, data))


def _accepts(request: m.Request) -> Iterable[m.Message]:
    if isinstance(request, m.Input):
        yield m.Accepted(request.id, request.seq, 0)
    else:
        yield m.Done(request.id)


def test_a_hundred_cancelled_inputs_leave_whole_frames_in_order(tmp_path: Path) -> None:
    """The other end reads slowly, so that frames are half sent when their senders are cancelled."""
    dice = random.Random(_SEED)

    async def work() -> FakeHost:
        async with linked(tmp_path, _accepts, read_bytes=3000) as (host, link):
            for number in range(100):
                data = bytes([number]) * dice.choice((1, 500, 60_000))
                task = asyncio.create_task(typed(link, data))
                if number % 10:  # else before it has begun
                    await asyncio.sleep(dice.random() ** 3 * 0.03)
                task.cancel()
                await asyncio.wait((task,))
            await typed(link, b"last")
        await host.left.wait()
        return host

    host = asyncio.run(asyncio.wait_for(work(), 60))
    heard = host.inputs()
    assert host.whole and host.connections == 1
    assert heard[-1].data == b"last" and 1 < len(heard) < 101
    numbers = [each.seq for each in heard]
    assert numbers == sorted(set(numbers)), "a number is never used twice, nor out of order"
    assert all(len(set(each.data)) == 1 for each in heard[:-1])


def test_an_input_whose_answer_was_lost_is_sent_again_under_its_number(tmp_path: Path) -> None:
    async def work() -> list[tuple[int, bytes]]:
        host: FakeHost

        def answering(request: m.Request) -> Iterable[m.Message]:
            if isinstance(request, m.Input) and host.connections == 1:
                host.drop()  # taken, and never said
            else:
                yield from _accepts(request)

        async with linked(tmp_path, answering) as (made, link):
            host = made
            first = asyncio.create_task(typed(link, b"one"))
            second = asyncio.create_task(typed(link, b"two"))
            await asyncio.gather(first, second)
            return [(each.seq, each.data) for each in host.inputs()]

    assert asyncio.run(asyncio.wait_for(work(), 30)) == [(1, b"one"), (1, b"one"), (2, b"two")]


def test_an_input_whose_host_is_lost_each_time_is_unknown_and_not_done(tmp_path: Path) -> None:
    async def work() -> int:
        host: FakeHost

        def answering(request: m.Request) -> Iterable[m.Message]:
            host.drop()
            return ()

        async with linked(tmp_path, answering) as (made, link):
            host = made
            with pytest.raises(InputUnknown):
                await typed(link, b"x")
            return len({each.seq for each in host.inputs()})

    assert asyncio.run(asyncio.wait_for(work(), 30)) == 1


def test_a_refused_input_is_raised_and_the_next_has_another_number(tmp_path: Path) -> None:
    def answering(request: m.Request) -> Iterable[m.Message]:
        assert isinstance(request, m.Input)
        if request.seq == 1:
            yield m.Failed(request.id, "session_busy", "not now", "later", retryable=True)
        else:
            yield from _accepts(request)

    async def work() -> int:
        async with linked(tmp_path, answering) as (_, link):
            with pytest.raises(SessionBusy) as refused:
                await typed(link, b"x")
            assert (refused.value.hint, refused.value.retryable) == ("later", True)
            return (await typed(link, b"x")).seq

    assert asyncio.run(asyncio.wait_for(work(), 30)) == 2


def test_an_answer_that_comes_after_its_asker_was_cancelled_is_nobodys(tmp_path: Path) -> None:
    late: list[m.Request] = []

    def answering(request: m.Request) -> Iterable[m.Message]:
        late.append(request)
        if len(late) == 2:  # the first is answered with the second, and first
            yield m.ScreenShown(late[0].id, "old", 0, 0, Size(1, 1), "", 0)
            yield m.ScreenShown(request.id, "new", 0, 0, Size(1, 1), "", 0)

    async def work() -> str:
        async with linked(tmp_path, answering) as (_, link):
            first = asyncio.create_task(link.ask(m.GetScreen(0, SESSION), m.ScreenShown))
            while not late:
                await asyncio.sleep(0)
            first.cancel()
            return (await link.ask(m.GetScreen(0, SESSION), m.ScreenShown)).text

    assert asyncio.run(asyncio.wait_for(work(), 30)) == "new"


def test_what_must_not_be_done_twice_is_asked_once(tmp_path: Path) -> None:
    async def work() -> int:
        host: FakeHost

        def answering(request: m.Request) -> Iterable[m.Message]:
            host.drop()
            return ()

        async with linked(tmp_path, answering) as (made, link):
            host = made
            with pytest.raises(HostLost):
                await link.ask(m.Run(0), m.Shown, once=True)
            return sum(isinstance(each, m.Run) for each in host.heard)

    assert asyncio.run(asyncio.wait_for(work(), 30)) == 1


def test_one_who_is_cancelled_while_connecting_does_not_keep_others_from_it(
    tmp_path: Path,
) -> None:
    async def work() -> int:
        async with linked(tmp_path, _accepts) as (host, link):
            first = asyncio.create_task(link.carrier())
            second = asyncio.create_task(link.carrier())
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).error is None
            with suppress(asyncio.CancelledError):
                await first
            return host.connections

    assert asyncio.run(asyncio.wait_for(work(), 30)) == 1


def _exec(request: m.Request, *, ends: bool) -> Iterable[m.Message]:
    if isinstance(request, m.Exec):
        yield m.ExecBegan(request.id, 1, 5, 0)
        yield m.ExecOutput(request.id, b"out", 10)
        if ends:
            yield m.ExecEnded(request.id, 0, "/", 1.0)


def test_a_long_command_is_followed_however_often_the_host_is_lost_meanwhile(
    tmp_path: Path,
) -> None:
    """Each loss has the whole patience: it is not that of all losses together."""
    losses = 4

    async def work() -> tuple[bytes, set[int]]:
        host: FakeHost

        def answering(request: m.Request) -> Iterable[m.Message]:
            last = host.connections > losses
            if not last:
                asyncio.get_running_loop().call_later(PATIENCE_S * 0.4, host.drop)
            return _exec(request, ends=last)

        async with linked(tmp_path, answering) as (made, link):
            host = made
            running = Running(link, link.inputs(SESSION), cast(Session, _Handle()), "make", "", "")
            result = await running.result()
            return result.output_bytes, {e.seq for e in host.heard if isinstance(e, m.Exec)}

    assert asyncio.run(asyncio.wait_for(work(), 60)) == (b"out", {1})


@pytest.mark.parametrize("begun", [True, False])
async def test_a_host_that_is_gone_for_good_is_told_once_and_soon(
    tmp_path: Path, begun: bool
) -> None:
    host: FakeHost

    def answering(request: m.Request) -> Iterable[m.Message]:
        Path(host.path).unlink()  # nothing listens there any more
        asyncio.get_running_loop().call_later(0.05, host.drop)
        return _exec(request, ends=False) if begun else ()

    async with linked(tmp_path, answering) as (made, link):
        host = made
        running = Running(link, link.inputs(SESSION), cast(Session, _Handle()), "make", "", "")
        with pytest.raises(HostLost if begun else InputUnknown):
            await asyncio.wait_for(running.result(), PATIENCE_S / 2)


class _Handle:
    """As much of a session as a command on its way needs."""

    id, name = SESSION, "fake"


def test_output_that_comes_a_second_time_is_kept_once() -> None:
    async def work() -> tuple[bytes, int]:
        kept = _Kept()
        kept.add(10, b"abc")
        kept.add(10, b"abc")  # from the beginning again, after a reconnect
        kept.add(12, b"cde")
        kept.add(20, b"x")
        return kept.all(), kept.gaps

    assert asyncio.run(work()) == (b"abcdex", 5)


def test_a_gap_in_the_output_is_told_with_the_piece_behind_it_or_at_the_end(tmp_path: Path) -> None:
    def answering(request: m.Request) -> Iterable[m.Message]:
        if isinstance(request, m.Attach):
            channel = request.channel
            yield m.Attached(request.id, channel, INFO, 0, 0)
            yield m.Gap(channel, 10, 10)
            yield m.Output(channel, 10, b"abc")
            yield m.Output(channel, 13, b"def")
            yield m.Gap(channel, 20, 4)
            yield m.Closed(channel, Ending(code=0))

    async def work() -> list[Piece]:
        async with linked(tmp_path, answering) as (_, link):
            return [piece async for piece in Session(link, INFO).output(0)]

    pieces = asyncio.run(asyncio.wait_for(work(), 30))
    assert pieces == [Piece(10, b"abc", 10), Piece(13, b"def"), Piece(20, b"", 4)]
