"""Another unix user takes all it can get: connections, sessions, log lines. Root is not kept from
anything."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.hosting import FaultHost, descriptor_count
from faults.raw_socket import RawSocket
from holdfast.model.errors import LimitReached, StorageFailed
from holdfast.model.limits import GREETING_S, OPERATORS_MAX, USER_CONNECTIONS, USER_DISK_LOOK_S
from holdfast.model.state import Level
from holdfast.sdk import connection
from holdfast.sdk.client import Host
from holdfast.wire.frames import encode
from holdfast.wire.messages import session as m
from process.waiting import until

PROGRAMS = Path(__file__).with_name("programs")
HALT_BOUND_S = 5.0  # with the start of a Python process, on a busy machine

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="becoming other users needs root"),
    pytest.mark.timeout(90),
]


@contextlib.contextmanager
def crowd(host: FaultHost, user: str, count: int, said: bytes = b"") -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "crowd.py"), user, str(count), said.hex()],
        cwd=host.home / "run",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"{count}\n"
        yield
    finally:
        process.kill()
        process.communicate(timeout=10)


def start_as(host: FaultHost, user: str, ring_bytes: int = 0) -> str:
    """Start a session as another unix user; gives the refusal, or ""."""
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "sleeper_of.py"), user, str(ring_bytes)],
        cwd=host.home / "run",
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.requirement("A5")
def test_a_thousand_silent_connections_of_another_user_do_not_keep_root_from_a_halt(
    host: FaultHost,
) -> None:
    begun = host.hold("run", "-d", "--name", "x", "--", "sh", "-c", "while :; do :; done")
    assert begun.returncode == 0, begun.stderr
    with crowd(host, "nobody", OPERATORS_MAX):
        began = time.monotonic()
        done = host.hold("halt", "x")
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - began < HALT_BOUND_S


@pytest.mark.requirement("A5")
def test_a_thousand_silent_connections_from_inside_a_session_keep_its_own_user_from_nothing(
    host: FaultHost, level: Level
) -> None:
    words = sys.executable, str(PROGRAMS / "crowd.py"), "root", str(OPERATORS_MAX), ""
    with host.client() as client:
        client.run(words, name="crowd", level=level, cwd=f"{host.home}/run")
        until("they are connected", lambda: str(OPERATORS_MAX) in client.screen("crowd").text)
    began = time.monotonic()
    done = host.hold("halt", "crowd")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < HALT_BOUND_S


@pytest.mark.requirement("A5")
def test_silent_connections_in_the_places_of_the_hosts_own_user_give_way(host: FaultHost) -> None:
    begun = host.hold("run", "-d", "--name", "x", "--", "cat")
    assert begun.returncode == 0, begun.stderr
    with crowd(host, "root", OPERATORS_MAX):
        done = host.hold("halt", "x")
        assert done.returncode == 0, done.stderr


def test_one_users_connections_are_bounded_and_leave_room_for_others(host: FaultHost) -> None:
    daemon = host.daemon_pid()
    assert daemon is not None
    idle = descriptor_count(daemon)
    with crowd(host, "nobody", 2 * USER_CONNECTIONS):
        until(
            "the others are closed",
            lambda: descriptor_count(daemon) <= idle + USER_CONNECTIONS or None,
            GREETING_S / 2,  # at once, and not because they do not greet
        )
        assert start_as(host, "daemon") == ""


def test_a_greeting_that_never_comes_is_waited_for_no_longer_than_said(host: FaultHost) -> None:
    with RawSocket(f"{host.home}/run/hold.sock", greet=False) as silent:
        began = time.monotonic()
        (refusal,) = silent.hear_all(timeout_s=GREETING_S + 5)
        assert GREETING_S - 0.5 < time.monotonic() - began < GREETING_S + 4
        assert isinstance(refusal, m.Failed)
        assert refusal.code == "protocol_violation" and "hello" in refusal.message


def test_one_that_greeted_may_be_silent_for_as_long_as_it_likes(host: FaultHost) -> None:
    with RawSocket(f"{host.home}/run/hold.sock", greet=False) as late, host.client() as early:
        late.hear_all(timeout_s=GREETING_S + 5)  # the deadline of both has passed
        assert early.sessions() == ()


def test_a_flood_of_malformed_strangers_leaves_a_bounded_log(host: FaultHost) -> None:
    """On the socket no line is written of them; of those at a relay there is a count, see
    test_reach_bad_input.py."""
    before = len(host.log())
    for _ in range(5):
        with crowd(host, "nobody", 1000, b"\x00\x00\x00\x05\xc1abcd" * 4):
            pass
    assert host.hold("ls").returncode == 0
    assert host.log()[before:] == ""


@pytest.mark.parametrize(
    ("setting", "value", "ring", "named"),
    [
        ("user_sessions", 1, 0, "limit of 1 live sessions"),
        ("user_ring_bytes", 1 << 20, 65536, "of 1048576 bytes"),
        ("user_disk_bytes", 1, 0, "bytes of disk"),
    ],
)
def test_a_quota_refuses_another_user_with_a_hint_and_not_root(
    setting: str, value: int, ring: int, named: str
) -> None:
    with FaultHost() as host:
        (host.home / "config.toml").write_text(f"{setting} = {value}\n")
        host.up()
        assert start_as(host, "nobody") == ""
        refused = until(  # what is on disk is looked at now and then
            "a quota refuses", lambda: start_as(host, "nobody", ring) or None, 2 * USER_DISK_LOOK_S
        )
        code, message, hint = refused.split("|")
        assert code == "limit_reached" and named in message
        assert setting in hint
        for name in ("a", "b"):
            assert host.hold("run", "-d", "--name", name, "--", "cat").returncode == 0
        if setting != "user_disk_bytes":
            assert start_as(host, "daemon") == ""  # each user has its own


@pytest.mark.requirement("M9")
def test_a_running_session_past_its_users_disk_quota_takes_no_input_and_can_still_be_stopped() -> (
    None
):
    with FaultHost() as host:
        quota = 768 << 10
        (host.home / "config.toml").write_text(f"user_disk_bytes = {quota}\n")
        host.up()
        with host.client() as client:
            full = client.run(["cat"], user="nobody", cwd="/")
            roots = client.run(["cat"])
            with pytest.raises(StorageFailed, match=f"quota is {quota}") as refused:
                for _ in range(quota // 1000):
                    client.send(full.id, "x" * 2000)
            assert "user_disk_bytes" in refused.value.hint
            directory = host.home / "sessions" / full.id
            assert sum(each.stat().st_blocks * 512 for each in directory.iterdir()) <= quota
            with pytest.raises(StorageFailed):
                client.send(full.id, "never" * 400)
            client.send(roots.id, "x" * 2000)  # the host's own user has no quota
            for verb in ("halt", "resume", "seize"):
                done = host.hold(verb, full.id)
                assert done.returncode == 0, done.stderr
                assert "recorded" not in done.stdout + done.stderr, verb
            assert "never" not in client.screen(full.id).text
            assert host.hold("end", full.id).returncode == 0
        verified = host.hold("verify", full.id)
        assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_client_learns_why_it_was_refused_though_nobody_read_its_greeting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "hold.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()
        connect = connection._connect

        def connect_and_be_refused(path: str) -> socket.socket:
            ours = connect(path)
            with listener.accept()[0] as theirs:
                theirs.sendall(encode(m.Failed(0, "limit_reached", "full", "later")))
            return ours

        monkeypatch.setattr(connection, "_connect", connect_and_be_refused)
        with pytest.raises(LimitReached, match="full"):
            Host(path=path)


def test_a_quota_of_connections_is_a_setting() -> None:
    with FaultHost() as host:
        (host.home / "config.toml").write_text("user_connections = 2\n")
        host.up()
        with crowd(host, "nobody", 2):
            refused = start_as(host, "nobody")
            assert refused.startswith("limit_reached|you have your limit of 2 connections")
            assert "user_connections" in refused
            assert start_as(host, "daemon") == ""
