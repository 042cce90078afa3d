"""What this host's part of the store holds, and how much more it may."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from holdfast.model.errors import CheckpointQuotaReached


class ImageCensus:
    """Names and sizes of chunks; asked by several threads at once. A chunk that is counted is there
    whole, or is being written by whoever claimed it."""

    def __init__(self, chunks: Iterable[tuple[str, int]], other_bytes: int, quota: int) -> None:
        """`other_bytes`: of manifests. `quota`: 0 for any amount."""
        self._sizes = dict(chunks)
        self._used = sum(self._sizes.values()) + other_bytes
        self._quota = quota
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        return self._used

    def claim(self, name: str) -> bool:
        """Whether the caller is to store this chunk: it is not there, and nobody else does."""
        with self._lock:
            if name in self._sizes:
                return False
            self._sizes[name] = 0
            return True

    def has(self, name: str) -> bool:
        with self._lock:
            return name in self._sizes

    def reserve(self, size: int, name: str = "") -> None:
        """Room for a chunk that was claimed, or for a manifest. Raises CheckpointQuotaReached."""
        with self._lock:
            if self._quota and self._used + size > self._quota:
                raise CheckpointQuotaReached(
                    f"the checkpoints of this host use {self._used} bytes of the "
                    f"{self._quota} that `checkpoint_quota_bytes` allows, and this one needs more",
                    hint="`hold checkpoints rm ID` deletes one; or raise the setting in "
                    "config.toml",
                )
            self._used += size
            if name:
                self._sizes[name] = size

    def forget(self, name: str) -> None:
        """This chunk is not there, or is no good."""
        with self._lock:
            self._used -= self._sizes.pop(name, 0)

    def release(self, size: int) -> None:
        """A manifest is gone."""
        with self._lock:
            self._used -= size

    def names(self) -> list[str]:
        with self._lock:
            return list(self._sizes)
