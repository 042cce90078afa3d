"""A2, R6, S6: a port of a session's own programs on the operator's machine, by `hold forward`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import select
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from holdfast import blocking
from holdfast.model.errors import ConnectionReset, HoldfastError, HostLost, LimitReached
from holdfast.model.limits import FORWARD_CONNECTIONS, FORWARD_RECORD_S, FORWARD_WINDOW_BYTES
from holdfast.wire.messages import forward as f
from holdfast.wire.messages import session as m
from process.acting import add_actor, connected
from process.commanding import PATIENCE_S, Hold
from process.forwarding import SERVERS, Forward, peak_kib, port_of, read_all, read_exactly, server
from process.sdking import reached, run
from process.servers import BIG_BYTES, PIECE

SPARE_KIB = 24 << 10  # what a daemon or client may grow by while 50 MB go through it


def entries(hold: Hold, name: str, kind: str) -> list[dict[str, object]]:
    lines = hold.ok("log", name, "--json").splitlines()
    found = [json.loads(line) for line in lines]
    return [entry for entry in found if entry["kind"] == kind]


def is_refused(forward: Forward, at: int = 0) -> None:
    """A connection is taken in here, and cut off."""
    with pytest.raises(ConnectionResetError), forward.connect(at) as conn:
        read_all(conn)


def daemon_pid(hold: Hold) -> int:
    with connected(hold) as host:
        return host.connection.welcome.daemon_pid


# -- what goes through --------------------------------------------------------------------------


def test_a_page_of_a_server_in_the_session_is_fetched_here(host_home: Hold, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page of the session")
    port = server(host_home, "page", "files", cwd=str(tmp_path))
    with Forward(host_home, "page", f"{port}:0", "-v") as forward:
        assert f"is port {port} of page (python" in forward.lines[0]
        for _ in range(3):
            with urllib.request.urlopen(forward.url, timeout=PATIENCE_S) as answer:
                assert answer.read() == b"the page of the session"
        said = forward.until("3 closed: ")
        assert "1 opened: 127.0.0.1:" in said and f"to 127.0.0.1:{port} (python" in said
        assert forward.interrupt() == 130


@pytest.mark.requirement("R6")
def test_a_program_forwards_a_port_while_a_block_runs_and_acts_as_its_own_actor(
    host_home: Hold, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("the page of a block")
    add_actor(host_home, "opener", "execute", "--all")
    port = server(host_home, "sdk-page", "files", cwd=str(tmp_path))

    def fetched(url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            body: bytes = answer.read()
            return body

    async def work() -> str:
        async with reached(host_home, "opener") as hold:
            session = await hold.session("sdk-page")
            async with session.forward(port, local=0) as forward:
                assert forward.port not in (0, port)
                assert await asyncio.to_thread(fetched, forward.url) == b"the page of a block"
            return forward.url

    url = run(work())
    with pytest.raises(OSError):
        fetched(url)
    log = host_home.ok("log", "sdk-page").splitlines()
    assert [line for line in log if f"port {port}" in line and " opener " in line], log


def test_the_same_without_async_and_a_block_that_is_told_of_the_sessions_end(
    host_home: Hold, tmp_path: Path
) -> None:
    (tmp_path / "index.html").write_text("blocking")
    port = server(host_home, "sdk-blocking", "files", cwd=str(tmp_path))
    with blocking.connect(f"{host_home.home}/run/hold.sock") as hold:
        session = hold.session("sdk-blocking")
        with session.forward(port, local=0) as forward:
            with urllib.request.urlopen(forward.url, timeout=PATIENCE_S) as answer:
                assert answer.read() == b"blocking"
            session.end()
            assert forward.wait() == session.info().ending


def test_a_websocket_stays_open_and_carries_both_ways(host_home: Hold) -> None:
    port = server(host_home, "socket", "websocket")

    async def talk(url: str) -> None:
        blob = os.urandom(1 << 20)
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/ws", max_msg_size=4 << 20) as socket,
        ):
            for word in ("one", "two"):
                await socket.send_str(word)
                assert await socket.receive_str(timeout=PATIENCE_S) == f"you said {word}"
            await socket.send_bytes(blob)
            assert await socket.receive_bytes(timeout=PATIENCE_S) == blob

    with Forward(host_home, "socket", f"{port}:0") as forward:
        asyncio.run(asyncio.wait_for(talk(forward.url), PATIENCE_S))


def test_fifty_megabytes_arrive_intact_and_are_kept_nowhere_on_the_way(host_home: Hold) -> None:
    port, daemon = server(host_home, "big", "big"), daemon_pid(host_home)
    with Forward(host_home, "big", f"{port}:0") as forward:
        with forward.connect() as conn:  # once without counting: what is needed only once
            read_exactly(conn, 1 << 20)
        before = peak_kib(daemon), peak_kib(forward.process.pid)
        with forward.connect() as conn:
            assert hashlib.sha256(read_all(conn)).digest() == big_digest()
        after = peak_kib(daemon), peak_kib(forward.process.pid)
    grown = [now - then for now, then in zip(after, before, strict=True)]
    assert max(grown) < SPARE_KIB, grown


def big_digest() -> bytes:
    found = hashlib.sha256()
    for _ in range(BIG_BYTES // len(PIECE)):
        found.update(PIECE)
    return found.digest()


def test_the_end_of_one_direction_is_carried_and_the_other_goes_on(host_home: Hold) -> None:
    port, data = server(host_home, "half", "digest"), os.urandom(5 << 20)
    with Forward(host_home, "half", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(data)
        conn.shutdown(socket.SHUT_WR)
        assert read_all(conn) == f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode()


def test_a_program_that_said_its_end_first_still_gets_everything(host_home: Hold) -> None:
    port, data = server(host_home, "parting", "parting"), os.urandom(3 << 20)
    with Forward(host_home, "parting", f"{port}:0") as forward:
        with forward.connect() as conn:
            assert read_all(conn) == b"that was all\n"
            conn.sendall(data)
        wanted = f"text:took {hashlib.sha256(data).hexdigest()[:16]}"
        host_home.ok("wait", "parting", "--for", wanted, "--timeout", "30")


def test_what_was_cut_off_there_is_cut_off_here_and_no_ordinary_end(host_home: Hold) -> None:
    port = server(host_home, "reset", "reset")
    with Forward(host_home, "reset", f"{port}:0") as forward, forward.connect() as conn:
        assert read_exactly(conn, 10) == b"half of it"
        conn.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            read_all(conn)
        forward.until("(connection_reset)")


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_port_is_reached_at_whichever_address_it_is_bound_to(
    host_home: Hold, address: str
) -> None:
    name = f"at-{address.replace(':', 'c').replace('.', '-')}"
    port = server(host_home, name, "echo", address)
    with Forward(host_home, name, f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(b"anybody?")
        assert read_exactly(conn, 8) == b"anybody?"


def test_a_server_in_a_network_of_its_own_is_reached_there(host_home: Hold) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network namespace")
    inside = ("unshare", "--net", sys.executable, "-u", SERVERS, "echo", "inside:127.0.0.1")
    host_home.ok("run", "-d", "--name", "inside", "--", *inside)
    port = port_of(host_home, "inside")
    with Forward(host_home, "inside", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(b"in there?")
        assert read_exactly(conn, 9) == b"in there?"


def test_several_ports_are_forwarded_at_once(host_home: Hold) -> None:
    first = server(host_home, "several", "echo")
    with Forward(host_home, "several", f"{first}:0", f"{first}", ports=2) as forward:
        assert len(set(forward.ports)) == 2
        assert forward.ports[1] != first, "that one is the server's own on this machine"
        for at in range(2):
            with forward.connect(at) as conn:
                conn.sendall(b"%d" % at)
                assert read_exactly(conn, 1) == b"%d" % at


# -- slow ends ----------------------------------------------------------------------------------


def test_one_that_does_not_read_holds_back_itself_and_nobody_else(host_home: Hold) -> None:
    port, other = server(host_home, "flood", "flood"), server(host_home, "beside", "echo")
    daemon = daemon_pid(host_home)
    with (
        Forward(host_home, "flood", f"{port}:0") as forward,
        forward.connect() as stuck,
        Forward(host_home, "beside", f"{other}:0") as beside,
    ):
        before = peak_kib(daemon), peak_kib(forward.process.pid)
        assert read_exactly(stuck, len(PIECE)) == PIECE
        sent = until_it_stands_still(host_home, "flood")
        assert sent < 64 << 20, "somebody keeps what nobody takes"
        grown = [peak_kib(daemon) - before[0], peak_kib(forward.process.pid) - before[1]]
        assert max(grown) < SPARE_KIB, grown
        with beside.connect() as conn:
            conn.sendall(b"still here")
            assert read_exactly(conn, 10) == b"still here"
        with forward.connect() as conn:  # over the same way as the one that is stuck
            assert read_exactly(conn, 4 * len(PIECE)) == 4 * PIECE
        assert read_exactly(stuck, 4 * len(PIECE)) == 4 * PIECE, "and it goes on where it was"


def until_it_stands_still(hold: Hold, name: str) -> int:
    """How much its server had sent when it could send no more: the same in two looks, each a
    command of its own."""
    deadline, before = time.monotonic() + PATIENCE_S, ""
    while True:
        now = hold.ok("screen", name).split("sent ")[-1].split()[0]
        if now == before:
            return int(now)
        before = now
        assert time.monotonic() < deadline, "it is sent on and on"


def test_a_program_that_does_not_read_is_not_sent_more_than_the_window(host_home: Hold) -> None:
    port = server(host_home, "deaf", "deaf")
    with connected(host_home) as host:
        connection, session = host.connection, host.show("deaf").id
        connection.ask(f.Forward(connection.next_id(), session, 1, port), PATIENCE_S)
        piece, sent = bytes(16 << 10), 0
        allowed = FORWARD_WINDOW_BYTES
        while sent < 64 << 20:
            if allowed < len(piece):
                try:
                    message = connection.receive(timeout=3)
                except HoldfastError:
                    break  # no room, and none comes
                allowed += message.size if isinstance(message, f.ForwardRoom) else 0
                continue
            connection.send(f.ForwardData(session, 1, piece))
            sent, allowed = sent + len(piece), allowed - len(piece)
        assert FORWARD_WINDOW_BYTES <= sent < 32 << 20
        # One that sends nevertheless breaks the protocol, and is told so.
        with pytest.raises(HoldfastError) as refused:
            with contextlib.suppress(HostLost):  # it is closed while we still send
                for _ in range((64 << 20) // len(piece)):
                    connection.send(f.ForwardData(session, 1, piece))
            while True:
                connection.receive(timeout=PATIENCE_S)
        assert refused.value.code == "protocol_violation"


# -- who may, and to where ------------------------------------------------------------------------


@pytest.fixture
def stranger() -> Iterator[int]:
    """A port of a process that is not of any session."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_of_a_process_outside_the_session_is_refused(host_home: Hold, stranger: int) -> None:
    port, other = server(host_home, "mine", "echo"), server(host_home, "theirs", "echo")
    with Forward(host_home, "mine", f"{stranger}:0", f"{other}:0", ports=2) as forward:
        assert "where nothing listens yet" in forward.lines[0]
        for at, number in ((0, stranger), (1, other)):
            is_refused(forward, at)
            said = forward.until("(port_not_listening)")
            assert f"listens on port {number}; it listens on {port} (python" in said


