"""Sockets whose bytes are carried: two ends joined by hand, with real sockets at both."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import pytest

from holdfast.dial.carried_socket import CarriedSocket, Carrier
from holdfast.model.errors import NotPermitted, ProtocolViolation
from holdfast.model.forward_words import CarriedClosed, CarriedData, CarriedEnd, Room, Word
from holdfast.model.limits import FORWARD_PIECE_BYTES, FORWARD_WINDOW_BYTES

PATIENCE_S = 20.0


class Ends:
    """Two carriers; what one says the other hears, at once, unless it is held up."""

    def __init__(self) -> None:
        self.carriers = [
            Carrier(lambda: self._pump(0), self._over),
            Carrier(lambda: self._pump(1), self._over),
        ]
        self.held = [False, False]
        self.said: list[tuple[int, Word]] = []
        self.over: list[CarriedSocket] = []

    def _over(self, each: CarriedSocket) -> None:
        self.over.append(each)

    def _pump(self, at: int) -> None:
        while not self.held[at] and (said := self.carriers[at].next()) is not None:
            each, word = said
            self.said.append((at, word))
            other = self.carriers[1 - at].open[each.number]
            if isinstance(word, CarriedClosed):
                other.drop()
            else:
                other.take(word)

    def hold(self, at: int, held: bool) -> None:
        self.held[at] = held
        self._pump(at)

    def connection(self, number: int) -> list[socket.socket]:
        """The far ends of both sockets: a client here, a program there."""
        outside = []
        for carrier in self.carriers:
            inside, out = socket.socketpair()
            for each in (inside, out):
                each.setblocking(False)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
            carrier.open[number] = CarriedSocket(carrier, number)
            carrier.open[number].begin(inside)
            outside.append(out)
        return outside


def play(scene: Callable[[Ends], Awaitable[None]]) -> None:
    async def begin() -> None:
        await asyncio.wait_for(scene(Ends()), PATIENCE_S)

    asyncio.run(begin())


async def read(sock: socket.socket, size: int) -> bytes:
    loop, got = asyncio.get_running_loop(), bytearray()
    while len(got) < size and (piece := await loop.sock_recv(sock, size - len(got))):
        got += piece
    return bytes(got)


async def send(sock: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, data)


def test_bytes_go_both_ways_in_pieces_that_are_never_too_long() -> None:
    async def scene(ends: Ends) -> None:
        here, there = ends.connection(1)
        data = os.urandom(3 << 20)
        sent = asyncio.create_task(send(here, data))
        assert await read(there, len(data)) == data
        await sent
        await send(there, b"and back")
        assert await read(here, 8) == b"and back"
        pieces = [word.data for _, word in ends.said if isinstance(word, CarriedData)]
        assert max(map(len, pieces)) <= FORWARD_PIECE_BYTES
        assert b"".join(pieces[:-1]) == data

    play(scene)


def test_what_is_not_taken_stops_at_the_window_and_goes_on_when_it_is() -> None:
    async def scene(ends: Ends) -> None:
        here, there = ends.connection(1)
        beside_here, beside_there = ends.connection(2)
        data = os.urandom(4 << 20)
        sent = asyncio.create_task(send(here, data))
        await until_still(ends)
        passed = sum(len(word.data) for at, word in ends.said if isinstance(word, CarriedData))
        room = sum(word.size for _, word in ends.said if isinstance(word, Room))
        assert passed - room == FORWARD_WINDOW_BYTES
        assert not sent.done()
        await send(beside_here, b"not held back")
        assert await read(beside_there, 13) == b"not held back"
        assert await read(there, len(data)) == data
        await sent

    play(scene)


async def until_still(ends: Ends) -> None:
    """Until nothing more is said in many turns of the loop, each with a look at every socket."""
    quiet, before = 0, -1
    while quiet < 200:
        await asyncio.sleep(0)
        quiet, before = (quiet + 1 if len(ends.said) == before else 0), len(ends.said)


def test_a_way_that_takes_nothing_reads_nothing() -> None:
    async def scene(ends: Ends) -> None:
        here, there = ends.connection(1)
        ends.hold(0, True)
        sent = asyncio.create_task(send(here, bytes(1 << 20)))
        await until_still(ends)
        assert ends.said == [] and not sent.done()
        assert ends.carriers[0].open[1].read_bytes == 0, "it stays with its sender"
        ends.hold(0, False)
        assert len(await read(there, 1 << 20)) == 1 << 20
        await sent

    play(scene)


def test_each_in_its_turn_when_several_have_something() -> None:
    async def scene(ends: Ends) -> None:
        pairs = [ends.connection(number) for number in range(4)]
        ends.hold(0, True)
        sending = [asyncio.create_task(send(here, bytes(64 << 10))) for here, _ in pairs]
        await until_still(ends)
        order = [said[0].number for said in (ends.carriers[0].next() for _ in range(4)) if said]
        assert sorted(order) == [0, 1, 2, 3]
        for task in sending:
            task.cancel()

    play(scene)


def test_the_end_of_one_way_leaves_the_other_and_both_ends_end_it() -> None:
    async def scene(ends: Ends) -> None:
        here, there = ends.connection(1)
        await send(here, b"a question")
        here.shutdown(socket.SHUT_WR)
        assert await read(there, 100) == b"a question"
        assert ends.over == []
        await send(there, b"an answer")
        there.close()
        assert await read(here, 100) == b"an answer"
        while len(ends.over) < 2:
            await asyncio.sleep(0)
        assert all(each.over is None for each in ends.over)
        assert not any(isinstance(word, CarriedClosed) for _, word in ends.said)
        assert sum(isinstance(word, CarriedEnd) for _, word in ends.said) == 2

    play(scene)


def test_what_waits_for_a_slow_reader_is_not_lost_when_all_else_is_over() -> None:
    async def scene(ends: Ends) -> None:
        here, there = ends.connection(1)
        there.shutdown(socket.SHUT_WR)
        assert await read(here, 1) == b""
        data = os.urandom(FORWARD_WINDOW_BYTES)
        await send(here, data)
        here.close()
        await until_still(ends)
        assert await read(there, len(data) + 1) == data

    play(scene)


def test_a_cut_is_told_once_and_is_no_end() -> None:
    async def scene(ends: Ends) -> None:
        here, _ = ends.connection(1)
        cut = ends.carriers[1].open[1]
        cut.cut(NotPermitted("no more"))
        cut.cut(NotPermitted("again"))
        assert ends.said == [(1, CarriedClosed("not_permitted", "no more"))]
        assert ends.over == [cut]
        with pytest.raises(OSError):
            while True:
                await send(here, b"x")
                await asyncio.sleep(0)

    play(scene)


def test_a_reset_at_one_end_is_a_cut_for_the_other() -> None:
    async def scene(ends: Ends) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            out = socket.create_connection(listener.getsockname())
            inside, _ = listener.accept()
        inside.setblocking(False)
        here, there = ends.connection(1)  # the second is replaced by one that can be reset
        carrier = ends.carriers[1]
        carrier.open[1].drop()
        carrier.open[1] = CarriedSocket(carrier, 1)
        carrier.open[1].begin(inside)
        out.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1, 0, 0, 0, 0, 0, 0, 0)))
        out.close()
        while not ends.over:
            await asyncio.sleep(0)
        (_, word), *_ = ends.said
        assert isinstance(word, CarriedClosed) and word.code == "connection_reset"
        here.close()
        there.close()

    play(scene)


@pytest.mark.parametrize(
    "words",
    [
        [CarriedData(bytes(FORWARD_PIECE_BYTES + 1))],
        [CarriedData(bytes(FORWARD_PIECE_BYTES))]
        * (FORWARD_WINDOW_BYTES // FORWARD_PIECE_BYTES + 1),
        [CarriedEnd(), CarriedData(b"x")],
        [Room(1)],
        [Room(-1)],
        [Room(0)],
    ],
)
def test_more_than_there_is_room_for_is_no_protocol_of_ours(words: list[Word]) -> None:
    async def scene(ends: Ends) -> None:
        carrier = Carrier(lambda: None, lambda _: None)
        waiting = CarriedSocket(carrier, 1)  # it has no socket yet: all of it waits
        for word in words[:-1]:
            waiting.take(word)
        with pytest.raises(ProtocolViolation):
            waiting.take(words[-1])

    play(scene)
