"""A device: two keys that belong together.

    key      Ed25519: who the actor (or the host) is; it signs
    static   X25519: with whom a channel is; it agrees on keys and signs nothing

They are separate keys, because a browser that keeps its keys unreadable cannot derive one from the
other. The Ed25519 key vouches for the X25519 key by `signature`. The other direction cannot be a
signature: it is the handshake, in which only the holder of `static` can have named `key`.

Nothing here makes or checks a signature (wire/key_agreement.py does); these are the values and
what is signed.
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import ActorId
from holdfast.model.record import Record

DEVICE_DOMAIN = b"holdfast device v1\0"
KEY_BYTES = 32
SIGNATURE_BYTES = 64


def device_text(key: bytes, static: bytes) -> bytes:
    """What the Ed25519 key signs: this X25519 key is mine."""
    return DEVICE_DOMAIN + key + static


class Device(Record):
    """The public half of a device."""

    key: bytes  # Ed25519
    static: bytes  # X25519
    signature: bytes  # by `key` over `text()`

    @property
    def actor(self) -> ActorId:
        """The actor whose device it is."""
        return ActorId.of_key(self.key)

    def text(self) -> bytes:
        return device_text(self.key, self.static)

    def checked(self) -> Device:
        """This device, if its parts have the right sizes. The signature is not checked here."""
        sizes = (len(self.key), len(self.static), len(self.signature))
        if sizes != (KEY_BYTES, KEY_BYTES, SIGNATURE_BYTES):
            raise InvalidArgument(f"a device has parts of 32, 32 and 64 bytes, not {sizes}")
        return self
