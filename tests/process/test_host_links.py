"""Links between two hosts: who may dial, what goes through, and checkpoints that are brought over
them. With real stores, sockets and channels."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.host.reach import tickets
from holdfast.model.errors import (
    CheckpointInvalid,
    CheckpointRolledBack,
    HoldfastError,
    HostLost,
    TicketInvalid,
    Unsupported,
)
from holdfast.model.ids import SessionId
from holdfast.model.limits import HOST_LINK_WINDOW_BYTES, HOST_MESSAGE_BYTES, HOST_TICKET_S
from holdfast.ports.host_link import HostLink
from holdfast.wire.host_link import LinkTicket
from process.imaging import contents, described, images, pages
from process.linking import ASKED_BY, FETCHED_BY, LinkedHost, Tap, linked, run


@pytest.fixture(autouse=True)
def a_criu_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """No image is restored here."""
    monkeypatch.setattr("holdfast.host.continuity.restore.levels.criu_version", lambda: "4.2")


def a_session(host: LinkedHost) -> SessionId:
    return host.sessions.create()


async def echo(link: HostLink) -> None:
    while (message := await link.receive()) is not None:
        await link.send(b"heard " + message)


async def until_gone(link: HostLink) -> None:
    assert await link.receive() is None


@pytest.mark.requirement("R4")
def test_messages_go_both_ways_in_order_and_both_hosts_are_known(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            came: list[HostLink] = []

            async def serve(link: HostLink) -> None:
                came.append(link)
                await echo(link)

            target.links.serve("test", serve)
            session = a_session(source)
            link = await source.dial(target.ticket(session, source), session)
            big = bytes(HOST_MESSAGE_BYTES - 6)
            for message in (b"one", b"", big, b"two"):
                await link.send(message)
            for message in (b"one", b"", big, b"two"):
                assert await link.receive() == b"heard " + message
            assert (link.peer, came[0].peer) == (target.key.public, source.key.public)
            assert came[0].session == link.session == session
            assert came[0].admitted_by == link.admitted_by == (ASKED_BY, FETCHED_BY)
            await link.close()
            assert await came[0].receive() is None

    run(scene)


def test_whoever_does_not_read_is_not_sent_more_than_a_window(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            reads, read_all = asyncio.Event(), asyncio.Event()
            got = bytearray()

            async def serve(link: HostLink) -> None:
                await reads.wait()
                while (message := await link.receive()) is not None:
                    got.extend(message)
                read_all.set()

            target.links.serve("test", serve)
            session = a_session(source)
            link = await source.dial(target.ticket(session, source), session)
            sent = 0
            while True:
                try:
                    await asyncio.wait_for(link.send(bytes(1 << 20)), 1.0)
                except TimeoutError:
                    break
                sent += 1 << 20
            assert sent == HOST_LINK_WINDOW_BYTES
            reads.set()
            await link.send(b"the rest")
            await link.close()
            await read_all.wait()
            assert (len(got), bytes(got[-8:])) == (sent + 8, b"the rest")

    run(scene)


@pytest.mark.requirement("R3")
def test_a_ticket_is_for_one_host_one_session_and_a_short_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session, other = a_session(source), a_session(source)
            third = LinkedHost(tmp_path / "third")
            ticket = target.ticket(session, source)
            with pytest.raises(TicketInvalid):  # it says itself whose it is
                await third.dial(ticket, session)
            with pytest.raises(TicketInvalid):
                await source.dial(ticket, other)
            with pytest.raises(Unsupported):
                await source.dial(ticket, session, "nothing")
            for text in ("", "!", ticket[:40]):
                with pytest.raises(TicketInvalid):
                    await source.dial(text, session)
            forged = tickets_of(ticket).replace(source=third.key.public).text()
            with pytest.raises(HoldfastError) as refused:
                await third.dial(forged, session)
            assert isinstance(refused.value, HostLost | TicketInvalid)
            wrong = tickets_of(ticket).replace(secret=bytes(32)).text()
            with pytest.raises(HostLost):
                await source.dial(wrong, session)
            late = target.ticket(session, source)
            monkeypatch.setattr("holdfast.host.reach.host_links.now", lambda: 1e10 + HOST_TICKET_S)
            with pytest.raises(TicketInvalid, match="expired"):
                await source.dial(late, session)
            await third.close()

    run(scene)


def tickets_of(text: str) -> LinkTicket:
    return LinkTicket.of_text(text)


def test_a_used_ticket_is_good_again_after_a_restart_until_it_is_settled(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            ticket = target.ticket(session, source)
            link = await source.dial(ticket, session)
            await link.close()
            again = tickets.TicketBook(str(target.state))
            given = again.find(tickets_of(ticket).id)
            assert given is not None and given.used
            again.use(given, source.key.public, session, given.given_at + 2 * HOST_TICKET_S)
            target.links.settled(session)
            with pytest.raises(HostLost):
                await source.dial(ticket, session)

    run(scene)


# -- checkpoints ------------------------------------------------------------------------------


@pytest.mark.requirement("M2")
def test_a_checkpoint_arrives_whole_under_the_keys_of_the_target(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            files = images(tmp_path / "images", pages(1, 2000))
            made = await source.images.save(described(session=session), str(files))
            tap = Tap(tmp_path, target.socket)
            await tap.open()
            link = await source.dial(target.ticket(session, source, tap.path), session)
            passed: list[tuple[int, int]] = []
            await link.send_checkpoint(made.id, lambda done, of: passed.append((done, of)))
            assert passed[-1] == (made.raw_bytes, made.raw_bytes)
            await target.images.load(made.id, str(tmp_path / "back"))
            assert contents(tmp_path / "back") == contents(files)
            kept = await target.images.find(session)
            assert (kept.id, kept.host) == (made.id, target.key.public)
            assert target.sessions.session_key(session).seed == bytes(
                source.sessions.session_key(session).seed
            )
            # Neither who carried it nor whoever has the target's store can read it.
            key = source.sessions.session_key(session).seed
            stored = b"".join(
                path.read_bytes() for path in target.place.rglob("*") if path.is_file()
            )
            for place in (bytes(tap.seen), stored):
                assert key not in place and pages(1, 1)[:64] not in place
            before = len(tap.seen)
            await link.send_checkpoint(made.id)  # once more: nothing is sent again
            assert len(tap.seen) - before < 4096
            tap.close()

    run(scene)


def test_a_link_says_which_checkpoint_it_brought(tmp_path: Path) -> None:
    """So that it can be deleted when the move it was for has failed; one that was there before is
    not the move's."""

    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            came: list[HostLink] = []

            async def serve(link: HostLink) -> None:
                came.append(link)
                await link.receive()

            target.links.serve("test", serve)
            session = a_session(source)
            files = images(tmp_path / "images", pages(1, 20))
            made = await source.images.save(described(session=session), str(files))
            ticket = target.ticket(session, source)
            for expected in (made.id, None):
                link = await source.dial(ticket, session)
                assert came[-1].brought is None
                await link.send_checkpoint(made.id)
                assert came[-1].brought == expected
                await link.close()

    run(scene)


