"""Checking Ed25519 signatures: the `Check` of journal and grants, and the channel's own. The
library takes 20 ms to import, so it is imported at the first signature.

Making signatures is not here: keys are kept by the host (adapters.signing) and by clients
(sdk.identity).
"""

from __future__ import annotations

import functools

from holdfast.model.weak_keys import proves_nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


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
