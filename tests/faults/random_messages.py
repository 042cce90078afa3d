"""Messages with random values of the declared types, made from the declarations alone: a message
that is new is made like all others. What a field is likely to be is said by its name, so that some
of what is made gets past the first check."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from types import GenericAlias, UnionType
from typing import Any, TypeVar

from holdfast.model.ids import ActorId, OperatorId, SessionId
from holdfast.model.record import Record

R = TypeVar("R", bound=Record)

LIKELY = 0.7  # how often a field has one of its likely values
INTS = (0, 1, 2, 15, -1, 255, 65_536, 1 << 31, 1 << 62, -(1 << 63), (1 << 64) - 1)
FLOATS = (0.0, 1.0, -1.0, 1e-300, 1e300, float("nan"), float("inf"), float("-inf"))
TEXTS = (
    *("", "x", " ", "..", "../../x", "a\0b", "a\nb", "\x1b[2J", "\u202e", "café", "\U0001f600"),
    *("all", "label:x", "session:x", "session:", "-1", "true", "%s%n", "x" * 65, "y" * 5000),
)
BYTES = (b"", b"\0", b"\xff" * 32, b"k" * 64, b"z" * 300, b"\x1b]0;t\x07", b"x" * (65 << 10))
LONGEST = 3  # items of a list or map


class RandomMessages:
    """From one seed. `likely`: values for the fields of a name, or for one field: `tag.name`."""

    def __init__(self, seed: int | str, likely: Mapping[str, Sequence[Any]]) -> None:
        self.chance = random.Random(seed)
        self.likely = dict(likely)

    def of(self, kind: type[R], **given: Any) -> R:
        tag = getattr(kind, "tag", "")
        made = {name: self._field(tag, name, of) for name, of in fields(kind).items()}
        return kind(**made | given)

    def _field(self, tag: str, name: str, kind: Any) -> Any:
        likely = self.likely.get(f"{tag}.{name}") or self.likely.get(name)
        if likely and self.chance.random() < LIKELY:
            return self.chance.choice(likely)
        return self.value(kind)

    def value(self, kind: Any) -> Any:
        chance = self.chance
        if isinstance(kind, UnionType):
            return self.value(chance.choice(kind.__args__))
        if isinstance(kind, GenericAlias):
            of = kind.__args__[1 if kind.__origin__ is dict else 0]
            items = [self.value(of) for _ in range(chance.randrange(LONGEST + 1))]
            if kind.__origin__ is dict:
                return {chance.choice(TEXTS): item for item in items}
            return tuple(items)
        if kind in (None, type(None)):
            return None
        if issubclass(kind, Record):
            return self.of(kind)
        if issubclass(kind, Enum):
            return chance.choice(list(kind))
        return self._plain(kind)

    def _plain(self, kind: type) -> Any:
        chance = self.chance
        if kind is SessionId:
            return SessionId.of_key(chance.randbytes(32))
        if kind is ActorId:
            return ActorId.of_key(chance.randbytes(32))
        if kind is OperatorId:
            return OperatorId(chance.randbytes(16).hex())
        if kind is bool:
            return chance.random() < 0.5
        if kind is int:
            return chance.choice(INTS) if chance.random() < 0.8 else chance.getrandbits(63)
        if kind is float:
            return chance.choice(FLOATS)
        if kind is str:
            return chance.choice(TEXTS)
        if kind is bytes:
            # The longest rarely: what it costs to carry it is not what is looked at.
            return chance.choice(BYTES[:-1]) if chance.random() < 0.98 else BYTES[-1]
        raise TypeError(f"no values are known for {kind!r}: add them here")


@cache
def fields(kind: type[Record]) -> dict[str, Any]:
    """The declared type of each field."""
    found = {}
    for owner in reversed(kind.__mro__):
        scope = vars(sys.modules[owner.__module__])
        for name, declared in vars(owner).get("__annotations__", {}).items():
            if name in kind._fields:
                found[name] = eval(declared, scope) if isinstance(declared, str) else declared
    return found
