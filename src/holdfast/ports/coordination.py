"""The coordination point: a few small values, replaced by compare-and-set.

It has only three operations, so that any store with compare-and-set can implement it. Leases and
the registry are not here; neither is a clock: no lease depends on this port's times.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import COORDINATION_KEY_MAX_CHARS, COORDINATION_VALUE_MAX_BYTES
from holdfast.model.record import Record

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class StoredValue(Record):
    """The value at a key. `value` None: there is none; the next `cas` must still name
    `revision`."""

    key: str
    revision: int
    value: bytes | None


class Written(Record):
    """Written durably."""

    revision: int


class CasLost(Record):
    """Refused: the entry has another revision, written by somebody else. With several servers our
    value may have been visible for a moment before that: CasLost gives nothing, but does not prove
    that nobody saw the value."""


class CasUnknown(Record):
    """No answer. It may have been written, or may still be: read before relying on it."""

    why: str


class Coordination(Protocol):
    """Keys are words of letters, digits, `_` and `-`, joined by dots. The revisions of a key rise
    for the life of the store, and are never 0 if there is a value."""

    async def get(self, key: str) -> StoredValue:
        """The current value, or a recent one. Raises CoordinationDown without an answer."""

    async def cas(
        self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
    ) -> Written | CasLost | CasUnknown:
        """Replace the value with this revision; 0: there must be none. With `gone_after_s` the
        store may delete it after that time, by its own clock, unless it is replaced: this is only
        for cleaning up. Raises StorageFailed, with nothing written, if the store is full."""

    def watch(self, key: str, *, below: bool = False) -> AsyncIterator[StoredValue]:
        """The current value, if any, then each new one, until closed. Of changes in quick
        succession only the last is guaranteed. `below`: also of every key that begins with these
        words. A lost connection to the store does not end it: it catches up."""

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
    """What every adapter checks before it calls its store."""
    check_key(key)
    if len(value) > COORDINATION_VALUE_MAX_BYTES:
        raise InvalidArgument(
            f"a value has at most {COORDINATION_VALUE_MAX_BYTES} bytes, not {len(value)}"
        )
    if not value:
        raise InvalidArgument("a value must not be empty")
    if revision < 0 or (gone_after_s is not None and gone_after_s < 1):
        raise InvalidArgument(
            "a revision must not be negative, and gone_after_s must be at least 1 s"
        )
