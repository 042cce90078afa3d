"""Messages to bytes and back: a 4-byte big-endian length, then one msgpack map.

Sans-IO: `Decoder.feed` takes the bytes that arrived and returns whole messages. Anything else
raises ProtocolViolation, after which the connection cannot be used.
"""

from __future__ import annotations

import struct

import msgpack

from holdfast.model.errors import InvalidArgument, ProtocolViolation
from holdfast.model.limits import FRAME_MAX_BYTES
from holdfast.model.record import Malformed
from holdfast.wire.messages import BY_TAG
from holdfast.wire.messages.base import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH = struct.Struct(">I")
_OUTPUT_TAIL = struct.Struct(">BI")
_BIN32 = 0xC6
_pack = msgpack.Packer(use_bin_type=True).pack


def encode(message: Message) -> bytes:
    """One frame. Raises InvalidArgument for what no frame can carry: it is its caller's mistake."""
    try:
        body: bytes = _pack({"t": message.tag, **message.pack()})
    except OverflowError:
        raise InvalidArgument("a number is beyond 64 bits", hint="give a smaller one") from None
    except UnicodeEncodeError as error:
        said = ascii(error.object[error.start : error.start + 1])
        raise InvalidArgument(
            f"a text has {said} in it, which is no character", hint="give text that is UTF-8"
        ) from None
    return _LENGTH.pack(len(body)) + body


def output_head(channel: int, offset: int, size: int) -> bytes:
    """An Output frame without its data, so that the data can be sent straight from the ring. The
    last four bytes are the size of the data; the first four count it in."""
    head: bytes = _pack({"t": "output", "channel": channel, "offset": offset, "data": None})
    # The packed None (one byte, last) becomes the header of a byte string.
    body = head[:-1] + _OUTPUT_TAIL.pack(_BIN32, size)
    return _LENGTH.pack(len(body) + size) + body


def quiet_input(id: int, session: str, seq: int, data: bytes) -> bytes:
    """The frame of a quiet Input, without a message object: it is made for every key press."""
    body: bytes = _pack(
        {"t": "input", "id": id, "session": session, "seq": seq, "data": data, "quiet": True}
    )
    return _LENGTH.pack(len(body)) + body


def decode(body: bytes | bytearray | memoryview) -> Message:
    """The message in one frame's body."""
    message = _decode(body)
    if message is None:
        raise ProtocolViolation("not a known message")
    return message


def _decode(body: bytes | bytearray | memoryview) -> Message | None:
    """None: it answers nothing, and this version does not know it."""
    try:
        data = msgpack.unpackb(body, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise ProtocolViolation(f"not a message: {error}") from error
    tag = data.get("t") if type(data) is dict else None
    if type(tag) is not str:
        raise ProtocolViolation("not a message: it has no name")
    kind = BY_TAG.get(tag)
    if kind is None:
        if "id" in data:
            raise ProtocolViolation("not a known message")
        return None
    try:
        return (kind._unpacker or kind.unpack)(data, kind.tag)
    except Malformed as error:
        raise ProtocolViolation(str(error)) from error


class Decoder:
    """Assembles frames from pieces."""

    def __init__(self, limit: int = FRAME_MAX_BYTES, *, skips_unknown: bool = False) -> None:
        """`skips_unknown`: of a client, whose host may be newer and tell it something new."""
        self._limit, self._skips_unknown = limit, skips_unknown
        self._held = bytearray()

    @property
    def between_frames(self) -> bool:
        """Whether no part of a frame is held: the next byte begins one."""
        return not self._held

    def sole_fields(self, data: bytes) -> dict[str, Any] | None:
        """The fields of `data` if it is exactly one frame, unchecked; otherwise None. For the two
        messages of a key press: the receiver checks what it uses."""
        size = len(data) - 4
        if self._held or not 0 < size <= self._limit or _LENGTH.unpack_from(data)[0] != size:
            return None
        try:
            fields = msgpack.unpackb(data[4:])
        except (ValueError, msgpack.UnpackException):
            return None  # the ordinary path reports what is wrong
        return fields if type(fields) is dict else None

    def feed(self, data: bytes) -> list[Message]:
        """Messages completed by `data`, in order."""
        held = self._held
        if held:  # most often nothing is, and a frame comes whole
            held += data
        found = held or data
        messages = []
        start, whole = 0, len(found)
        while whole - start >= 4:
            (size,) = _LENGTH.unpack_from(found, start)
            if size > self._limit:
                raise ProtocolViolation(
                    f"a frame of {size} bytes is over the limit of {self._limit}"
                )
            end = start + 4 + size
            if end > whole:
                break
            message = _decode(found[start + 4 : end])
            if message is not None:
                messages.append(message)
            elif not self._skips_unknown:
                raise ProtocolViolation("not a known message")
            start = end
        if held:
            del held[:start]
        elif start < whole:
            held += data[start:]
        return messages
