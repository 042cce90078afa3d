"""The Noise handshake (revision 34 of its specification) with X25519, AES-256-GCM and SHA-256.

    IK       the operator knows the host's static key: one round trip. The usual way.
    IKpsk1   the same with a secret that both know: an invitation's code.

A handshake gives two ciphers, one per direction, and a hash of everything that was said in it. It
does not decide which keys to trust. It has no randomness: the caller passes the ephemeral key, and
must make a new one for every handshake.
"""

from __future__ import annotations

import hashlib
import hmac

from holdfast.model.errors import HandshakeFailed
from holdfast.model.record import Record
from holdfast.wire.key_agreement import TAG_BYTES, Aead, KeyPair

MESSAGE_MAX_BYTES = 65535  # of any Noise message, by its specification
HASH_BYTES = 32
_KEY_BYTES = 32
_LAST_NONCE = 2**64 - 1  # kept for the new key of `rekey`


class Pattern(Record):
    """Tokens of the specification, message by message, the initiator's first. In all of them the
    initiator knows the responder's static key beforehand."""

    name: str
    messages: tuple[tuple[str, ...], ...]


IK = Pattern("IK", (("e", "es", "s", "ss"), ("e", "ee", "se")))
IK_PSK1 = Pattern("IKpsk1", (("e", "es", "s", "ss", "psk"), ("e", "ee", "se")))


class Cipher:
    """One direction: a key and the number of the next message under it."""

    __slots__ = ("_aead", "number")

    def __init__(self, key: bytes) -> None:
        self._aead = Aead(key)
        self.number = 0

    def seal(self, plain: bytes, bound: bytes = b"") -> bytes:
        if self.number >= _LAST_NONCE:
            raise HandshakeFailed("the key has sealed as many messages as it may")
        sealed = self._aead.seal(_nonce(self.number), plain, bound)
        self.number += 1
        return sealed

    def open(self, sealed: bytes, bound: bytes = b"") -> bytes | None:
        """None for anything but the next message of the peer."""
        plain = self._aead.open(_nonce(self.number), sealed, bound)
        if plain is not None:
            self.number += 1
        return plain

    def rekey(self) -> None:
        """Replace the key by one derived from it; the old one cannot be computed from the new one.
        The numbers continue, as the specification says."""
        made = self._aead.seal(_nonce(_LAST_NONCE), bytes(_KEY_BYTES), b"")
        self._aead = Aead(made[:_KEY_BYTES])


