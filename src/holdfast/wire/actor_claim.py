"""How an actor proves at a connection that it is the one it says."""

from __future__ import annotations

from holdfast.model.ids import OperatorId

_CLAIM = b"holdfast claim v1\0"


def claim_text(host_key: bytes, challenge: bytes, operator: OperatorId) -> bytes:
    """What it signs: a challenge made for this connection, the host it was made by, and the
    operator it will be. So the signature is of no use to anybody else, or at any other time."""
    return _CLAIM + host_key + challenge + bytes.fromhex(operator)
