"""The part of protocol buffers that CRIU's requests and images use: numbers and byte strings, by
field number. What is not known is kept as it is.

Deliberately knows no message: each has its field numbers where it is used.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WORD = 64


class Field(NamedTuple):
    """One field of a message, as it stands there."""

    number: int
    value: int | bytes
    fixed: int = 0  # bytes of a number that is not stored as a varint

    @property
    def data(self) -> bytes:
        assert isinstance(self.value, bytes)
        return self.value


def field(number: int, value: bool | int | str | bytes) -> Field:
    if isinstance(value, str):
        return Field(number, value.encode(errors="surrogateescape"))
    return Field(number, value if isinstance(value, bytes) else int(value))


def encode(fields: Iterable[Field]) -> bytes:
    return b"".join(_encoded(*each) for each in fields)


def _encoded(number: int, value: int | bytes, fixed: int) -> bytes:
    if isinstance(value, bytes):
        return _varint(number << 3 | _BYTES) + _varint(len(value)) + value
    if fixed:
        kind = _FIXED64 if fixed == 8 else _FIXED32
        return _varint(number << 3 | kind) + value.to_bytes(fixed, "little")
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    value &= (1 << _WORD) - 1  # a negative number is ten bytes long
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data: bytes) -> list[Field]:
    """Raises ValueError when the data ends too early or has a kind of field that CRIU does not
    use."""
    found, at = [], 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            found.append(Field(number, value))
        elif kind == _BYTES:
            size, at = _read_varint(data, at)
            found.append(Field(number, _cut(data, at, size)))
            at += size
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
            whole = int.from_bytes(_cut(data, at, size), "little")
            found.append(Field(number, whole, size))
            at += size
        else:
            raise ValueError(f"a field of kind {kind}")
    return found


def _cut(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError("a message is cut short")
    return data[at : at + size]


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift >= _WORD + 6:
            raise ValueError("a message is cut short")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at


# -- image files: two magic numbers (the second is missing in some), then sized messages -----------

_U32 = struct.Struct("=I")
_HEAD_BYTES = 8


def read_image(data: bytes) -> tuple[bytes, list[list[Field]]]:
    """The head, and the messages of an image that has nothing else behind each."""
    messages, at = [], _HEAD_BYTES
    while at < len(data):
        (size,) = _U32.unpack(_cut(data, at, 4))
        messages.append(decode(_cut(data, at + 4, size)))
        at += 4 + size
    return _cut(data, 0, _HEAD_BYTES), messages


def write_image(head: bytes, messages: Iterable[Iterable[Field]]) -> bytes:
    packed = (encode(message) for message in messages)
    return head + b"".join(_U32.pack(len(each)) + each for each in packed)