def test_a_server_that_starts_later_is_reached_then(host_home: Hold, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    host_home.shell("later")
    with Forward(host_home, "later", f"{port}:0") as forward:
        is_refused(forward)
        forward.until("(port_not_listening)")
        (tmp_path / "index.html").write_text("now")
        command = f"cd {tmp_path} && python3 -u -m http.server --bind 127.0.0.1 {port}"
        host_home.ok("send", "later", command, "--enter")
        host_home.ok("wait", "later", "--for", "text:Serving", "--timeout", "30")
        with urllib.request.urlopen(forward.url, timeout=PATIENCE_S) as answer:
            assert answer.read() == b"now"


def test_who_may_only_watch_gets_no_connection(host_home: Hold) -> None:
    port = server(host_home, "watched", "echo")
    add_actor(host_home, "eve", "read", "watched")
    with Forward(host_home, "watched", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(b"x")  # by who may
        assert read_exactly(conn, 1) == b"x"
    with as_actor(host_home, "eve", "watched", f"{port}:0") as forward:
        is_refused(forward)
        status, said = forward.ends()
        assert status == 77 and "eve does not have the right to input" in said
    refused = entries(host_home, "watched", "refused")
    assert refused[0]["actor_name"] == "eve"
    assert refused[0]["body"]["what"] == "forward"  # type: ignore[index]


def as_actor(hold: Hold, actor: str, *words: str) -> Forward:
    other = Hold(hold.home)
    os.rmdir(other.made)
    other.env["HOLDFAST_AS"] = actor
    return Forward(other, *words)


def test_revoking_the_right_cuts_what_is_open_at_once(host_home: Hold) -> None:
    port = server(host_home, "cut", "echo")
    add_actor(host_home, "bob", "execute", "cut")
    with (
        as_actor(host_home, "bob", "cut", f"{port}:0") as forward,
        forward.connect() as conn,
        Forward(host_home, "cut", f"{port}:0") as another,
        another.connect() as untouched,
    ):
        for each in (conn, untouched):
            each.sendall(b"x")
            assert read_exactly(each, 1) == b"x"
        host_home.ok("grant", "bob", "read", "cut")
        with pytest.raises(ConnectionResetError):
            read_all(conn)
        forward.until("bob does not have the right to input")
        is_refused(forward)
        assert forward.ends()[0] == 77
        untouched.sendall(b"y")
        assert read_exactly(untouched, 1) == b"y", "whose right was not taken goes on"


def test_a_right_that_expires_cuts_what_is_open(host_home: Hold) -> None:
    port = server(host_home, "brief", "echo")
    add_actor(host_home, "may", "execute", "brief")
    with as_actor(host_home, "may", "brief", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(b"x")
        assert read_exactly(conn, 1) == b"x"
        host_home.ok("grant", "may", "execute", "brief", "--expires", "1s")
        with pytest.raises(ConnectionResetError):
            read_all(conn)
        forward.until("(envelope_expired)")


def test_the_turn_is_not_needed_and_not_taken(host_home: Hold) -> None:
    port = server(host_home, "turn", "echo")
    add_actor(host_home, "joe", "execute", "turn")
    with connected(host_home, "joe") as joe:
        joe.send("turn", "mine now", enter=False)
        with Forward(host_home, "turn", f"{port}:0") as forward, forward.connect() as conn:
            conn.sendall(b"x")
            assert read_exactly(conn, 1) == b"x"
            assert host_home.json("show", "turn")["holder"] == "joe"


def test_a_halted_session_takes_no_connection_and_no_more_data(host_home: Hold) -> None:
    port = server(host_home, "halt", "echo")
    with Forward(host_home, "halt", f"{port}:0") as forward, forward.connect() as conn:
        conn.sendall(b"x")
        assert read_exactly(conn, 1) == b"x"
        host_home.ok("halt", "halt")
        is_refused(forward)
        forward.until("(session_halted)")
        conn.sendall(b"kept for later?")
        with pytest.raises(ConnectionResetError):
            read_all(conn)
        host_home.ok("resume", "halt")
        with forward.connect() as after:
            after.sendall(b"y")
            assert read_exactly(after, 1) == b"y"


# -- the record, and limits -----------------------------------------------------------------------


def test_connections_are_recorded_with_their_actor_the_first_at_once_the_rest_as_a_count(
    host_home: Hold,
) -> None:
    port = server(host_home, "told", "echo")
    add_actor(host_home, "ann", "execute", "told")
    began = time.monotonic()
    with as_actor(host_home, "ann", "told", f"{port}:0") as forward:
        for number in range(1, 6):
            with forward.connect() as conn:
                conn.sendall(b"x")
                assert read_exactly(conn, 1) == b"x"
            if number == 1:
                (first,) = entries(host_home, "told", "forwarded")
        so_far = entries(host_home, "told", "forwarded")
        within = time.monotonic() - began < FORWARD_RECORD_S
        assert so_far == [first] or not within, "within the minute they are counted"
    body = first["body"]
    assert isinstance(body, dict)
    assert first["actor_name"] == "ann"
    assert (body["port"], body["count"]) == (port, 1) and body["process"].startswith("python")
    assert "ann" in host_home.ok("log", "told")
    assert f"opened a connection to port {port} (python" in host_home.ok("log", "told")
    host_home.ok("end", "told")
    told = entries(host_home, "told", "forwarded")
    assert {each["actor_name"] for each in told} == {"ann"}
    assert sum(each["body"]["count"] for each in told) == 5  # type: ignore[index]
    if within:
        assert "opened 4 more connections" in host_home.ok("log", "told")


def test_more_connections_than_one_operator_may_have_are_refused_by_name(host_home: Hold) -> None:
    port = server(host_home, "many", "echo")
    with connected(host_home) as host:
        connection, session = host.connection, host.show("many").id
        for number in range(200):
            connection.send(f.Forward(connection.next_id(), session, number, port))
        opened: set[int] = set()
        refused: list[str] = []
        while len(opened) + len(refused) < 200:
            message = connection.receive(PATIENCE_S)
            if isinstance(message, f.Forwarded):
                opened.add(message.number)
            elif isinstance(message, m.Failed):
                refused.append(message.code)
        assert opened == set(range(FORWARD_CONNECTIONS))
        assert set(refused) == {LimitReached.code}
        connection.send(f.ForwardClosed(session, 7, "connection_reset"))
        again = connection.ask(f.Forward(connection.next_id(), session, 7, port), PATIENCE_S)
        assert isinstance(again, f.Forwarded), "there is room again when one is closed"


def test_a_number_given_up_before_it_was_open_can_be_used_again_at_once(host_home: Hold) -> None:
    port = server(host_home, "hasty", "echo")
    with connected(host_home) as host:
        connection, session = host.connection, host.show("hasty").id
        for _ in range(20):
            connection.send(f.Forward(connection.next_id(), session, 1, port))
            connection.send(f.ForwardClosed(session, 1, "connection_reset"))
        connection.send(f.Forward(connection.next_id(), session, 1, port))
        connection.send(f.ForwardData(session, 1, b"hasty"))
        for number in range(connection.last_id - 20, connection.last_id):
            # Given up before it was open, or a moment after: both are right.
            with contextlib.suppress(ConnectionReset):
                assert isinstance(connection.answer_to(number, PATIENCE_S), f.Forwarded)
        assert isinstance(connection.answer_to(connection.last_id, PATIENCE_S), f.Forwarded)
        assert connection.receive(PATIENCE_S) == f.ForwardData(session, 1, b"hasty")


def test_messages_of_a_connection_that_is_not_open_are_passed_over(host_home: Hold) -> None:
    session = host_home.shell("nothing")
    with connected(host_home) as host:
        for message in (
            f.ForwardData(session, 3, b"x"),
            f.ForwardRoom(session, 3, 5),
            f.ForwardEnd(session, 3),
            f.ForwardClosed(session, 3, "connection_reset"),
        ):
            host.connection.send(message)
        assert host.show("nothing").id == session


def test_the_descriptors_of_connections_that_are_over_are_given_back(host_home: Hold) -> None:
    port, daemon = server(host_home, "given", "echo"), daemon_pid(host_home)
    before = len(os.listdir(f"/proc/{daemon}/fd"))
    with Forward(host_home, "given", f"{port}:0", "-v") as forward:
        for _ in range(50):
            with forward.connect() as conn:
                conn.sendall(b"x")
                assert read_exactly(conn, 1) == b"x"
        forward.until("50 closed")
        left = forward.connect()
        left.sendall(b"x")
        assert read_exactly(left, 1) == b"x"
        forward.interrupt()
        left.close()
    deadline = time.monotonic() + PATIENCE_S
    while len(os.listdir(f"/proc/{daemon}/fd")) > before:
        assert time.monotonic() < deadline, os.listdir(f"/proc/{daemon}/fd")
        select.select([], [], [], 0.02)


# -- what comes and goes --------------------------------------------------------------------------


def test_after_the_daemon_is_killed_open_connections_are_closed_and_new_ones_work(
    fresh_home: Hold,
) -> None:
    fresh_home.ok("up", "-d")
    port = server(fresh_home, "again", "echo")
    with Forward(fresh_home, "again", f"{port}:0") as forward:
        with forward.connect() as conn:
            conn.sendall(b"x")
            assert read_exactly(conn, 1) == b"x"
            os.kill(daemon_pid(fresh_home), 9)
            with pytest.raises(ConnectionResetError):
                read_all(conn)
            assert "1 connection was closed" in forward.until("looking for it again")
        with forward.connect() as conn:  # it waits until the host is back
            conn.sendall(b"y")
            assert read_exactly(conn, 1) == b"y"
        forward.until("the host is back")


def test_it_ends_with_the_session_and_says_so(host_home: Hold) -> None:
    port = server(host_home, "ends", "echo")
    with Forward(host_home, "ends", f"{port}:0") as forward:
        with forward.connect() as conn:
            conn.sendall(b"x")
            assert read_exactly(conn, 1) == b"x"
            host_home.ok("end", "ends")
            with contextlib.suppress(ConnectionResetError):
                assert read_all(conn) == b"", "its program's end, or a cut"
        status, said = forward.ends()
        assert status == 0 and "the session ended: " in said


def test_what_cannot_be_is_said_in_one_line(host_home: Hold, stranger: int) -> None:
    host_home.fails("no_such_session", "forward", "nobody", "80")
    host_home.fails("usage", "forward", "nobody", "0")
    host_home.fails("usage", "forward", "nobody", "80:x")
    host_home.fails("usage", "forward", "nobody", "80", "--listen", "nowhere")
    host_home.shell("plain")
    said = host_home.fails("invalid_argument", "forward", "plain", f"80:{stranger}")
    assert f"cannot listen on 127.0.0.1 port {stranger}" in said
