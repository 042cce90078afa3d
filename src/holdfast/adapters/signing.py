"""The host's Ed25519 keys. The library takes 20 ms to import, so it is imported when a key is first
used. Checking signatures needs no private key: wire/ed25519.py.
"""

from __future__ import annotations

import contextlib
import os

from holdfast.model.errors import StorageFailed
from holdfast.wire.ed25519 import check as check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES = 32


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
        """The key stored in a file that only its owner can read, created if missing. Two processes
        that create it at once end up with the same key: the first to link wins."""
        with contextlib.suppress(FileNotFoundError):
            return cls._load(path)
        private = os.urandom(KEY_BYTES)
        beside = f"{path}.{private[:4].hex()}.new"
        try:
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(private)
                file.flush()
                os.fsync(fd)
            with contextlib.suppress(FileExistsError):
                os.link(beside, path)
            os.unlink(beside)
            return cls._load(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise StorageFailed(f"cannot store a key: {error.strerror} ({path})") from error

    @classmethod
    def _load(cls, path: str) -> SigningKey:
        with open(path, "rb") as file:
            private = file.read(KEY_BYTES + 1)
        if len(private) != KEY_BYTES:
            raise StorageFailed(f"not a key of {KEY_BYTES} bytes: {path}")
        return cls(private)

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)
