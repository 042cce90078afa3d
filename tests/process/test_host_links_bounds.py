"""What another host, which has a ticket, or a program of this machine, which has none, cannot make
a host do: keep without end what it sends, hold its descriptors, or write beside its files."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.continuity.image_cutting import CHUNK_MAX_BYTES
from holdfast.host.continuity.image_transfer import _Fetching
from holdfast.host.continuity.moving import messages as m
from holdfast.host.reach.host_link import PIECE_BYTES, LinkEnd
from holdfast.model.checkpoint import CheckpointId
from holdfast.model.errors import ProtocolViolation
from holdfast.model.home import SYSTEM
from holdfast.model.limits import HOST_LINKS_MAX
from holdfast.wire import host_link as w
from holdfast.wire.messages.base import Message
from process.linking import PATIENCE_S, linked, run
from process.test_host_links import a_session, echo

NOBODYS: Any = None  # what sends checkpoints, or keeps chunks: not reached here
IMAGE = CheckpointId.of_random(bytes(16))


@pytest.mark.parametrize(
    "said",
    [w.LinkHello("s", "move", "x", "a"), w.LinkMessage(b""), w.ImageWanted("i", ())],
    ids=lambda said: str(said.tag),
)
def test_small_messages_that_nobody_reads_end_the_link(said: Message) -> None:
    link, body = LinkEnd(NOBODYS), w.encode(said)
    with pytest.raises(ProtocolViolation):
        for _ in range(1 << 20):
            link.said(body)


def test_a_chunk_that_does_not_end_is_refused() -> None:
    async def scene() -> None:
        link = LinkEnd(NOBODYS)
        piece = w.encode(w.ImagePiece(IMAGE, "name", bytes(PIECE_BYTES), False))
        for _ in range(1 + 2 * CHUNK_MAX_BYTES // PIECE_BYTES):
            link.said(piece)
        with pytest.raises(ProtocolViolation):
            await _Fetching(link, IMAGE, NOBODYS)._chunk("name")

    run(scene)


@pytest.mark.parametrize("move", ["", "../../sessions", "a" * 31 + "/", "A" * 32])
def test_a_move_cannot_be_named_after_another_place(move: str) -> None:
    def proposed(name: str) -> bytes:
        return m.encode(m.Propose(name, "s", "build", "root", 0, 1, "source", SYSTEM))

    assert isinstance(m.decode(proposed("0f" * 16)), m.Propose)
    with pytest.raises(ProtocolViolation):
        m.decode(proposed(move))


def test_silent_connections_of_this_machine_make_room(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            loop = asyncio.get_running_loop()
            silent = []
            for _ in range(HOST_LINKS_MAX + 1):
                here, there = socket.socketpair()
                here.setblocking(False)
                target.links.answer_local(there)
                silent.append(here)
            opened = await loop.sock_recv(silent[0], 1 << 16)
            over = await asyncio.wait_for(loop.sock_recv(silent[0], 1), PATIENCE_S)
            assert opened and over == b""
            target.links.serve("test", echo)
            session = a_session(source)
            link = await source.dial(target.ticket(session, source), session)
            await link.send(b"it")
            assert await link.receive() == b"heard it"
            await link.close()
            for each in silent:
                each.close()

    run(scene)


def test_whoever_is_named_by_no_id_is_refused_and_told_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", echo)
            session = a_session(source)
            nobody: Any = "../nobody"
            dialling = source.links.dial(target.ticket(session, source), session, nobody, "test")
            with pytest.raises(ProtocolViolation, match="not named"):
                await asyncio.wait_for(dialling, PATIENCE_S)

    run(scene)
