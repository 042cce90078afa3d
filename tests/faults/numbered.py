"""The numbered stream and the numbered inputs, and the judge of both.

Each operator keeps a diary of what it was told; the session's own program keeps what it got. The
judge knows nothing of how the host works: it compares the two.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from faults.hosting import FaultHost, ProcessKey, process_key
from holdfast.model.errors import HoldfastError, HostDown, HostLost, InputUnknown
from holdfast.model.state import Level
from holdfast.sdk.client import Host
from holdfast.sdk.connection import Connection
from holdfast.wire.messages import session as m
from process.waiting import until

PROGRAM = str(Path(__file__).with_name("programs") / "numbered.py")
RING_BYTES = 96 << 20  # holds all that is printed while a test runs, so nothing may be missing
_ASKING, _READING = 1, 2  # channels: output still under way on one is not the other's


@dataclass
class Diary:
    """What one operator was told of each of its inputs."""

    acknowledged: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    resolved_taken: list[str] = field(default_factory=list)
    resolved_not_taken: list[str] = field(default_factory=list)


@dataclass
class NumberedSession:
    """A session that runs the program, with who it is in the kernel's eyes."""

    id: str
    lines: Path
    process: ProcessKey

    @classmethod
    def start(
        cls, host: FaultHost, level: Level, seed: int, rest_s: float = 0.0
    ) -> NumberedSession:
        """`rest_s`: after each burst of output."""
        lines = host.work / f"lines-{level}-{seed}"
        with host.client() as client:
            info = client.run(
                [sys.executable, "-S", PROGRAM, str(lines), str(seed), str(rest_s)],
                level=level,
                ring_bytes=RING_BYTES,
            )
            until("it prints", lambda: client.show(info.id).output_offset)
        process = process_key(info.pid)
        assert process is not None
        return cls(info.id, lines, process)

    def stop_printing(self, client: Host) -> bytes:
        """All it ever printed, as the ring holds it, once it has stopped."""
        client.send(self.id, "stop")
        return read_ring(client, self.id, b"\nend\n")


def read_ring(client: Host, session: str, last: bytes) -> bytes:
    """Everything from offset 0 up to `last`, by the offsets the host gives."""
    connection = client.connection
    request = m.Attach(connection.next_id(), session, _READING, observe=True, raw=True, since=0)
    connection.ask(request, timeout=20)
    held = bytearray()
    while not held.endswith(last):
        message = connection.receive(timeout=20)
        assert not isinstance(message, m.Gap), f"the ring is too small for this test: {message}"
        if isinstance(message, m.Output) and message.channel == _READING:
            assert message.offset == len(held), "output out of order"
            held += message.data
    connection.ask(m.Detach(connection.next_id(), _READING), timeout=20)
    return bytes(held)


class Follower(threading.Thread):
    """Reads the raw output and, when the daemon dies, goes on from the offset it had."""

    def __init__(self, host: FaultHost, session: str) -> None:
        super().__init__(daemon=True)
        self._client, self._session = Host(path=host.socket), session
        self.held = bytearray()
        self.reconnects = 0
        self.fault = ""

    def run(self) -> None:
        client = self._client
        while not self.held.endswith(b"\nend\n") and not self.fault:
            try:
                self._follow(client)
            except (HostLost, HostDown):
                self.reconnects += 1
                client.reconnect()
            except HoldfastError as error:
                self.fault = f"{error.code}: {error}"
        client.close()

    def _follow(self, client: Host) -> None:
        connection, since = client.connection, len(self.held)
        request = m.Attach(connection.next_id(), self._session, 1, True, raw=True, since=since)
        connection.ask(request)
        while not self.held.endswith(b"\nend\n"):
            message = connection.receive(timeout=30)
            if isinstance(message, m.Output) and message.offset == len(self.held):
                self.held += message.data
            elif isinstance(message, m.Output | m.Gap):
                self.fault = f"at {len(self.held)} came {message.tag} of {message.offset}"
                return


