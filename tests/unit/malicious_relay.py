"""Two real ends of a channel, and between them a relay that does to what it carries whatever a test
tells it to: hold back, drop, repeat, move, alter, make up, and send elsewhere.

It sees every byte, as a relay does, and has no key of anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.model.device import Device, device_text
from holdfast.model.errors import JournalDamaged, NotPermitted
from holdfast.model.ids import OperatorId, SessionId
from holdfast.wire import output_broadcast
from holdfast.wire.channel import (
    HostChannel,
    HostHandshake,
    OperatorChannel,
    OperatorHandshake,
    Pace,
)
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.input_chain import InputBook, InputStream
from holdfast.wire.key_agreement import Aead, KeyPair
from holdfast.wire.output_broadcast import HEADER, SIGNED, Broadcaster, OutputKey
from holdfast.wire.output_listener import HeardOutput, Listener
from holdfast.wire.record_layer import RecordKind
from holdfast.wire.signed_input import Mark, SignedInput, genesis

SESSION = SessionId.of_key(bytes(32))
OTHER_SESSION = SessionId.of_key(b"\x01" * 32)
EPOCH = 7

_fresh = count(1)


def fresh() -> bytes:
    """32 bytes that no test has had before; which ones does not matter here."""
    return (0x5EED << 200 | next(_fresh)).to_bytes(32)


class Keys:
    """A device's private halves, and the public one."""

    def __init__(self) -> None:
        signing = Ed25519PrivateKey.from_private_bytes(fresh())
        self.sign: Callable[[bytes], bytes] = signing.sign
        self.static = KeyPair(fresh())
        key = signing.public_key().public_bytes_raw()
        self.device = Device(
            key, self.static.public, signing.sign(device_text(key, self.static.public))
        )


class Host:
    """One incarnation on a host. `writers` are the actors that may write."""

    def __init__(
        self, keys: Keys | None = None, session: SessionId = SESSION, epoch: int = EPOCH
    ) -> None:
        self.keys = keys or Keys()
        self.incarnation = Incarnation(session, epoch)
        self.book = InputBook(self.incarnation)
        self.broadcaster = Broadcaster(self.incarnation, self.keys.sign, fresh(), 0.0)
        self.writers: set[str] = set()
        self.taken: list[SignedInput] = []  # checked and permitted, in order

    def answer(
        self, message: bytes, now: float = 0.0, pace: Pace | None = None
    ) -> tuple[bytes, HostChannel]:
        asked = HostHandshake(self.incarnation, self.keys.static, KeyPair(fresh()), message)
        return asked.answer(self.book, self.judge, now, pace or Pace())

    def judge(self, entry: SignedInput) -> None:
        if entry.key.hex() not in self.writers:
            raise NotPermitted("may only watch")

    def receive(self, channel: HostChannel, record: bytes, now: float = 0.0) -> None:
        got = channel.receive(record, now)
        if isinstance(got, SignedInput):
            self.taken.append(got)

    @property
    def typed(self) -> list[bytes]:
        return [entry.payload for entry in self.taken]


class Operator:
    """One client: its device, the stream of its latest channel, and what it has read."""

    stream: InputStream

    def __init__(self, host: Host, keys: Keys | None = None, *, writes: bool = True) -> None:
        self.keys = keys or Keys()
        self.session, self.knows = host.incarnation.session, host.keys.device
        self.name = OperatorId(fresh()[16:].hex())
        self.floor = EpochFloor()
        self.listener = Listener(self.session, self.knows.key, self.floor)
        if writes:
            host.writers.add(self.keys.device.key.hex())

    def dial(self, stream: InputStream | None = None) -> OperatorHandshake:
        """A handshake for a new stream, as clients have it, or for this one."""
        name = OperatorId(fresh()[16:].hex())
        self.stream = stream or InputStream(
            self.session, self.keys.device.key, name, self.keys.sign
        )
        return OperatorHandshake(
            self.stream, self.keys.device, self.keys.static, KeyPair(fresh()), self.knows,
            self.floor, grant=b"grant",
        )  # fmt: skip