class Handshake:
    """One side of a handshake. A message that does not fit ends it: every later call fails."""

    def __init__(
        self,
        pattern: Pattern,
        *,
        initiator: bool,
        static: KeyPair,
        ephemeral: KeyPair,
        remote_static: bytes = b"",
        prologue: bytes = b"",
        psks: tuple[bytes, ...] = (),
    ) -> None:
        name = f"Noise_{pattern.name}_25519_AESGCM_SHA256".encode()
        self.hash = name.ljust(HASH_BYTES, b"\0") if len(name) <= HASH_BYTES else _sha256(name)
        self._chaining = self.hash
        self._cipher: Cipher | None = None
        self._static, self._ephemeral = static, ephemeral
        self.remote_static, self._remote_ephemeral = remote_static, b""
        self._messages, self._next = pattern.messages, 0
        self._initiator, self._psks, self._with_psk = initiator, list(psks), bool(psks)
        tokens = [token for message in pattern.messages for token in message]
        if tokens.count("psk") != len(psks) or any(len(psk) != _KEY_BYTES for psk in psks):
            raise HandshakeFailed(
                "this handshake needs a different number or size of shared secrets"
            )
        self._mix_hash(prologue)
        self._mix_hash(remote_static if initiator else static.public)

    @property
    def finished(self) -> bool:
        return self._next == len(self._messages)

    def write(self, payload: bytes = b"") -> bytes:
        """Our next message."""
        out = bytearray()
        for token in self._tokens(ours=True):
            if token == "e":
                out += self._ephemeral.public
                self._mix_ephemeral(self._ephemeral.public)
            elif token == "s":
                out += self._seal(self._static.public)
            else:
                self._mix(token)
        out += self._seal(payload)
        if len(out) > MESSAGE_MAX_BYTES:
            raise HandshakeFailed(f"a message of {len(out)} bytes is too long for a handshake")
        self._next += 1
        return bytes(out)

    def read(self, message: bytes) -> bytes:
        """The payload of the peer's next message."""
        tokens = self._tokens(ours=False)
        after, self._next = (
            self._next + 1,
            len(self._messages) + 1,
        )  # over, unless all of it is valid
        if len(message) > MESSAGE_MAX_BYTES:
            raise HandshakeFailed(f"a message of {len(message)} bytes is too long for a handshake")
        rest = message
        for token in tokens:
            if token == "e":
                self._remote_ephemeral, rest = _cut(rest, _KEY_BYTES)
                self._mix_ephemeral(self._remote_ephemeral)
            elif token == "s":
                part, rest = _cut(rest, _KEY_BYTES + (TAG_BYTES if self._cipher else 0))
                self.remote_static = self._open(part)
            else:
                self._mix(token)
        payload = self._open(rest)
        self._next = after
        return payload

    def split(self) -> tuple[Cipher, Cipher]:
        """The ciphers for what we send and what we receive."""
        if not self.finished:
            raise HandshakeFailed("the handshake is not finished")
        first, second = (Cipher(key) for key in _derive(self._chaining, b"", 2))
        return (first, second) if self._initiator else (second, first)

    def _tokens(self, *, ours: bool) -> tuple[str, ...]:
        if self._next >= len(self._messages):
            raise HandshakeFailed("the handshake is over")
        if ours is not (self._initiator == (self._next % 2 == 0)):
            raise HandshakeFailed("it is the other side's turn in the handshake")
        return self._messages[self._next]

    def _mix(self, token: str) -> None:
        if token == "psk":
            self._chaining, mixed, key = _derive(self._chaining, self._psks.pop(0), 3)
            self._mix_hash(mixed)
            self._cipher = Cipher(key)
            return
        of_initiator, of_responder = token[0], token[1]
        mine, theirs = (
            (of_initiator, of_responder) if self._initiator else (of_responder, of_initiator)
        )
        pair = self._ephemeral if mine == "e" else self._static
        self._mix_key(pair.agree(self._remote_ephemeral if theirs == "e" else self.remote_static))

    def _mix_ephemeral(self, public: bytes) -> None:
        self._mix_hash(public)
        if self._with_psk:
            self._mix_key(public)

    def _mix_key(self, secret: bytes) -> None:
        self._chaining, key = _derive(self._chaining, secret, 2)
        self._cipher = Cipher(key)

    def _mix_hash(self, data: bytes) -> None:
        self.hash = _sha256(self.hash + data)

    def _seal(self, plain: bytes) -> bytes:
        sealed = plain if self._cipher is None else self._cipher.seal(plain, self.hash)
        self._mix_hash(sealed)
        return sealed

    def _open(self, sealed: bytes) -> bytes:
        plain = sealed if self._cipher is None else self._cipher.open(sealed, self.hash)
        if plain is None:
            raise HandshakeFailed("the handshake failed: different keys, another session, or an "
                                  "altered message")  # fmt: skip
        self._mix_hash(sealed)
        return plain


def _nonce(number: int) -> bytes:
    return number.to_bytes(12)  # four zero bytes, then the number


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _derive(chaining: bytes, secret: bytes, count: int) -> list[bytes]:
    """HKDF of the specification."""
    base = hmac.digest(chaining, secret, "sha256")
    made, last = [], b""
    for index in range(1, count + 1):
        last = hmac.digest(base, last + bytes([index]), "sha256")
        made.append(last)
    return made


def _cut(data: bytes, size: int) -> tuple[bytes, bytes]:
    if len(data) < size:
        raise HandshakeFailed("a handshake message is cut off")
    return data[:size], data[size:]
