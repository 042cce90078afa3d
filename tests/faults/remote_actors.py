"""Actors that come through relays, on one session: what they do and are told goes into one history
(histories.py). And readers, who follow what another session prints, as raw output or as a view.

Each remembers for how long it was away whenever it lost its way.
"""

from __future__ import annotations

import sys
import threading
import time
from math import inf
from pathlib import Path

from faults.actors_at_work import Company, Worker
from faults.histories import UNKNOWN, Op
from faults.numbered import Follower
from faults.reached import ReachedHost
from holdfast.model.errors import HoldfastError, HostLost
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.retry_policy import NOT_DELIVERED, RECONNECTABLE
from holdfast.sdk.connection import Connection
from holdfast.sdk.identity import Identity
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.messages import session as m
from process.waiting import until

_PROGRAMS = Path(__file__).with_name("programs")
COME_BACK_S = 90.0  # with everything broken at once; a single fault costs far less
_RETRY_S = 0.1
_END = b"\nend\n"
_NOT_DELIVERED = {kind.code for kind in NOT_DELIVERED}
_VIEW = 3


class FarHand(Worker):
    """One actor's client somewhere else. Who it is, its channel has proven."""

    acts_per_s = 7.0  # for two minutes: others need the machine too

    def __init__(
        self, host: ReachedHost, machine: Machine, session: str, seed: int, others: list[Identity]
    ) -> None:
        super().__init__(host, session, identity.load(machine.identity), seed, others)
        self._machine = machine
        self._lost_at = 0.0
        self.away: list[float] = []

    def connected(self) -> Connection:
        deadline = time.monotonic() + COME_BACK_S
        while self.connection is None:
            try:
                self.connection = Connection(self._machine, self.operator, "test")
            except HoldfastError as error:
                assert isinstance(error, RECONNECTABLE), (
                    f"{error.code} is nothing to wait for: {error}"
                )
                assert time.monotonic() < deadline, f"{self.name} found no way back: {error}"
                self.stop.wait(_RETRY_S)
        if self._lost_at:
            self.away.append(time.monotonic() - self._lost_at)
            self._lost_at = 0.0
        return self.connection

    def ask(self, op: Op, request: m.Request) -> m.Answer | None:
        answer = super().ask(op, request)
        if op.code in _NOT_DELIVERED:  # this time; what became of it before is not said
            op.end, op.outcome, op.code = inf, UNKNOWN, ""
            self.leave()
        return answer

    def leave(self) -> None:
        if self.connection is not None:
            self._lost_at = time.monotonic()
        super().leave()


class FarCompany(Company):
    """A session on the host, and these devices at work on it."""

    def __init__(self, host: ReachedHost, machines: list[Machine], seed: int) -> None:
        self.host = host
        self.read = host.work / f"read-{seed}"
        with host.client() as client:
            info = client.run(
                [sys.executable, "-S", str(_PROGRAMS / "recorder.py"), str(self.read)]
            )
            until("it reads", lambda: self.read.exists())
        self.session, self.pid = info.id, info.pid
        self.directory = host.home / "sessions" / info.id
        who = [identity.load(machine.identity) for machine in machines]
        self.hands = [
            FarHand(host, machine, self.session, seed * 100 + number, who)
            for number, machine in enumerate(machines)
        ]
        self.kills = self.early = 0

    @property
    def away(self) -> list[float]:
        return [seconds for hand in self.hands for seconds in getattr(hand, "away", [])]


class FarFollower(Follower):
    """Reads all that is printed, from the offset it had whenever it comes back."""

    def __init__(self, machine: Machine, session: str) -> None:
        threading.Thread.__init__(self, daemon=True)
        self._client, self._session = Host(machine), session
        self.held = bytearray()
        self.reconnects = 0
        self.fault = ""

    def run(self) -> None:
        while not self.held.endswith(_END) and not self.fault:
            try:
                self._follow(self._client)
            except RECONNECTABLE:
                self.reconnects += 1
                self.fault = come_back(self._client)
            except HoldfastError as error:
                self.fault = f"{error.code}: {error}"
        self._client.close()


class FarView(threading.Thread):
    """Sees what everybody sees, by what is sent once to all: screens, and output that follows each
    without a hole."""

    def __init__(self, machine: Machine, session: str) -> None:
        super().__init__(daemon=True)
        self._client, self._session = Host(machine), session
        self.reconnects = self.resyncs = self.bytes = 0
        self.at: int | None = None  # up to which offset it has seen
        self.last = b""
        self.fault = ""
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set() and not self.fault:
            try:
                self._watch()
            except RECONNECTABLE:
                self.reconnects += 1
                self.fault = come_back(self._client)
            except HoldfastError as error:
                self.fault = f"{error.code}: {error}"
        self._client.close()

    def _watch(self) -> None:
        """A screen first, or, when it comes back, what follows on what it has seen."""
        connection = self._client.connection
        request = m.Attach(connection.next_id(), self._session, _VIEW, observe=True, since=self.at)
        connection.ask(request, 30)
        while not self.stop.is_set():
            message = connection.receive(60)
            if isinstance(message, m.Resync):
                self.resyncs += 1
                self.at, self.last = message.offset, message.data[-2000:]
            elif isinstance(message, m.Output):
                if message.offset != self.at:
                    self.fault = f"at {self.at} came output of {message.offset}"
                    return
                self.at = message.offset + len(message.data)
                self.bytes += len(message.data)
                self.last = (self.last + message.data)[-2000:]
            elif isinstance(message, m.Dismissed | m.Closed):
                raise HostLost("it was sent away")


def come_back(client: Host) -> str:
    """Why it could not, if it could not."""
    try:
        client.reconnect(COME_BACK_S)
    except HoldfastError as error:
        return f"no way back: {error.code}: {error}"
    return ""


def ticking(host: ReachedHost, lines: int, every_s: float) -> str:
    """A session that prints so many numbers so often, between one line that is typed and another;
    gives its id."""
    argv = [sys.executable, "-S", str(_PROGRAMS / "ticking.py"), str(lines), str(every_s)]
    with host.client() as client:
        return client.run(argv, ring_bytes=64 << 20).id


def type_line(host: ReachedHost, session: str) -> None:
    with host.client() as client:
        client.send(session, "")