class Line:
    """A channel that stands, with the relay in the middle of it. Records wait at the relay, in
    `up` (to the host) and `down` (to the operator), until they are delivered."""

    def __init__(
        self, host: Host, operator: Operator, now: float = 0.0, pace: Pace | None = None
    ) -> None:
        self.host, self.operator = host, operator
        dialling = operator.dial()
        self.first = dialling.first()
        answer, self.at_host = host.answer(self.first, now, pace)
        self.at_operator: OperatorChannel = dialling.finish(answer, now, pace or Pace())
        self.up = self.at_operator.sealed.poll(now)  # the first beat: it confirms the channel
        self.down: list[bytes] = []
        self.carried: list[bytes] = [self.first, answer]  # all that the relay ever saw
        self.deliver(now)

    def type(self, *payloads: bytes, now: float = 0.0) -> None:
        for payload in payloads:
            self.up += self.at_operator.write(payload, now)

    def deliver(self, now: float = 0.0) -> None:
        """Carry what waits, both ways, as a good relay would."""
        self.carried += self.up + self.down
        while self.up:
            self.host.receive(self.at_host, self.up.pop(0), now)
        while self.down:
            got = self.at_operator.receive(self.down.pop(0), now)
            if got is not None and got.kind == RecordKind.OUTPUT_KEY:
                self.operator.listener.take_key(got.body, now)
            elif got is not None and got.kind == RecordKind.OUTPUT_MARK:
                self.operator.listener.mark(got.body, now)

    def beat(self, now: float) -> None:
        """What both ends have to say by this time."""
        self.up += self.at_operator.sealed.poll(now)
        self.down += self.at_host.sealed.poll(now)

    def confirm(self, now: float = 0.0) -> None:
        self.down += self.at_host.accepted(now)

    def watch(self, now: float = 0.0) -> None:
        """The operator begins to read the output."""
        body = self.host.broadcaster.join(self.operator.name)
        self.down += self.at_host.seal(RecordKind.OUTPUT_KEY, body, now)
        self.deliver(now)

    def tell(self, bodies: dict[str, bytes], now: float = 0.0) -> None:
        """A new sender key, if this operator is among those who get it."""
        if self.operator.name in bodies:
            self.down += self.at_host.seal(RecordKind.OUTPUT_KEY, bodies[self.operator.name], now)
            self.deliver(now)

    def read(self, frame: bytes, now: float = 0.0) -> HeardOutput:
        return self.operator.listener.open(frame, now)


def check_chain(entries: Iterable[SignedInput], since: Mark | None = None) -> Mark | None:
    """The mark after these inputs of one stream, if they are an unbroken part of it: from its
    beginning, or after `since`. For anybody: only the entries are needed."""
    mark, last = since, None
    for entry in entries:
        of = (entry.session, entry.key, entry.stream)
        if last is None:
            mark = mark or genesis(*of)
        elif of != (last.session, last.key, last.stream) or entry.epoch < last.epoch:
            raise JournalDamaged(f"input {entry.seq} is of another stream, or of an earlier epoch")
        assert mark is not None
        if (entry.seq, entry.prev) != (mark.seq + 1, mark.head):
            raise JournalDamaged(f"input {entry.seq} does not follow input {mark.seq}")
        entry.check()
        mark, last = Mark(entry.seq, entry.head()), entry
    return mark


def flipped(data: bytes, bit: int) -> bytes:
    altered = bytearray(data)
    altered[bit // 8 % len(data)] ^= 1 << bit % 8
    return bytes(altered)


def stage(*, writes: bool = True) -> Line:
    host = Host()
    return Line(host, Operator(host, writes=writes))


def forged(line: Line, data: bytes, *, sign: bool = False) -> bytes:
    """A frame made by somebody who was given the key, as the next one."""
    told = OutputKey.decode(line.host.broadcaster.join("insider"))
    form = SIGNED if sign else output_broadcast.UNSIGNED
    header = HEADER.pack(form, told.epoch, told.group, told.seq)
    session = line.operator.session
    head = output_broadcast.link(told.head, header, data)
    signature = Keys().sign(output_broadcast.signed_text(session, header, head)) if sign else b""
    sealed = Aead(told.key).seal(
        output_broadcast.nonce(told.seq), signature + data, output_broadcast.bound(session, header)
    )
    return header + sealed
