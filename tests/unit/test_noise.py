"""The handshake agrees with published vectors, and with nothing else."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HandshakeFailed
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.noise import IK, IK_PSK1, MESSAGE_MAX_BYTES, Cipher, Handshake, Pattern

VECTORS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("noise-vectors.json").read_text(encoding="utf-8")
)["vectors"]

# Two that the product does not use: the machine must not be right for two patterns by accident.
_OTHERS = (
    Pattern("IKpsk2", (("e", "es", "s", "ss"), ("e", "ee", "se", "psk"))),
    Pattern("IKpsk0+psk2", (("psk", "e", "es", "s", "ss"), ("e", "ee", "se", "psk"))),
)
PATTERNS = {pattern.name: pattern for pattern in (IK, IK_PSK1, *_OTHERS)}
USED = (IK, IK_PSK1)
PSK = bytes(range(32))


def pair(number: int) -> KeyPair:
    return KeyPair(bytes([number]) * 32)


def sides(pattern: Pattern, **responder: Any) -> tuple[Handshake, Handshake]:
    """Two ends that fit, but for what is said otherwise of the responder."""
    psks = (PSK,) if "psk" in pattern.name else ()
    given: dict[str, Any] = {"prologue": b"p", "psks": psks, **responder}
    return (
        Handshake(
            pattern, initiator=True, static=pair(1), ephemeral=pair(2),
            remote_static=pair(3).public, prologue=b"p", psks=psks,
        ),
        Handshake(
            pattern, initiator=False, **{"static": pair(3), "ephemeral": pair(4), **given}
        ),
    )  # fmt: skip


def run(one: Handshake, other: Handshake, payload: bytes = b"") -> None:
    while not (one.finished and other.finished):
        assert other.read(one.write(payload)) == payload
        one, other = other, one


def of_vector(vector: dict[str, Any], side: str) -> Handshake:
    return Handshake(
        PATTERNS[vector["protocol_name"].split("_")[1]],
        initiator=side == "init",
        static=KeyPair(bytes.fromhex(vector[f"{side}_static"])),
        ephemeral=KeyPair(bytes.fromhex(vector[f"{side}_ephemeral"])),
        remote_static=bytes.fromhex(vector.get(f"{side}_remote_static", "")),
        prologue=bytes.fromhex(vector[f"{side}_prologue"]),
        psks=tuple(bytes.fromhex(psk) for psk in vector.get(f"{side}_psks", ())),
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: f"{v['protocol_name']}-{v['source']}")
def test_every_message_of_a_published_vector_is_made_and_read(vector: dict[str, Any]) -> None:
    one, other = of_vector(vector, "init"), of_vector(vector, "resp")
    initiator = one
    ciphers: dict[bool, tuple[Cipher, Cipher]] = {}
    for index, message in enumerate(vector["messages"]):
        payload, sealed = bytes.fromhex(message["payload"]), bytes.fromhex(message["ciphertext"])
        if not one.finished:
            assert one.write(payload) == sealed
            assert other.read(sealed) == payload
            one, other = other, one
            continue
        ciphers = ciphers or {side is initiator: side.split() for side in (one, other)}
        sender = index % 2 == 0
        assert ciphers[sender][0].seal(payload) == sealed
        assert ciphers[not sender][1].open(sealed) == payload
    assert ciphers
    assert one.hash == other.hash
    if "handshake_hash" in vector:
        assert one.hash.hex() == vector["handshake_hash"]


def test_the_vectors_are_of_all_patterns_in_use() -> None:
    shown = {vector["protocol_name"].split("_")[1] for vector in VECTORS}
    assert {pattern.name for pattern in USED} <= shown


@pytest.mark.parametrize("pattern", USED, ids=lambda pattern: str(pattern.name))
def test_both_ends_have_the_same_hash_and_each_the_others_key(pattern: Pattern) -> None:
    one, other = sides(pattern)
    run(one, other, b"hello")
    assert one.hash == other.hash
    assert (one.remote_static, other.remote_static) == (pair(3).public, pair(1).public)
    (send, _), (_, receive) = one.split(), other.split()
    assert receive.open(send.seal(b"x")) == b"x"


@pytest.mark.parametrize("pattern", USED, ids=lambda pattern: str(pattern.name))
def test_new_keys_are_taken_together_or_nothing_opens(pattern: Pattern) -> None:
    one, other = sides(pattern)
    run(one, other)
    (send, _), (_, receive) = one.split(), other.split()
    assert receive.open(send.seal(b"before")) == b"before"
    send.rekey()
    sealed = send.seal(b"after")
    assert receive.open(sealed) is None
    receive.rekey()
    assert receive.open(sealed) == b"after"


def test_a_rekeyed_cipher_has_the_key_the_specification_says() -> None:
    """The first 32 bytes of zeros sealed under the last number; checked with the library alone."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher = Cipher(PSK)
    cipher.rekey()
    expected = AESGCM(PSK).encrypt(bytes(4) + b"\xff" * 8, bytes(32), b"")[:32]
    assert cipher.seal(b"x") == AESGCM(expected).encrypt(bytes(12), b"x", b"")


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        *((pattern, {"prologue": b"q"}) for pattern in USED),
        (IK, {"static": pair(9)}),
        (IK_PSK1, {"psks": (bytes(32),)}),
    ],
    ids=["prologue", "prologue", "static", "psk"],
)
def test_ends_that_do_not_fit_do_not_finish(pattern: Pattern, other: dict[str, Any]) -> None:
    with pytest.raises(HandshakeFailed):
        run(*sides(pattern, **other))


