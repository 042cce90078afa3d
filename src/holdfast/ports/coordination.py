"""The coordination point: a few small values, each replaced only by who knows what it replaces.

Three verbs are all there is, so that anything with compare-and-set can stand behind them. Leases,
registry and their meaning are not here; neither is a clock: no promise of a lease rests on this
port's times.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import COORDINATION_KEY_MAX_CHARS, COORDINATION_VALUE_MAX_BYTES
from holdfast.model.record import Record

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class StoredValue(Record):
    """What stands at a key. `value` None: nothing; `revision` is still what the next `cas` must
    name."""

    key: str
    revision: int
    value: bytes | None


class Written(Record):
    """Written, on disk where the store has one, and it will not be forgotten."""

    revision: int


class CasLost(Record):
    """Refused: the revision named is not the entry's, another's write stands there. Where several
    servers keep the store, ours may have stood before that one for a moment: a Lost gives nothing,
    but it is no proof that nobody saw the value."""


class CasUnknown(Record):
    """No answer. It may have been written, or may be yet: read before anything rests on it."""

    why: str


class Coordination(Protocol):
    """Keys are words of letters, digits, `_` and `-`, joined by dots. Revisions of one key rise
    for as long as the store lives, and are never 0 where there is a value."""

    async def get(self, key: str) -> StoredValue:
        """What stands there, or lately stood there. Raises CoordinationDown without an answer."""

    async def cas(
        self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
    ) -> Written | CasLost | CasUnknown:
        """Replaces what has this revision; 0: what never was, or is forgotten. With `gone_after_s`
        the store may forget it after so long, by its own clock, if it is not replaced: that is for
        tidying up, and safe for nothing else. Raises StorageFailed, with nothing written, if the
        store has no room."""

    def watch(self, key: str, *, below: bool = False) -> AsyncIterator[StoredValue]:
        """What stands there now, if anything, then what comes to stand there, until closed. Of
        changes in quick succession only the last is sure to be told. `below`: of every key that
        begins with this word or words, too. Losing touch with the store ends nothing: it catches
        up."""

    async def close(self) -> None: ...


def check_key(key: str) -> str:
    words = key.split(".")
    if len(key) > COORDINATION_KEY_MAX_CHARS or not all(
        word and _LETTERS.issuperset(word) for word in words
    ):
        raise InvalidArgument(
            f"not a key: {key[:80]!r}", hint="words of letters, digits, '_', '-', joined by '.'"
        )
    return key


def check_write(key: str, value: bytes, revision: int, gone_after_s: int | None) -> None:
    """What every adapter refuses before it asks its store."""
    check_key(key)
    if len(value) > COORDINATION_VALUE_MAX_BYTES:
        raise InvalidArgument(
            f"a value of {len(value)} bytes; at most {COORDINATION_VALUE_MAX_BYTES} are kept"
        )
    if not value:
        raise InvalidArgument("an empty value cannot be told from none")
    if revision < 0 or (gone_after_s is not None and gone_after_s < 1):
        raise InvalidArgument("revisions are not negative, and tidying up takes at least 1 s")
