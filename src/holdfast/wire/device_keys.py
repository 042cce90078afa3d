"""A device's two keys from one secret: the X25519 key is made from the Ed25519 key's seed, so a
program that keeps one secret has both. (A browser keeps two secrets; peers see no difference.)"""

from __future__ import annotations

import hashlib

from holdfast.model.device import Device, device_text
from holdfast.wire.key_agreement import KeyPair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.wire.key_agreement import Sign

_DOMAIN = b"holdfast channel key v1\0"


def channel_key(seed: bytes) -> KeyPair:
    return KeyPair(hashlib.sha256(_DOMAIN + seed).digest())


def device_of(key: bytes, static: KeyPair, sign: Sign) -> Device:
    """The public half, signed."""
    return Device(key, static.public, sign(device_text(key, static.public)))