@pytest.mark.requirement("M2")
def test_a_transfer_that_is_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            files = images(tmp_path / "images", pages(2, 6000))
            made = await source.images.save(described(session=session), str(files))
            tap = Tap(tmp_path, target.socket)
            await tap.open()
            ticket = target.ticket(session, source, tap.path)
            tap.cut_after = made.stored_bytes // 2
            link = await source.dial(ticket, session)
            with pytest.raises(HostLost):
                await link.send_checkpoint(made.id)
            before, tap.cut_after = len(tap.seen), None
            again = await source.dial(ticket, session)
            await again.send_checkpoint(made.id)
            assert len(tap.seen) - before < made.stored_bytes * 3 // 4
            await target.images.load(made.id, str(tmp_path / "back"))
            assert contents(tmp_path / "back") == contents(files)
            assert not any((target.state / "arriving").iterdir())
            tap.close()

    run(scene)


@pytest.mark.requirement("R4")
def test_what_is_altered_on_its_way_ends_the_link(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            made = await source.images.save(
                described(session=session), str(images(tmp_path / "images", pages(3, 2000)))
            )
            tap = Tap(tmp_path, target.socket)
            await tap.open()

            def alter(data: bytes, before: int) -> bytes:
                half = made.stored_bytes // 2
                if before <= half < before + len(data):
                    at = half - before
                    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                return data

            tap.alter = alter
            link = await source.dial(target.ticket(session, source, tap.path), session)
            with pytest.raises(HostLost):
                await link.send_checkpoint(made.id)
            assert await target.images.list() == ()
            tap.close()

    run(scene)


@pytest.mark.requirement("M2")
def test_a_chunk_that_was_altered_in_the_store_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            made = await source.images.save(
                described(session=session), str(images(tmp_path / "images", pages(4, 2000)))
            )
            link = await source.dial(target.ticket(session, source), session)
            chunks = [path for path in source.place.rglob("chunks/*/*") if path.is_file()]
            largest = max(chunks, key=lambda path: path.stat().st_size)
            data = bytearray(largest.read_bytes())
            data[len(data) // 2] ^= 1
            largest.write_bytes(data)
            with pytest.raises(CheckpointInvalid):
                await link.send_checkpoint(made.id)
            assert await target.images.list() == ()

    run(scene)


@pytest.mark.requirement("M2")
def test_an_older_checkpoint_of_a_session_that_is_known_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            files = str(images(tmp_path / "images", pages(5, 10)))
            older = await source.images.save(described(7, session), files)
            newer = await source.images.save(described(9, session), files)
            link = await source.dial(target.ticket(session, source), session)
            await link.send_checkpoint(newer.id)
            with pytest.raises(CheckpointRolledBack):
                await link.send_checkpoint(older.id)
            assert [each.id for each in await target.images.list()] == [newer.id]

    run(scene)


@pytest.mark.requirement("M2")
def test_one_for_a_machine_of_another_kind_is_refused_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with linked(tmp_path) as (source, target):
            target.links.serve("test", until_gone)
            session = a_session(source)
            description = described(session=session)
            foreign = description.replace(machine=description.machine.replace(isa="vax"))
            made = await source.images.save(foreign, str(images(tmp_path / "images", pages(6, 10))))
            link = await source.dial(target.ticket(session, source), session)
            with pytest.raises(CheckpointInvalid, match="vax"):
                await link.send_checkpoint(made.id)
            assert not (target.state / "arriving").exists()

    run(scene)
