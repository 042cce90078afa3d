"""The base of every message: a Record with a tag. Each Request gets an Answer with its id."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

PROTOCOL_VERSION = 1


class Message(Record):
    """Base: `tag` is the wire name. `capability`: it is sent only to a peer that announced that
    when it greeted, because another one may not know the message."""

    tag: ClassVar[str] = ""
    capability: ClassVar[str] = ""

    def __init_subclass__(cls, *, tag: str = "", capability: str = "") -> None:
        cls.tag, cls.capability = tag, capability


class Request(Message):
    """Base of every message that is answered. The docstring of each says by what ("Answered by
    Done."), and the schema has it from there."""

    id: int  # chosen by the operator, not 0; the answer has the same


class Answer(Message):
    """Base of every answer to a request."""

    id: int  # that of the request
