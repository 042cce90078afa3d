"""Cryptography of the channel: X25519 agreement, AES-GCM, and the two keys of a device (Ed25519 is
in ed25519.py). The cryptography library takes 20 ms to import: nothing that every verb needs may
import this module, or one that imports it.

No key is generated or read here: the caller passes private bytes.
"""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from holdfast.model.device import KEY_BYTES, Device, device_text
from holdfast.model.errors import BadSignature, HandshakeFailed
from holdfast.wire.ed25519 import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Sign = Callable[[bytes], bytes]  # an Ed25519 signature; the caller keeps the key

TAG_BYTES = 16
_DOMAIN = b"holdfast channel key v1\0"


class KeyPair:
    """Our own X25519 key, static or made for one handshake."""

    __slots__ = ("_private", "public")

    def __init__(self, private: bytes) -> None:
        if len(private) != KEY_BYTES:
            raise HandshakeFailed(f"a key has {KEY_BYTES} bytes, not {len(private)}")
        self._private = X25519PrivateKey.from_private_bytes(private)
        self.public: bytes = self._private.public_key().public_bytes_raw()

    def agree(self, theirs: bytes) -> bytes:
        """The secret shared with the holder of that key. A key that would make the secret a known
        constant, whatever ours is, is refused."""
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(theirs))
        except ValueError:
            raise HandshakeFailed("the peer's key is not a usable X25519 key") from None


class Aead:
    """AES-256-GCM under one key. `open` returns None for data not sealed with it."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, nonce: bytes, plain: bytes, bound: bytes) -> bytes:
        return self._cipher.encrypt(nonce, plain, bound)

    def open(self, nonce: bytes, sealed: bytes, bound: bytes) -> bytes | None:
        try:
            return self._cipher.decrypt(nonce, sealed, bound)
        except (InvalidTag, ValueError):  # ValueError: shorter than a tag, or absurdly long
            return None


def check_device(device: Device) -> Device:
    """This device, if its Ed25519 key vouches for its X25519 key."""
    if not check(device.checked().key, device.text(), device.signature):
        raise BadSignature("a device's channel key is not signed with the actor's key")
    return device


def channel_key(seed: bytes) -> KeyPair:
    """The X25519 key made from the seed of an Ed25519 key, so that a program that keeps one secret
    has both. (A browser keeps two secrets; peers see no difference.)"""
    return KeyPair(hashlib.sha256(_DOMAIN + seed).digest())


def device_of(key: bytes, static: KeyPair, sign: Sign) -> Device:
    """The public half of a device, signed."""
    return Device(key, static.public, sign(device_text(key, static.public)))