@pytest.mark.parametrize("pattern", USED, ids=lambda pattern: str(pattern.name))
def test_any_flipped_bit_ends_the_handshake_for_good(pattern: Pattern) -> None:
    bits = random.Random(pattern.name)
    for stop in range(len(pattern.messages)):
        for _ in range(40):
            one, other = sides(pattern)
            for _ in range(stop):
                other.read(one.write(b"payload"))
                one, other = other, one
            message = bytearray(one.write(b"payload"))
            at = bits.randrange(len(message) * 8)
            message[at // 8] ^= 1 << at % 8
            if not altered_is_refused(other, bytes(message)):
                raise AssertionError(f"bit {at} of message {stop + 1} does not matter")


def altered_is_refused(other: Handshake, message: bytes) -> bool:
    try:
        other.read(message)
    except HandshakeFailed:
        with pytest.raises(HandshakeFailed, match="over"):
            other.read(message)
        return True
    return False


def test_a_key_that_makes_every_secret_the_same_is_refused() -> None:
    for low_order in (bytes(32), b"\x01" + bytes(31)):
        _, other = sides(IK)
        with pytest.raises(HandshakeFailed):
            other.read(low_order + bytes(80))


@pytest.mark.parametrize(
    ("size", "why"),
    [(0, "cut off"), (31, "cut off"), (79, "cut off"), (MESSAGE_MAX_BYTES + 1, "too long")],
)
def test_a_message_of_an_impossible_size_is_refused(size: int, why: str) -> None:
    with pytest.raises(HandshakeFailed, match=why):
        sides(IK)[1].read(bytes(range(1, 33))[:size] + bytes(max(0, size - 32)))


def test_out_of_turn_nothing_is_said() -> None:
    one, other = sides(IK)
    with pytest.raises(HandshakeFailed):
        other.write()
    with pytest.raises(HandshakeFailed):
        one.read(bytes(96))
    with pytest.raises(HandshakeFailed):
        one.split()
    run(*sides(IK))


def test_a_payload_too_long_for_one_message_is_refused() -> None:
    with pytest.raises(HandshakeFailed):
        sides(IK)[0].write(bytes(MESSAGE_MAX_BYTES))


def test_a_pattern_with_a_secret_is_not_run_without_it() -> None:
    with pytest.raises(HandshakeFailed):
        Handshake(IK_PSK1, initiator=False, static=pair(1), ephemeral=pair(2))
