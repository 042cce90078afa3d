"""R4, R6: ports of a session on another machine, through a relay."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import aiohttp
import pytest

from process.commanding import PATIENCE_S
from process.forwarding import Forward, read_all, read_exactly, server
from process.reaching import Faraway, pid_of_daemon
from process.servers import BIG_BYTES, PIECE


@pytest.fixture(scope="module")
def faraway() -> Iterator[Faraway]:
    made = Faraway()
    yield made
    made.close()


@pytest.fixture
def own() -> Iterator[Faraway]:
    """For tests that break something."""
    made = Faraway()
    yield made
    made.close()


def test_pages_and_websockets_of_another_machine_are_here(faraway: Faraway, tmp_path: Path) -> None:
    client = faraway.client
    (tmp_path / "index.html").write_text("from afar")
    page = server(client, "page", "files", on="box", cwd=str(tmp_path))
    talk = server(client, "talk", "websocket", on="box")

    async def say(url: str) -> str:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/ws") as socket:
            await socket.send_str("hello")
            return await socket.receive_str(timeout=PATIENCE_S)

    with (
        Forward(client, "box/page", f"{page}:0") as forward,
        urllib.request.urlopen(forward.url, timeout=PATIENCE_S) as answer,
    ):
        assert answer.read() == b"from afar"
    with Forward(client, "box/talk", f"{talk}:0") as forward:
        assert asyncio.run(asyncio.wait_for(say(forward.url), PATIENCE_S)) == "you said hello"


def test_fifty_megabytes_come_through_a_relay_intact(faraway: Faraway) -> None:
    port = server(faraway.client, "big", "big", on="box")
    wanted = hashlib.sha256()
    for _ in range(BIG_BYTES // len(PIECE)):
        wanted.update(PIECE)
    with Forward(faraway.client, "box/big", f"{port}:0") as forward, forward.connect() as conn:
        assert hashlib.sha256(read_all(conn)).digest() == wanted.digest()


def test_what_is_sent_through_a_relay_arrives_whole_and_both_ends_say_when_it_is_over(
    faraway: Faraway,
) -> None:
    port, data = server(faraway.client, "up", "digest", on="box"), os.urandom(20 << 20)
    with Forward(faraway.client, "box/up", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(data)
        conn.shutdown(1)
        assert read_all(conn) == f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode()


def test_the_journal_of_the_other_machine_names_the_device(faraway: Faraway) -> None:
    port = server(faraway.client, "whose", "echo", on="box")
    with Forward(faraway.client, "box/whose", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(b"x")
        assert read_exactly(conn, 1) == b"x"
    lines = [json.loads(line) for line in faraway.host.ok("log", "whose", "--json").splitlines()]
    (entry,) = [line for line in lines if line["kind"] == "forwarded"]
    (device,) = faraway.host.json("device", "ls")
    assert entry["actor"] == device["actor"]


def test_a_device_that_is_revoked_is_cut_off_at_once(faraway: Faraway) -> None:
    port = server(faraway.client, "cut", "echo", on="box")
    with closing(faraway.another_client(role="execute")) as guest:
        known = {each["actor"] for each in faraway.host.json("device", "ls")}
        with Forward(guest, "box/cut", f"{port}:0") as forward, forward.connect() as conn:
            conn.sendall(b"x")
            assert read_exactly(conn, 1) == b"x"
            entered = [
                json.loads(line)
                for line in faraway.host.ok("log", "cut", "--json").splitlines()
                if '"forwarded"' in line
            ]
            assert entered[0]["actor"] in known
            faraway.host.ok("device", "revoke", entered[0]["actor"])
            with pytest.raises(ConnectionResetError):
                read_all(conn)


def test_after_the_relay_and_the_daemon_were_gone_new_connections_work(own: Faraway) -> None:
    port = server(own.client, "again", "echo", on="box")
    with Forward(own.client, "box/again", f"{port}:0") as forward:
        for breaking in (lose_relay, lose_daemon):
            with forward.connect() as conn:
                conn.sendall(b"x")
                assert read_exactly(conn, 1) == b"x"
                breaking(own)
                with pytest.raises(ConnectionResetError):
                    read_all(conn)
                assert "1 connection was closed" in forward.until("looking for it again")
            forward.until("the host is back")
        with forward.connect() as conn:
            conn.sendall(b"y")
            assert read_exactly(conn, 1) == b"y"


def lose_relay(own: Faraway) -> None:
    own.relay.process.kill()
    own.relay_again()
    own.until_reached(2)


def lose_daemon(own: Faraway) -> None:
    os.kill(pid_of_daemon(own.host), signal.SIGKILL)
