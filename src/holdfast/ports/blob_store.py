"""A place for named blobs: a directory, or a bucket somewhere else. It knows nothing of what they
are; what is secret is encrypted before it gets here, and what comes back is checked by whoever
asked.

Blocking, because that is what files are; called from threads, several at once. A name is relative,
of lower-case letters, digits, `-` and `.`, in parts separated by `/`.

Every call ends within a bounded time. What fails is `CheckpointStoreDown` if the place does not
answer or refuses, and `StorageFailed` if it has no room or is broken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class Blob(NamedTuple):
    """What a listing says of one."""

    name: str
    size: int


class BlobStore(Protocol):
    """One place. Names in use by others below another prefix do not show."""

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        """The blob is there whole, or as before; never half. `new`: only if there is none of that
        name; False when there is one, which then stays."""

    def flush(self) -> None:
        """What was put before is still there after a loss of power."""

    def get(self, name: str) -> bytes | None:
        """The whole blob; None when there is none."""

    def list(self, prefix: str) -> Iterator[Blob]:
        """All whose name starts with this, which is "" or ends with `/`; in no order."""

    def delete(self, name: str) -> None:
        """It is gone; no error when it was not there."""

    def close(self) -> None:
        """No call follows."""
