"""A file of a session, encrypted under a key made from the session's own private key: what is in it
cannot be read from a copy of the file alone. Replaced as a whole (atomic_file.py).

It does not protect against whoever reads the host's whole state directory, where that key is too.
"""

from __future__ import annotations

import os

from holdfast.adapters import atomic_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


def write(path: str, key: bytes, data: bytes) -> None:
    """Raises OSError, and leaves the old file."""
    nonce = os.urandom(_NONCE_BYTES)
    atomic_file.replace(path, nonce + _cipher(path, key).encrypt(nonce, data, None))


def read(path: str, key: bytes) -> bytes | None:
    """None when it is not there, or is not what was written."""
    from cryptography.exceptions import InvalidTag

    try:
        with open(path, "rb") as file:
            sealed = file.read()
    except OSError:
        return None
    try:
        return _cipher(path, key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
    except (InvalidTag, ValueError):
        return None


def _cipher(path: str, key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    purpose = b"holdfast file " + os.path.basename(path).encode()  # one is never read as another
    return AESGCM(HKDF(hashes.SHA256(), 32, salt=None, info=purpose).derive(key))
