"""Operators elsewhere who do not read, among a hundred who do."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest

from faults.hosting import resident_bytes
from faults.numbered import read_ring, stream_faults
from faults.reached import Guests, ReachedHost, plain_relay
from faults.remote_actors import ticking, type_line
from faults.slow_lane import SlowLane
from holdfast.model.errors import HoldfastError
from holdfast.sdk.client import Host
from holdfast.sdk.reach.machines import Machine
from holdfast.sdk.reach.relay_thread import reach_loop
from holdfast.wire import record_layer as sealed
from holdfast.wire.heartbeat import Liveness
from holdfast.wire.messages import session as m

READERS = 100
STALLED = 2
PRINTED_BYTES = 3 << 20  # more than a relay and the kernel hold for one that does not read
WITHIN_S = 90.0
# For each that stalls a relay may hold a megabyte of output and what its socket takes; for the
# others only what is on its way to them.
RELAY_GROWTH_BYTES = 16 << 20
DAEMON_GROWTH_BYTES = 16 << 20  # output is read from the ring, which stands already
_CHANNEL = 1


class Reader:
    """One of many in the one thread where relays are spoken to."""

    def __init__(self, machine: Machine, session: str) -> None:
        self.host = Host(machine)
        connection = self.host.connection
        connection.ask(m.Attach(connection.next_id(), session, _CHANNEL, observe=True), 60)
        self.at: int | None = None
        self.held, self.bytes = hashlib.sha256(), 0
        self.resyncs = 0
        self.fault = ""
        self.done = threading.Event()
        self._last = b""

    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.host.connection.sock, self._take)

    def _take(self) -> None:
        connection = self.host.connection
        try:
            connection.read_available()
        except HoldfastError as error:
            self._end(f"{error.code} at {self.at}")
            return
        while (message := connection.take()) is not None:
            if isinstance(message, m.Resync):
                self.resyncs += 1
                self.at = message.offset
            elif isinstance(message, m.Output):
                if message.offset != self.at:
                    self._end(f"at {self.at} came {message.offset}")
                    return
                self.at = message.offset + len(message.data)
                self.held.update(message.data)
                self.bytes += len(message.data)
                self._last = (self._last + message.data)[-5:]
        if self._last == b"\nend\n":
            self._end("")

    def _end(self, fault: str) -> None:
        self.fault = fault
        self._loop.remove_reader(self.host.connection.sock)
        self.done.set()


class Sizes:
    """Resident bytes of processes: at first, and at most."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self.first = self.most = self._now()

    def look(self) -> None:
        self.most = [max(pair) for pair in zip(self.most, self._now(), strict=True)]

    def growth(self) -> list[int]:
        return [most - first for most, first in zip(self.most, self.first, strict=True)]

    def _now(self) -> list[int]:
        return [resident_bytes(pid) for pid in self._pids]


def _patient(*what: Any, **more: Any) -> Liveness:
    return Liveness(*what, **{**more, "patience_s": 2 * WITHIN_S})


@pytest.mark.requirement("R4", "S4")
@pytest.mark.timeout(240)
def test_some_who_do_not_read_among_a_hundred_hold_up_nobody_and_cost_bounded_memory(
    guests: Guests, record_property: Callable[[str, object], None]
) -> None:
    with ExitStack() as stack:
        relay = plain_relay()
        stack.callback(relay.close)
        host = ReachedHost([relay])
        stack.callback(host.down)
        host.up()
        lane = stack.enter_context(SlowLane(relay.port))
        machine, session = guests.join(host.link(), "reader"), ticking(host, 3600, 0.1)
        slow = machine.replace(relays=(lane.url,))
        # However long it takes on a busy machine: they hear nothing and do not give up.
        with mock.patch.object(sealed, "Liveness", _patient):
            stalled = [Reader(slow, session) for _ in range(STALLED)]
        with ThreadPoolExecutor(8) as pool:
            reading = list(pool.map(lambda _: Reader(machine, session), range(READERS)))
        for reader in (*stalled, *reading):
            stack.callback(reader.host.close)
        for reader in reading:
            reach_loop().call_soon_threadsafe(reader.begin)
        lane.stall()
        pid = host.daemon_pid()
        assert pid is not None
        sizes = Sizes(relay.now.process.pid, pid)
        began = time.monotonic()
        type_line(host, session)
        with host.client() as client:
            while client.show(session).output_offset < PRINTED_BYTES:
                assert time.monotonic() < began + WITHIN_S, "it does not print"
                sizes.look()
                time.sleep(0.1)  # how big they are is looked at, there is no event for it
            type_line(host, session)
            for reader in reading:
                assert reader.done.wait(max(1.0, began + WITHIN_S - time.monotonic())), reader.at
                sizes.look()
            took_s = time.monotonic() - began
            printed = read_ring(client, session, b"\nend\n")
        told = {
            "printed": len(printed),
            "took s": round(took_s, 1),
            "relay MB": [size >> 20 for size in (sizes.first[0], sizes.most[0])],
            "daemon MB": [size >> 20 for size in (sizes.first[1], sizes.most[1])],
        }
        for name, value in told.items():
            record_property(name, value)
        print(told)
        assert stream_faults(printed) == [] and len(printed) > PRINTED_BYTES
        whole = hashlib.sha256(printed).digest()
        for reader in reading:
            got = (reader.fault, reader.resyncs, reader.bytes, reader.held.digest())
            assert got == ("", 1, len(printed), whole)
        left_out = asyncio.run(relay.now.metric("left_out_frames_total"))
        assert left_out > 0, "nobody was slow enough for this to show anything"
        relay_growth, daemon_growth = sizes.growth()
        assert relay_growth < RELAY_GROWTH_BYTES and daemon_growth < DAEMON_GROWTH_BYTES
