"""Moves of sessions to other hosts."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.wire.messages.base import Answer, Message, Request


class Move(Request, tag="move"):
    """Move a session to another host, with its memory, under the same id, in its next epoch. Needs
    the rights `checkpoint` and `end` there, and a ticket that whoever may let sessions in at the
    other host has fetched there. Answered by SessionMoved, or by `failed`: then it goes on here. It
    is done also if the asker leaves."""

    session: str  # a name or a whole id
    ticket: str  # of the other host
    to: str = ""  # what the asker calls that host, for messages


class SessionMoved(Answer, tag="moved"):
    """It lives at the other host."""

    session: SessionId  # id of the session
    name: str  # its name
    host: str  # where it lives now: the name of that machine
    epoch: int  # of the incarnation that was here
    bytes: int  # size of its image
    seconds: float  # from asking to the end
    downtime_s: float  # how much of this it stood still, as this host saw it


class MigrationEvent(Message, tag="migration"):
    """How far the move of a session is: sent to those who watch it at either host."""

    session: SessionId  # id of the session
    name: str  # its name
    at: float  # when this was sent, seconds since 1970
    # `snapshot`, `transfer`, `restore`, `replay`, `cutover`, `complete`; empty: it is over
    phase: str
    superposition: str  # `transferring`, `dual-active`, `post-cutover`, `settled`, `pre-migration`
    host: str  # the other host
    leaves: bool  # it leaves this host; else it comes
    reason: str  # why it is rolled back; empty while it is not
