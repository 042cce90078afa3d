"""Both ends of a channel written from docs/channel.md and the Noise specification alone, as they
would be in another language: it uses nothing of this project. When it disagrees with ours, one of
the three is wrong.
"""

from __future__ import annotations

import hashlib
import hmac

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class Wrong(Exception):
    """Something is not as the page says."""


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def sign(seed: bytes, text: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).sign(text)


def is_signed(key: bytes, text: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def agreed(private: bytes, public: bytes) -> bytes:
    theirs = X25519PublicKey.from_public_bytes(public)
    return X25519PrivateKey.from_private_bytes(private).exchange(theirs)


def public_of(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def hkdf(chaining: bytes, secret: bytes, count: int) -> list[bytes]:
    key = hmac.digest(chaining, secret, "sha256")
    one = hmac.digest(key, b"\1", "sha256")
    two = hmac.digest(key, one + b"\2", "sha256")
    three = hmac.digest(key, two + b"\3", "sha256")
    return [one, two, three][:count]


class Noise:
    """IK, written out; with a secret, IKpsk1. Both sides at once, since the keys of both are known:
    what one writes is what the other reads."""

    def __init__(self, prologue: bytes, host_static: bytes, psk: bytes = b"") -> None:
        name = b"Noise_IKpsk1_25519_AESGCM_SHA256" if psk else b"Noise_IK_25519_AESGCM_SHA256"
        self.h = self.ck = name.ljust(32, b"\0")
        self.psk = psk
        self.key, self.n = b"", 0
        self.hash(prologue)
        self.hash(host_static)

    def hash(self, data: bytes) -> None:
        self.h = sha(self.h, data)

    def mix(self, secret: bytes) -> None:
        self.ck, self.key = hkdf(self.ck, secret, 2)
        self.n = 0

    def ephemeral(self, public: bytes) -> bytes:
        self.hash(public)
        if self.psk:
            self.mix(public)
        return public

    def secret(self) -> None:
        if self.psk:
            self.ck, mixed, self.key = hkdf(self.ck, self.psk, 3)
            self.n = 0
            self.hash(mixed)

    def seal(self, plain: bytes) -> bytes:
        sealed = AESGCM(self.key).encrypt(bytes(4) + self.n.to_bytes(8), plain, self.h)
        self.n += 1
        self.hash(sealed)
        return sealed

    def first(self, static: bytes, ephemeral: bytes, host_static: bytes, payload: bytes) -> bytes:
        out = self.ephemeral(public_of(ephemeral))
        self.mix(agreed(ephemeral, host_static))
        out += self.seal(public_of(static))
        self.mix(agreed(static, host_static))
        self.secret()
        return out + self.seal(payload)

    def second(
        self, ephemeral: bytes, their_ephemeral: bytes, their_static: bytes, payload: bytes
    ) -> bytes:
        out = self.ephemeral(public_of(ephemeral))
        self.mix(agreed(ephemeral, their_ephemeral))
        self.mix(agreed(ephemeral, their_static))
        return out + self.seal(payload)


class Direction:
    """One direction of records."""

    def __init__(self, key: bytes) -> None:
        self.key, self.n = key, 0

    def seal(self, plain: bytes) -> bytes:
        sealed = AESGCM(self.key).encrypt(bytes(4) + self.n.to_bytes(8), plain, b"")
        self.n += 1
        if plain == b"\0":  # REKEY
            last = bytes(4) + b"\xff" * 8
            self.key = AESGCM(self.key).encrypt(last, bytes(32), b"")[:32]
        return sealed


def input_text(
    session: str, epoch: int, h: bytes, stream: bytes, seq: int, before: bytes, payload: bytes
) -> bytes:
    return (
        b"holdfast input v1\0" + session.encode() + epoch.to_bytes(8) + h + stream
        + seq.to_bytes(8) + before + sha(payload)
    )  # fmt: skip


class Reader:
    """A reader of output. It knows no errors but one."""

    def __init__(self, session: str, host_key: bytes) -> None:
        self.session, self.host_key = session.encode(), host_key
        self.keys: dict[int, bytes] = {}
        self.epoch = self.seq = self.settled = 0
        self.head = b""
        self.marks: dict[int, bytes] = {}

    def take_key(self, body: bytes) -> None:
        epoch, group = int.from_bytes(body[1:9]), int.from_bytes(body[9:13])
        seq, key, head = int.from_bytes(body[13:21]), body[21:53], body[53:85]
        if body[0]:
            self.epoch, self.seq, self.head, self.settled = epoch, seq, head, seq
            self.keys = {}
        self.keys[group] = key
        self.mark(epoch.to_bytes(8) + body[13:21] + head)

    def mark(self, body: bytes) -> None:
        self.marks[int.from_bytes(body[8:16])] = body[16:48]
        self.settle()

    def settle(self) -> None:
        told = self.marks.get(self.seq)
        if told is not None:
            if told != self.head:
                raise Wrong("not the host's")
            self.settled = self.seq

    def open(self, frame: bytes) -> tuple[bytes, bool]:
        """Data, and whether it is provisional."""
        header = frame[:21]
        epoch, group = int.from_bytes(header[1:9]), int.from_bytes(header[9:13])
        seq = int.from_bytes(header[13:21])
        if (epoch, seq) != (self.epoch, self.seq) or group not in self.keys:
            raise Wrong("not the next frame")
        bound = b"holdfast output v1\0" + self.session + header
        nonce = bytes(4) + header[13:21]
        plain = AESGCM(self.keys[group]).decrypt(nonce, frame[21:], bound)
        signature, data = (plain[:64], plain[64:]) if header[0] else (b"", plain)
        self.head = sha(b"holdfast output chain v1\0", self.head, header, sha(data))
        self.seq += 1
        if header[0]:
            text = b"holdfast output signature v1\0" + self.session + header + self.head
            if not is_signed(self.host_key, text, signature):
                raise Wrong("not the host's")
            self.settled = self.seq
        self.settle()
        return data, self.settled < self.seq