class InputOperator(threading.Thread):
    """Submits numbered lines one after the other, and keeps a diary."""

    def __init__(self, host: FaultHost, session: str, tag: str) -> None:
        super().__init__(daemon=True)
        self.client = Host(path=host.socket)
        self.session, self.tag = session, tag
        self.diary = Diary()
        self.stop = threading.Event()
        self.fault = ""

    def run(self) -> None:
        number = 0
        while not self.stop.wait(0.002) and not self.fault:
            number += 1
            try:
                self.submit(f"{self.tag}:{number}")
            except HoldfastError as error:
                self.fault = f"{error.code}: {error}"
        self.client.close()

    def submit(self, text: str) -> None:
        raise NotImplementedError


class SdkOperator(InputOperator):
    """As any program would, through the SDK."""

    def submit(self, text: str) -> None:
        try:
            self.client.send(self.session, text)
            self.diary.acknowledged.append(text)
        except InputUnknown:
            self.diary.unknown.append(text)
            self.client.reconnect()


class CarefulOperator(InputOperator):
    """Never sends an input twice: when the host is lost it asks how far the session had got, and
    believes the answer."""

    _seq = 0

    def submit(self, text: str) -> None:
        self._seq += 1
        connection = self.client.connection
        request = m.Submit(connection.next_id(), self.session, self._seq, text)
        try:
            answer = connection.ask(request)
        except (HostLost, HostDown):
            self._resolve(text)
            return
        if not isinstance(answer, m.Accepted) or answer.repeated:
            self.fault = f"a new input was answered {answer}"
        self.diary.acknowledged.append(text)

    def _resolve(self, text: str) -> None:
        while True:
            try:
                self.client.reconnect()
                taken = taken_of(self.client.connection, self.session)
                break
            except (HostLost, HostDown):
                continue
        if taken not in (self._seq - 1, self._seq):
            self.fault = f"sent up to {self._seq}, the host says it took {taken}"
        diary = self.diary
        (diary.resolved_taken if taken == self._seq else diary.resolved_not_taken).append(text)
        self._seq = taken


def taken_of(connection: Connection, session: str) -> int:
    """The last input of this operator the session took."""
    request = m.Attach(connection.next_id(), session, _ASKING, observe=True, raw=True)
    answer = connection.ask(request)
    assert isinstance(answer, m.Attached)
    connection.ask(m.Detach(connection.next_id(), _ASKING))
    return answer.input_seq


def stream_faults(held: bytes) -> list[str]:
    """What is wrong with a numbered stream that begins at 0 and ends with `end`."""
    words = held.split(b"\n")
    if words[-2:] != [b"end", b""]:
        return [f"the stream ends with {held[-40:]!r}"]
    numbers = words[:-2]
    for index, word in enumerate(numbers):
        if word != b"%d" % index:
            around = b" ".join(numbers[max(0, index - 2) : index + 3])
            return [f"at number {index} of {len(numbers)}: {around[:200]!r}"]
    return []


def input_faults(lines: Path, diaries: list[Diary]) -> list[str]:
    """Where what the session got and what its operators were told disagree."""
    got = lines.read_text(errors="replace").splitlines() if lines.exists() else []
    counts = Counter(got)
    faults = [f"applied {count} times: {line}" for line, count in counts.items() if count > 1]
    expected: set[str] = set()
    for diary in diaries:
        sure = [*diary.acknowledged, *diary.resolved_taken]
        faults += [f"acknowledged and lost: {line}" for line in sure if not counts[line]]
        faults += [
            f"said not taken, yet applied: {x}" for x in diary.resolved_not_taken if counts[x]
        ]
        expected |= {*sure, *diary.resolved_not_taken, *diary.unknown}
    faults += [f"nobody sent this: {line!r}" for line in counts if line not in expected]
    last: dict[str, int] = {}
    for line in got:
        tag, _, number = line.partition(":")
        if number.isdecimal() and int(number) <= last.get(tag, 0):
            faults.append(f"out of order: {line} after {tag}:{last[tag]}")
        last[tag] = int(number) if number.isdecimal() else 0
    return faults[:20]
