"""Checking Ed25519 signatures: the `Check` of journal and grants, and the channel's own. The
library takes 20 ms to import, so it is imported at the first signature.

Making signatures is not here: keys are kept by the host (adapters.signing) and by clients
(sdk.identity).
"""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# Public keys that prove nothing: a few points of the curve have an order of at most 8. If a key is
# one of them, a signature of zeros is valid for one message in a handful, so anybody could act
# under that key. The library accepts such keys, so we refuse them. Without the sign bit there are
# seven encodings, two of them not canonical.
_SIGN = 0x80  # of the last byte
_SMALL_ORDER = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


def proves_nothing(key: bytes) -> bool:
    """Whether anybody can sign for this key."""
    return len(key) == 32 and key[:31] + bytes((key[31] & ~_SIGN,)) in _SMALL_ORDER


@functools.lru_cache(maxsize=256)
def _public(key: bytes) -> Ed25519PublicKey | None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if proves_nothing(key):
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(key)
    except ValueError:
        return None


def check(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the holder of this public key signed the message. A malformed or
    weak key signed nothing."""
    from cryptography.exceptions import InvalidSignature

    public = _public(key)
    if public is None:
        return False
    try:
        public.verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
