"""The host's Ed25519 keys. The library takes 20 ms to import, so it is imported when a key is first
used. Checking signatures needs no private key: wire/ed25519.py.
"""

from __future__ import annotations

import os

from holdfast.adapters import key_file
from holdfast.adapters.key_file import KEY_BYTES as KEY_BYTES
from holdfast.wire.ed25519 import check as check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class SigningKey:
    """A private key, with its public half."""

    def __init__(self, private: bytes) -> None:
        """From the raw 32 bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self.seed = private
        self._key: Ed25519PrivateKey = Ed25519PrivateKey.from_private_bytes(private)
        self.public: bytes = self._key.public_key().public_bytes_raw()

    @classmethod
    def generate(cls) -> SigningKey:
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def load_or_create(cls, path: str) -> SigningKey:
        """The key stored in a file (key_file.py), created if missing."""
        return cls(key_file.load_or_create(path))

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)
