"""The first bytes of a stream through a relay: which channel follows. Message 1 of that channel
(docs/channel.md) comes in the same piece.

    S  26 bytes   that session's own channel
    H             the host's: whatever is about no one session
    I   8 bytes   an invite: a device that is not known yet comes in
    T   8 bytes   a ticket: another host has something to bring (host_link.py)

None of this is secret or trusted: a handshake made for another channel fails.
"""

from __future__ import annotations

from holdfast.model.errors import ProtocolViolation
from holdfast.model.ids import SessionId
from holdfast.model.invite import INVITE_ID_BYTES
from holdfast.model.record import Record

_SESSION, _HOST, _INVITE, _TICKET = b"S", b"H", b"I", b"T"
_SESSION_BYTES = 26
TICKET_ID_BYTES = 8
HOST_EPOCH = 1  # of a host's own channel: a host has no incarnations


class Opening(Record):
    """With none of these it is the host's own channel."""

    session: SessionId | None = None
    invite: bytes = b""
    ticket: bytes = b""

    def encoded(self) -> bytes:
        if self.session is not None:
            return _SESSION + self.session.encode()
        if self.ticket:
            return _TICKET + self.ticket
        return _INVITE + self.invite if self.invite else _HOST


def read_opening(data: bytes) -> tuple[Opening, bytes]:
    """What the stream is for, and message 1."""
    kind, rest = data[:1], data[1:]
    if kind == _HOST:
        return Opening(), rest
    if kind == _INVITE and len(rest) >= INVITE_ID_BYTES:
        return Opening(invite=rest[:INVITE_ID_BYTES]), rest[INVITE_ID_BYTES:]
    if kind == _TICKET and len(rest) >= TICKET_ID_BYTES:
        return Opening(ticket=rest[:TICKET_ID_BYTES]), rest[TICKET_ID_BYTES:]
    if kind == _SESSION and len(rest) >= _SESSION_BYTES:
        try:
            session = SessionId(rest[:_SESSION_BYTES].decode("ascii"))
        except ValueError as error:
            raise ProtocolViolation(f"not a stream opening: {error}") from None
        return Opening(session), rest[_SESSION_BYTES:]
    raise ProtocolViolation("not a stream opening")


def host_channel(host_key: bytes) -> SessionId:
    """The id that a host's own channel uses in place of a session's."""
    return SessionId.of_key(host_key)
