"""What source and target of one move say to each other over a `HostLink`.

    source                                 target
    Propose, or ResumeMove after a break ->
                                        <- Agreed, or Declined
    (the checkpoint), File ..., Image   ->
                                        <- Note restoring, restored
    File ..., Rest                      ->
                                        <- Note primed
    Note released                       ->
                                        <- AskRecord, WriteRecord: the lease's
    RecordFound, RecordWritten          ->
                                        <- MoveSettled

Files go in pieces and in order. A note that is lost or repeated does no harm; anything else is
asked for again after a break, or the move has failed by then.
"""

from __future__ import annotations

import re

import msgpack

from holdfast.core.continuity.move_events import HeldInput
from holdfast.model.errors import ProtocolViolation
from holdfast.model.home import Home
from holdfast.model.record import Malformed
from holdfast.wire.messages.base import Message


class Propose(Message, tag="propose"):
    """The source would like to move the session."""

    move: str  # the name of this move: the incarnation that the session will be at the target
    session: str
    name: str
    user: str
    uid: int
    epoch: int  # of the incarnation at the source
    source: str  # what people call the source
    home: Home  # where the source has its files: the session's processes know some of these paths


class ResumeMove(Message, tag="resume"):
    """After a break, or a new daemon: this move is not settled as far as the source knows."""

    move: str


class Agreed(Message, tag="agreed"):
    """The target expects it, or goes on with it."""


class Declined(Message, tag="declined"):
    """The target does not take it. To ResumeMove: it knows nothing of that move."""

    code: str
    message: str
    hint: str = ""


class File(Message, tag="file"):
    """A piece of a file of the session's directory. The first of a file replaces what was there."""

    path: str
    offset: int
    data: bytes


class Image(Message, tag="image"):
    """The checkpoint is at the target, and so are the files as they were at its moment."""

    checkpoint: str


class Rest(Message, tag="rest"):
    """The files are as they will stay."""

    held: tuple[HeldInput, ...]
    parcel: bytes


class Note(Message, tag="note"):
    """A `MoveNote`."""

    note: str
    reason: str = ""


class AskRecord(Message, tag="look"):
    """The target asks for the value at this key of the source's coordination point."""

    number: int
    key: str


class RecordFound(Message, tag="found"):
    """The answer. `error`: there was none."""

    number: int
    revision: int = 0
    value: bytes | None = None
    error: str = ""


class WriteRecord(Message, tag="replace"):
    """The target asks for a compare-and-set there."""

    number: int
    key: str
    value: bytes
    revision: int


class RecordWritten(Message, tag="replaced"):
    """What became of it: the new revision, lost (0), or unknown, and then why."""

    number: int
    revision: int = 0
    unknown: str = ""


class MoveSettled(Message, tag="settled"):
    """The target's part is over: the session lives there, or nothing of it is left."""

    lives: bool
    reason: str = ""


_MOVE_NAME = re.compile(r"[0-9a-f]{32}")  # files of the move are named after it
_KINDS: dict[str, type[Message]] = {
    kind.tag: kind
    for kind in (
        *(Propose, ResumeMove, Agreed, Declined, File, Image, Rest, Note),
        *(AskRecord, RecordFound, WriteRecord, RecordWritten, MoveSettled),
    )
}


def encode(message: Message) -> bytes:
    packed: bytes = msgpack.packb({"t": message.tag, **message.pack()})
    return packed


def decode(data: bytes) -> Message:
    """Raises ProtocolViolation."""
    try:
        fields = msgpack.unpackb(data)
        kind = _KINDS.get(fields.pop("t", "")) if isinstance(fields, dict) else None
        if kind is None:
            raise ProtocolViolation("no message of a move")
        said = kind.unpack(fields, kind.tag)
    except (ValueError, Malformed, msgpack.UnpackException) as error:
        raise ProtocolViolation(f"not a message of a move: {error}") from error
    if isinstance(said, Propose) and not _MOVE_NAME.fullmatch(said.move):
        raise ProtocolViolation("a move is named by 32 hexadecimal digits")
    return said
