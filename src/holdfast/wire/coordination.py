"""Values at the coordination point, as bytes. What they mean is not known here."""

from __future__ import annotations

import msgpack

from holdfast.model.errors import ProtocolViolation
from holdfast.model.lease import LeaseRecord
from holdfast.model.record import Malformed


def lease_key(session: str) -> str:
    return f"lease.{session}"


def pack_lease(record: LeaseRecord) -> bytes:
    packed: bytes = msgpack.packb(record.pack())
    return packed


def unpack_lease(value: bytes | None) -> LeaseRecord | None:
    """None when there is no record. A record that cannot be read is an error, not None: nobody may
    take a session because its record is damaged or of a newer version."""
    if value is None:
        return None
    try:
        return LeaseRecord.unpack(msgpack.unpackb(value))
    except (Malformed, ValueError, msgpack.exceptions.UnpackException) as error:
        raise ProtocolViolation(f"not a lease record: {error}") from error
