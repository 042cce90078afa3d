"""Makes docs/channel-vectors.json: one exchange over a channel, with everything in it spelled out.

    PYTHONPATH=src:tests python -m unit.channel_vectors > docs/channel-vectors.json

A test compares the file with what is made here, so a change of the format is seen. It must then be
a change on purpose: who wrote a client from the document relies on the old one.
"""

from __future__ import annotations

import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.model.device import Device, device_text
from holdfast.model.errors import HoldfastError
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
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.noise import _derive
from holdfast.wire.output_broadcast import HEADER, Broadcaster
from holdfast.wire.output_listener import Listener
from holdfast.wire.record_layer import RecordKind, Rekeying
from holdfast.wire.signed_input import SignedInput, genesis
from unit.malicious_relay import flipped

SESSION = SessionId.of_key(
    Ed25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw()
)
EPOCH = 3
STREAM = OperatorId("00112233445566778899aabbccddeeff")
GRANT = b"a grant"
SEEN = 2
PSK = bytes(range(200, 232))
SENDER_KEYS = (bytes(range(100, 132)), bytes(range(132, 164)), bytes(range(164, 196)))
_PACE = Pace(rekeying=Rekeying(3, 1 << 20))

Found = dict[str, Any]


class Fixed:
    """A device whose keys are known to everybody."""

    def __init__(self, first: int) -> None:
        self.seed, self.private, self.ephemeral = (
            bytes(range(first + at, first + at + 32)) for at in (0, 32, 64)
        )
        signing = Ed25519PrivateKey.from_private_bytes(self.seed)
        self.sign = signing.sign
        self.static = KeyPair(self.private)
        key = signing.public_key().public_bytes_raw()
        self.device = Device(
            key, self.static.public, signing.sign(device_text(key, self.static.public))
        )

    def spelled(self) -> Found:
        return {
            "seed": self.seed.hex(),
            "key": self.device.key.hex(),
            "static_private": self.private.hex(),
            "static": self.device.static.hex(),
            "ephemeral_private": self.ephemeral.hex(),
            "ephemeral": KeyPair(self.ephemeral).public.hex(),
            "device_text": self.device.text().hex(),
            "signature": self.device.signature.hex(),
        }


HOST, OPERATOR = Fixed(0x20), Fixed(0x90)


class Exchange:
    """The two ends after their handshake. Only for the vectors are the keys looked at."""

    def __init__(self, psk: bytes = b"") -> None:
        self.stream = InputStream(SESSION, OPERATOR.device.key, STREAM, OPERATOR.sign)
        self.floor = EpochFloor(SEEN)
        self.incarnation = Incarnation(SESSION, EPOCH)
        dialling = OperatorHandshake(
            self.stream, OPERATOR.device, OPERATOR.static, KeyPair(OPERATOR.ephemeral), HOST.device,
            self.floor, grant=GRANT, psk=psk,
        )  # fmt: skip
        self.first = dialling.first()
        asked = answering(self.incarnation, self.first, psk)
        self.second, self.at_host = asked.answer(
            InputBook(self.incarnation), lambda _: None, 0.0, _PACE
        )
        self.at_operator: OperatorChannel = dialling.finish(self.second, 0.0, _PACE)
        self.noise = dialling._noise

    def spelled(self, pattern: str) -> Found:
        to_host, to_operator = _derive(self.noise._chaining, b"", 2)
        device, stream = OPERATOR.device, bytes.fromhex(STREAM)
        said = bytes([1]) + device.key + device.signature + stream + SEEN.to_bytes(8) + GRANT
        start = genesis(SESSION, device.key, STREAM)
        told = bytes([1]) + EPOCH.to_bytes(8) + bytes([0]) + bytes(8) + start.head
        return {
            "protocol": f"Noise_{pattern}_25519_AESGCM_SHA256",
            "prologue": (b"holdfast channel v1\0" + SESSION.encode()).hex(),
            "first_payload": said.hex(),
            "first": self.first.hex(),
            "second_payload": told.hex(),
            "second": self.second.hex(),
            "h": self.noise.hash.hex(),
            "to_host": to_host.hex(),
            "to_operator": to_operator.hex(),
        }


