"""S1, A9, M6: the daemon dies between any two steps; what it did is whole or undone."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import pytest

from faults.crash_points import arm, crashing_host
from faults.hosting import FaultHost, ending_of, is_alive, process_key
from faults.leftovers import assert_in_order
from faults.numbered import PROGRAM, Diary, input_faults, read_ring, stream_faults, taken_of
from faults.raw_socket import RawSocket, frame
from holdfast.model.errors import HoldfastError, HostLost, SessionEnded
from holdfast.model.state import Level, SessionState
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from process.waiting import until

DURING_START = [
    "before-create", "after-create", "before-launch", "after-launch", "after-make_ring",
    "before-save_spec", "after-save_spec", "before-deposit", "after-deposit",
]  # fmt: skip
DURING_END = ["before-bury", "after-bury", "before-release", "after-release"]
DURING_INPUT = ["before-note", "after-note", "before-type", "after-type"]
# Ignores a hang-up: half started, it would stay for ever.
STUBBORN = ["/bin/sh", "-c", "trap '' HUP TERM; while :; do sleep 1000; done"]


@pytest.fixture(scope="module")
def armed_host() -> Iterator[FaultHost]:
    with crashing_host() as host:
        yield host.up()


@pytest.mark.requirement("S1")
@pytest.mark.parametrize("point", DURING_START)
def test_a_start_cut_off_by_a_kill_leaves_a_whole_session_or_none(
    armed_host: FaultHost, level: Level, point: str
) -> None:
    host = armed_host
    environment = {"HOLDFAST_TEST_HOME": str(host.home), "PATH": "/usr/bin:/bin"}
    with host.client() as client:
        gone = arm(host, point)
        with pytest.raises(HostLost):
            client.run(STUBBORN, level=level, env=environment)
        assert not gone.exists(), "the daemon never came by there"
        client.reconnect()
        started = client.sessions()
        for info in started:
            assert process_key(info.pid) is not None, "listed, but not there"
            client.signal(info.id, 9)
            end = ending_of(client, info.id)
            assert end.signal == 9
        assert_in_order(host, client)


@pytest.mark.requirement("A9", "S1")
@pytest.mark.parametrize("point", DURING_END)
def test_an_end_cut_off_by_a_kill_is_still_recorded_truly(
    armed_host: FaultHost, level: Level, point: str
) -> None:
    host = armed_host
    with host.client() as client:
        info = client.run(["/bin/sh", "-c", "read line; exit 7"], level=level)
        gone = arm(host, point)
        client.send(info.id, "go")
        until("the daemon died", lambda: not gone.exists() or None)
        client.reconnect()
        end = until("its end is known", lambda: client.show(info.id).ending)
        assert (end.code, end.signal, end.lost) == (7, None, None)
        with pytest.raises(SessionEnded):
            client.connection.ask(m.Attach(client.connection.next_id(), info.id, 1), 10)
        assert_in_order(host, client)


@pytest.mark.requirement("M6", "S1")
@pytest.mark.parametrize("point", DURING_INPUT)
def test_an_input_cut_off_by_a_kill_is_typed_once_or_known_not_to_be(
    armed_host: FaultHost, level: Level, point: str
) -> None:
    host = armed_host
    lines = host.work / f"lines-{point}-{level}"
    diary = Diary()
    with host.client() as client:
        info = client.run(
            [sys.executable, "-S", PROGRAM, str(lines), "1"], level=level, ring_bytes=1 << 26
        )
        until("it prints", lambda: client.show(info.id).output_offset)
        gone = arm(host, point)
        connection = client.connection
        with pytest.raises(HostLost):
            connection.ask(m.Submit(connection.next_id(), info.id, 1, "x:1"), 20)
        assert not gone.exists()
        client.reconnect()
        taken = taken_of(client.connection, info.id)
        assert taken in (0, 1)
        (diary.resolved_taken if taken else diary.resolved_not_taken).append("x:1")
        # The same input again, by its number, is always safe.
        answer = client.connection.ask(
            m.Submit(client.connection.next_id(), info.id, 1, "x:1" if taken else "x:2"), 20
        )
        assert isinstance(answer, m.Accepted) and answer.repeated == bool(taken)
        if not taken:
            diary.acknowledged.append("x:2")
        client.connection.ask(m.Submit(client.connection.next_id(), info.id, 2, "stop"), 20)
        assert stream_faults(read_ring(client, info.id, b"\nend\n")) == []
        assert input_faults(lines, [diary]) == []
        client.end(info.id)


@pytest.mark.requirement("S1", "M1")
@pytest.mark.parametrize(
    "point", ["before-drain", "after-drain", "before-checkpoint", "after-checkpoint"]
)
def test_output_cut_off_by_a_kill_is_in_the_ring_once(armed_host: FaultHost, point: str) -> None:
    host = armed_host
    with host.client() as client:
        program = [sys.executable, "-S", PROGRAM, str(host.work / f"o-{point}"), "2"]
        # A checkpoint is taken every half ring.
        info = client.run(program, ring_bytes=256 << 10)
        until("it prints", lambda: client.show(info.id).output_offset)
        gone = arm(host, point)
        until("the daemon died", lambda: not gone.exists() or None)
        client.reconnect()
        client.send(info.id, "stop")
        held = tail_of(client, info.id)
        first = held.index(b"\n") + 1
        numbers = [int(word) for word in held[first:].split(b"\n")[:-2]]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        # While no daemon ran, more may have been printed than the ring holds: then the column in
        # which a line begins is not known, and one may be broken in two.
        assert "".join(client.screen(info.id).text.split()).endswith(f"{numbers[-1]}end")
        client.end(info.id)


def tail_of(client: Host, session: str) -> bytes:
    """What the ring still holds, up to its `end`."""
    connection = client.connection
    connection.ask(m.Attach(connection.next_id(), session, 1, True, raw=True, since=0), 20)
    held = bytearray()
    while not held.endswith(b"\nend\n"):
        message = connection.receive(20)
        if isinstance(message, m.Output):
            held += message.data
    connection.ask(m.Detach(connection.next_id(), 1), 20)
    return bytes(held)


@pytest.mark.requirement("S1")
def test_a_daemon_killed_twice_while_it_starts_carries_on_at_the_third(
    armed_host: FaultHost,
) -> None:
    host = armed_host
    with host.client() as client:
        info = client.run(["cat"])
        process = process_key(info.pid)
        assert process is not None
        points = [arm(host, point) for point in ("before-collect", "after-collect", "before-ready")]
        host.kill_daemon()
        until("it died at each", lambda: not any(point.exists() for point in points) or None)
        client.reconnect()
        assert is_alive(process) and client.show(info.id).pid == process.pid
        client.send(info.id, "hello")
        until("it echoes", lambda: "hello" in client.screen(info.id).text or None)
        client.end(info.id)


@pytest.mark.requirement("S3")
def test_a_frame_half_sent_to_a_daemon_that_dies_is_not_applied(armed_host: FaultHost) -> None:
    host = armed_host
    with host.client() as client, RawSocket(host.socket) as raw:
        info = client.run(["cat"])
        whole = frame({"t": "submit", "id": 1, "session": info.id, "seq": 1, "text": "halved"})
        raw.throw(whole[: len(whole) // 2])
        killed = host.kill_daemon()
        host.wait_new_daemon(killed)
        raw.throw(whole[len(whole) // 2 :])
        with contextlib.suppress(HoldfastError, AssertionError):
            raw.hear_all()
        client.reconnect()
        assert "halved" not in client.screen(info.id).text
        client.end(info.id)


@pytest.mark.requirement("S7", "A9")
def test_a_session_shown_as_ended_always_has_its_ending(host: FaultHost, level: Level) -> None:
    with host.client() as client:
        for _ in range(10):
            info = client.run(["/bin/sh", "-c", "read line; exit 3"], level=level)
            client.send(info.id, "go")
            while (shown := client.show(info.id)).state is not SessionState.ENDED:
                pass
            assert shown.ending is not None and shown.ending.code == 3
