"""Clients of the ssh gateway that are slow, lie, flood or say nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from process.acting import add_actor
from process.commanding import PATIENCE_S, Hold
from process.relaying import bounded
from process.sshing import GatewayProcess, make_key

MIB = 1 << 20


@pytest.fixture(scope="module")
def key(host_home: Hold) -> Path:
    """Acts as `bot`, who may write in sessions labelled `ssh`."""
    add_actor(host_home, "bot", "execute", "--label", "ssh")
    made = make_key(host_home, "bot")
    host_home.ok("sshd", "authorize", f"{made}.pub", "--as", "bot")
    return made


@pytest.fixture
def gateway(host_home: Hold, key: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(host_home) as made:
        yield made


def runs(hold: Hold, name: str, *words: str) -> None:
    hold.ok("run", "-d", "--name", name, "--label", "ssh", "--", *words)


def shell(hold: Hold, name: str) -> None:
    runs(hold, name, "bash", "--norc")
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")


def client(gateway: GatewayProcess, session: str, *keys: Path, **options: Any) -> Any:
    """A connection made by asyncssh, which can be told to misbehave."""
    if "sock" not in options:
        options |= {"host": "127.0.0.1", "port": gateway.port}
    return asyncssh.connect(
        username=session,
        client_keys=[str(key) for key in keys] or options.pop("client_keys"),
        known_hosts=None,
        agent_path=None,
        config=None,
        **options,
    )


async def read_until(stream: asyncssh.SSHReader[bytes], wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        piece = await asyncio.wait_for(stream.read(65536), PATIENCE_S)
        assert piece, f"{wanted!r} was not in {seen[-2000:]!r}"
        seen += piece
    return seen


# -- slow ---------------------------------------------------------------------------------------


def _stops_reading(stalled: Any) -> None:
    stalled._transport.pause_reading()


def _stalls_the_new_keys(stalled: Any) -> None:
    """What is to be sent while new keys are agreed on has to wait; and so it waits."""
    stalled._send_kexinit()
    stalled._kexinit_sent = True
    _stops_reading(stalled)


@pytest.mark.parametrize("stall", [_stops_reading, _stalls_the_new_keys])
def test_a_client_that_does_not_read_holds_up_nobody_and_costs_no_memory(
    host_home: Hold, gateway: GatewayProcess, key: Path, stall: Callable[[Any], None]
) -> None:
    """It announces a window of a gigabyte and then reads nothing of the connection: the window
    alone would let the gateway keep all of it."""
    beside, flood = f"beside{stall.__name__}", f"flood{stall.__name__}"
    shell(host_home, beside)
    runs(host_home, flood, "bash", "-c", "read go; seq 6000000; echo all-done; read x")

    async def scene() -> tuple[int, int]:
        async with client(gateway, flood, key) as stalled, client(gateway, beside, key) as well:
            window = await stalled.create_process(
                term_type="xterm", term_size=(80, 24), encoding=None, window=1 << 30
            )
            await read_until(window.stdout, b"attached to flood")
            before = gateway.resident_bytes()
            stall(stalled)
            host_home.ok("send", flood, "--enter", "")
            host_home.ok("wait", flood, "--for", "text:all-done", "--timeout", "60")
            done = await well.run("echo still-here", check=False)
            assert (done.exit_status, done.stdout) == (0, "still-here\n")
            after = gateway.resident_bytes()
            stalled._transport.resume_reading()
            await read_until(window.stdout, b"all-done")
            return before, after

    before, after = bounded(scene(), 100)
    assert after - before < 8 * MIB, f"{(after - before) / MIB:.1f} MiB"


async def test_keys_that_the_child_does_not_take_wait_on_the_clients_side(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    runs(host_home, "deaf", "bash", "-c", "stty raw -echo; cat >/dev/null")

    async with client(gateway, "deaf", key) as pasting:
        window = await pasting.create_process(term_type="xterm", term_size=(80, 24), encoding=None)
        await read_until(window.stdout, b"attached to deaf")
        (child,) = gateway.clients()
        before = gateway.resident_bytes()
        os.kill(child, signal.SIGSTOP)
        for _ in range(64):
            window.stdin.write(b"x" * (MIB // 2))
        unsent = 0
        while unsent != (unsent := window.channel.get_write_buffer_size()):
            await asyncio.sleep(0.5)  # until nothing moves any more
        assert unsent > 28 * MIB
        assert gateway.resident_bytes() - before < 4 * MIB
        os.kill(child, signal.SIGCONT)
        await asyncio.wait_for(window.stdin.drain(), PATIENCE_S)
        pasting.abort()


def test_a_child_that_does_not_leave_is_ended(host_home: Hold, key: Path) -> None:
    shell(host_home, "wedged")
    with GatewayProcess(host_home, SSH_CHILD_GRACE_S=0.2) as gateway:

        async def scene() -> None:
            async with client(gateway, "wedged", key) as leaving:
                await leaving.create_process("read line")
                host_home.ok("wait", "wedged", "--for", "input", "--timeout", "20")
                # Not at a terminal: its hang-up would set a stopped process going again.
                os.kill(gateway.clients()[0], signal.SIGSTOP)

        bounded(scene())
        gateway.clients_are(0)
        assert host_home.json("show", "wedged")["state"] == "input", "the command goes on"


async def test_a_client_that_asks_without_reading_answers_is_not_read_either(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    """Each unknown request is answered. Whoever never reads the answers must not make the gateway
    keep them, so it is not read in turn: its requests pile up on its own side."""

    narrow = _narrow(gateway)
    async with client(gateway, "any", key, sock=narrow) as asking:
        before = gateway.resident_bytes()
        asking._transport.pause_reading()
        for _ in range(60_000):
            asking.send_packet(80, _request())
        unsent = 0
        while unsent != (unsent := asking._transport.get_write_buffer_size()):
            await asyncio.sleep(1.0)  # until nothing moves any more
        assert unsent > 0, "the gateway took everything"
        assert gateway.resident_bytes() - before < 4 * MIB
        asking.abort()


def _narrow(gateway: GatewayProcess) -> socket.socket:
    """A connection for which the kernel keeps little: what is not read is soon noticed."""
    dialled = socket.socket()
    dialled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    dialled.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    dialled.connect(("127.0.0.1", gateway.port))
    dialled.setblocking(False)
    return dialled


def _request() -> bytes:
    """A global request that wants an answer."""
    name = b"nothing@holdfast.invalid"
    return len(name).to_bytes(4, "big") + name + b"\x01"


def test_keys_typed_before_the_client_is_ready_arrive_as_they_are(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    runs(host_home, "early", "bash", "-c", "stty raw -echo; head -c 8 | od -An -tx1; read x")

    async def scene() -> bytes:
        async with client(gateway, "early", key) as early:
            window = await early.create_process(term_type="xterm", encoding=None)
            window.stdin.write(b"ab\rcd\n\x1c\\\x04")  # prefix and backslash: the key
            return await read_until(window.stdout, b"61 62 0d 63 64 0a 1c 04")

    assert b"ab" not in bounded(scene())


# -- liars --------------------------------------------------------------------------------------


def test_an_offered_key_is_no_proof(host_home: Hold, gateway: GatewayProcess, key: Path) -> None:
    """Somebody else's public key is offered and found good; what is then proved is one's own."""
    shell(host_home, "claimed")
    add_actor(host_home, "mallory", "read", "claimed")
    own = make_key(host_home, "mallory")
    host_home.ok("sshd", "authorize", f"{own}.pub", "--as", "mallory")

    async def scene() -> tuple[int | None, str]:
        pair = asyncssh.load_keypairs([str(own)])[0]
        liar = asyncssh.load_keypairs([str(own)])[0]
        liar.public_data = asyncssh.read_public_key(f"{key}.pub").public_data
        async with client(gateway, "claimed", client_keys=[liar, pair]) as lying:
            done = await lying.run("echo in", check=False)
            return done.exit_status, str(done.stderr)

    status, said = bounded(scene())
    assert status == 77 and "not_permitted" in said, (status, said)
    assert "mallory with key" in gateway.log.read_text()
    assert "bot with key" not in gateway.log.read_text()


def test_somebody_elses_key_with_the_wrong_signature_is_refused(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    own = make_key(host_home, "forger")

    async def scene() -> None:
        liar = asyncssh.load_keypairs([str(own)])[0]
        liar.public_data = asyncssh.read_public_key(f"{key}.pub").public_data
        async with client(gateway, "any", client_keys=[liar]):
            pass

    with pytest.raises(asyncssh.PermissionDenied):
        bounded(scene())


@pytest.mark.parametrize("name", ["--timeout=0", "-x", "--"])
def test_a_session_cannot_be_named_like_an_option(
    gateway: GatewayProcess, key: Path, name: str
) -> None:
    async def scene() -> tuple[int | None, str]:
        async with client(gateway, name, key) as named:
            done = await named.run("echo in", check=False)
            return done.exit_status, str(done.stderr)

    status, said = bounded(scene())
    assert status == 64 and "not a valid session name" in said


@pytest.mark.parametrize("command", ["echo a\0b", "x" * 200_000])
def test_a_command_that_no_program_can_be_given_is_refused_in_a_sentence(
    host_home: Hold, gateway: GatewayProcess, key: Path, command: str
) -> None:
    async def scene() -> tuple[int | None, str]:
        async with client(gateway, "any", key) as odd:
            done = await odd.run(command, check=False)
            return done.exit_status, str(done.stderr)

    status, said = bounded(scene())
    assert status == 71 and said.startswith("hold: the gateway cannot start a client"), said


async def test_an_absurd_terminal_is_borne(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    shell(host_home, "absurd")

    async with client(gateway, "absurd", key) as odd:
        window = await odd.create_process(
            term_type="\x1b[31m" * 50, term_size=(2**32 - 1, 2**32 - 1), encoding=None
        )
        await read_until(window.stdout, b"$ ")
        window.change_terminal_size(2**31, 3)
        window.change_terminal_size(80, 24)
        window.stdin.write(b"stty size\r")
        await read_until(window.stdout, b"24 80")


# -- too much -----------------------------------------------------------------------------------


def test_silent_connections_are_bounded_by_address_and_let_go_of(
    host_home: Hold, key: Path
) -> None:
    shell(host_home, "silent")
    with (
        GatewayProcess(host_home, SSH_ADDRESS_UNPROVEN=3, SSH_HANDSHAKE_S=1.0) as gateway,
        contextlib.ExitStack() as held,
    ):
        quiet = [_dial(held, gateway) for _ in range(3)]
        assert all(one.recv(8) == b"SSH-2.0-" for one in quiet)
        assert _dial(held, gateway).recv(8) == b"", "one too many is closed without a word"
        for one in quiet:
            while one.recv(4096):
                pass  # until it is closed: within the handshake's time, not the test's

        assert bounded(_status(gateway, "silent", key)) == 0


def _dial(held: contextlib.ExitStack, gateway: GatewayProcess) -> socket.socket:
    return held.enter_context(socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S))


def test_strangers_take_no_room_from_those_who_are_let_in(host_home: Hold, key: Path) -> None:
    shell(host_home, "room")
    with (
        GatewayProcess(host_home, SSH_UNPROVEN_MAX=2, SSH_CONNECTIONS_MAX=1) as gateway,
        contextlib.ExitStack() as held,
    ):

        async def scene() -> None:
            async with client(gateway, "room", key) as first:
                with pytest.raises(asyncssh.Error):
                    async with client(gateway, "room", key) as second:
                        await second.run("true")
                assert "closed, too many connections" in gateway.log.read_text()
                quiet = [_dial(held, gateway) for _ in range(2)]
                assert all(one.recv(8) == b"SSH-2.0-" for one in quiet)
                assert (await first.run("true", check=False)).exit_status == 0

        bounded(scene())


def test_so_many_keys_may_be_tried_and_no_more(host_home: Hold, key: Path) -> None:
    wrong = [make_key(host_home, f"wrong-{number}") for number in range(4)]
    with GatewayProcess(host_home, SSH_KEYS_TRIED=3) as gateway:

        async def scene() -> None:
            async with client(gateway, "any", *wrong, key):
                pass

        with pytest.raises(asyncssh.DisconnectError, match="too many keys"):
            bounded(scene())


def test_one_connection_has_so_many_channels_and_no_more(host_home: Hold, key: Path) -> None:
    shell(host_home, "many")
    with GatewayProcess(host_home, SSH_CHANNELS_MAX=2) as gateway:

        async def scene() -> None:
            async with client(gateway, "many", key) as greedy:
                for _ in range(2):
                    await greedy.create_process(term_type="xterm", encoding=None)
                with pytest.raises(asyncssh.ChannelOpenError):
                    await greedy.create_process(term_type="xterm", encoding=None)

        bounded(scene())
        gateway.clients_are(0)


def test_garbage_ends_its_own_connection_and_nothing_else(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    shell(host_home, "garbled")
    for garbage in (b"\0" * 100_000, b"GET / HTTP/1.1\r\n\r\n" * 2000, b"SSH-2.0-x\r\n\xff" * 9000):
        with (
            socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as dialled,
            contextlib.suppress(OSError),
        ):
            dialled.sendall(garbage)
            while dialled.recv(65536):
                pass
    assert bounded(_status(gateway, "garbled", key)) == 0


async def _status(gateway: GatewayProcess, session: str, key: Path) -> object:
    async with client(gateway, session, key) as well:
        return (await well.run("true", check=False)).exit_status


# -- the list -----------------------------------------------------------------------------------


def test_a_list_that_others_can_write_lets_nobody_in(host_home: Hold, key: Path) -> None:
    listed = Path(host_home.home, "ssh_authorized")

    async def scene(gateway: GatewayProcess) -> None:
        async with client(gateway, "any", key):
            pass

    listed.chmod(0o622)
    try:
        host_home.fails("not_permitted", "sshd", "ls")
        listed.chmod(0o600)
        with GatewayProcess(host_home) as gateway:
            bounded(scene(gateway))
            listed.chmod(0o622)
            with pytest.raises(asyncssh.PermissionDenied):
                bounded(scene(gateway))
    finally:
        listed.chmod(0o600)