def answering(incarnation: Incarnation, first: bytes, psk: bytes = b"") -> HostHandshake:
    return HostHandshake(incarnation, HOST.static, KeyPair(HOST.ephemeral), first, psk=psk)


class Talk:
    """The records of the exchange, each as it was made, and the inputs in them."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.records: list[Found] = []
        self.inputs: list[SignedInput] = []
        operator, host = exchange.at_operator, exchange.at_host
        self._up(operator.sealed.poll(0.0))
        self._up(operator.write(b"ls\r", 0.0))
        self._up(operator.write("é".encode(), 0.0))
        self._up(operator.write(b"", 0.0))
        self._down(host.accepted(0.0))
        self._up(operator.sealed.seal(RecordKind.MESSAGE, b"\x81\xa1t\xa4ping", 0.0))
        self._down(host.sealed.poll(5.0))
        self._down(host.sealed.finish(5.0))
        self._up(operator.sealed.finish(5.0))

    def _up(self, records: list[bytes]) -> None:
        channel: HostChannel = self._exchange.at_host
        for record in records:
            self._note("to_host", record, channel.sealed)
            got = channel.receive(record, 5.0)
            if isinstance(got, SignedInput):
                self.inputs.append(got)

    def _down(self, records: list[bytes]) -> None:
        channel = self._exchange.at_operator
        for record in records:
            self._note("to_operator", record, channel.sealed)
            channel.receive(record, 5.0)

    def _note(self, direction: str, record: bytes, reader: Any) -> None:
        cipher = reader._in.cipher
        plain = cipher.open(record)
        cipher.number -= 1  # looked at, not taken
        assert plain is not None
        self.records.append(
            {
                "direction": direction,
                "kind": RecordKind(plain[0]).name,
                "plain": plain.hex(),
                "record": record.hex(),
            }
        )


def made() -> Found:
    exchange = Exchange()
    handshakes = [exchange.spelled("IK"), Exchange(PSK).spelled("IKpsk1")]
    talk = Talk(exchange)
    start = genesis(SESSION, OPERATOR.device.key, STREAM)
    output = _output()
    return {
        "about": "See channel.md, Test vectors.",
        "session": str.__str__(SESSION),
        "epoch": EPOCH,
        "host": HOST.spelled(),
        "operator": OPERATOR.spelled(),
        "stream": str.__str__(STREAM),
        "grant": GRANT.hex(),
        "seen_epoch": SEEN,
        "psk": PSK.hex(),
        "handshakes": handshakes,
        "records": talk.records,
        "genesis": start.head.hex(),
        "inputs": [_input(entry) for entry in talk.inputs],
        "output": output,
        "refused": _refused(exchange.first, talk.records, output["steps"]),
    }


def _input(entry: SignedInput) -> Found:
    return {
        "seq": entry.seq,
        "before": entry.prev.hex(),
        "payload": entry.payload.hex(),
        "text": entry.text().hex(),
        "signature": entry.signature.hex(),
        "after": entry.head().hex(),
        "body": entry.body().hex(),
    }


def _output() -> Found:
    """A reader joins, reads signed and unsigned frames, two keys and a mark."""
    host = Broadcaster(Incarnation(SESSION, EPOCH), HOST.sign, SENDER_KEYS[0], 0.0)
    early = output_broadcast.genesis(SESSION, EPOCH, 0)
    host.frame(b"before anybody reads", 0.0)
    steps: list[tuple[str, bytes]] = [("key", host.join(STREAM))]
    steps += [("frame", host.frame(b"$ ", 0.0)), ("frame", host.frame(b"ls\r\n", 0.0, sign=True))]
    steps += [("frame", host.frame(b"src\r\n", 0.0))]
    on_its_way = host.frame(b"$ ", 0.0)
    steps += [("key", host.rotate(SENDER_KEYS[1], 0.0)[STREAM]), ("frame", on_its_way)]
    steps += [("frame", host.frame(b"", 0.0, sign=True)), ("frame", host.frame(b"bye", 0.0))]
    steps += [("mark", host.mark())]
    listener = Listener(SESSION, HOST.device.key, EpochFloor(SEEN))
    return {"genesis": early.hex(), "steps": [_step(listener, *step) for step in steps]}


def _step(listener: Listener, what: str, data: bytes) -> Found:
    if what == "key":
        listener.take_key(data, 0.0)
        return {"what": what, "bytes": data.hex(), "settled": listener._settled}
    if what == "mark":
        return {"what": what, "bytes": data.hex(), "settled": listener.mark(data, 0.0)}
    shown = listener.open(data, 0.0)
    form, epoch, group, seq = HEADER.unpack_from(data)
    header = data[: HEADER.size]
    return {
        "what": what,
        "bytes": data.hex(),
        "form": form,
        "epoch": epoch,
        "group": group,
        "seq": seq,
        "data": shown.data.hex(),
        "head": listener._head.hex(),
        "signed_text": output_broadcast.signed_text(SESSION, header, listener._head).hex()
        if form
        else "",
        "provisional": shown.provisional,
        "settled": shown.settled,
    }


def _refused(first: bytes, records: list[Found], steps: list[Found]) -> list[Found]:
    record = [bytes.fromhex(each["record"]) for each in records]
    step = [bytes.fromhex(each["bytes"]) for each in steps]
    other = Broadcaster(Incarnation(SESSION, EPOCH - 2), HOST.sign, SENDER_KEYS[2], 0.0)
    forger = Broadcaster(Incarnation(SESSION, EPOCH), OPERATOR.sign, SENDER_KEYS[0], 0.0)
    forger.frame(b"before anybody reads", 0.0)
    cases: list[tuple[str, str, int, bytes]] = [
        ("a bit of the payload is flipped", "first", 0, flipped(first, 8 * len(first) - 1)),
        ("it is said to be by invitation", "first", 0, b"\x02" + first[1:]),
        ("it is cut off", "first", 0, first[:90]),
        ("a record comes again", "record", 2, record[1]),
        ("a record is left out", "record", 1, record[2]),
        ("a bit is flipped", "record", 1, flipped(record[1], 5)),
        ("a record is cut off", "record", 1, record[1][:-1]),
        ("a frame comes again", "frame", 2, step[1]),
        ("a frame is left out", "frame", 1, step[2]),
        ("the header says unsigned", "frame", 2, b"\0" + step[2][1:]),
        ("a bit is flipped", "frame", 1, flipped(step[1], 8 * len(step[1]) - 1)),
        ("a reader made it, and signed it", "frame", 1, forger.frame(b"evil", 0.0, sign=True)),
        ("it is of an incarnation that is over", "frame", 1, other.frame(b"old", 0.0, sign=True)),
        ("its key is of an incarnation that is over", "key", 4, other.join(STREAM)),
        ("its key goes back", "key", 4, step[0]),
    ]
    return [
        {"why": why, "what": what, "at": at, "bytes": data.hex(), "error": refusal(what, at, data)}
        for why, what, at, data in cases
    ]


def refusal(what: str, at: int, data: bytes) -> str:
    """The code of the error that our ends have for it."""
    try:
        if what == "first":
            answering(Incarnation(SESSION, EPOCH), data)
        elif what == "record":
            exchange = Exchange()
            for each in Talk(Exchange()).records[:at]:
                assert each["direction"] == "to_host"
                exchange.at_host.receive(bytes.fromhex(each["record"]), 0.0)
            exchange.at_host.receive(data, 0.0)
        else:
            listener = Listener(SESSION, HOST.device.key, EpochFloor(SEEN))
            for each in _output()["steps"][:at]:
                _step(listener, each["what"], bytes.fromhex(each["bytes"]))
            _step(listener, what, data)
    except HoldfastError as error:
        return error.code
    return ""


if __name__ == "__main__":
    print(json.dumps(made(), indent=1))
