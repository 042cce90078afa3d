"""How an actor proves its identity on a connection."""

from __future__ import annotations

from holdfast.model.ids import OperatorId

_CLAIM = b"holdfast claim v1\0"


def claim_text(host_key: bytes, challenge: bytes, operator: OperatorId) -> bytes:
    """What it signs: a challenge made for this connection, the host's key and the operator's id. So
    the signature is useless anywhere else and at any other time."""
    return _CLAIM + host_key + challenge + bytes.fromhex(operator)
