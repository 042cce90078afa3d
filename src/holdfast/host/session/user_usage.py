"""What each unix user has of this host: live sessions and those being started, their rings, and
the disk that their sessions, live and ended, take up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Protocol

from holdfast.core.access.user_quotas import Usage, UserQuotas
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.ids import SessionId
from holdfast.model.limits import USER_DISK_LOOK_S


class SizedRing(Protocol):
    """A session's ring, as far as it counts."""

    @property
    def capacity(self) -> int: ...


class CountedSession(Protocol):
    """A live session, as far as it counts."""

    spec: SessionSpec

    @property
    def ring(self) -> SizedRing: ...


class UserUsage:
    """Of one host, with the quotas that it is compared with."""

    def __init__(
        self,
        quotas: UserQuotas,
        host_uid: int,
        live: Mapping[SessionId, CountedSession],
        sessions_directory: str,
        disk_bytes: Callable[[SessionId], int],
    ) -> None:
        """`disk_bytes`: what the directory of a session uses."""
        self._quotas, self._host_uid, self._live = quotas, host_uid, live
        self._starting: list[tuple[int, int]] = []  # uid and ring of each
        self._disk = UserDisk(sessions_directory, disk_bytes)

    @contextlib.asynccontextmanager
    async def place(self, asker: int, uid: int, ring_bytes: int) -> AsyncIterator[None]:
        """Held while a session of `uid` is started for `asker`; then it counts as a live one."""
        trusted = asker in (0, self._host_uid)
        disk = 0 if trusted else await asyncio.to_thread(self._disk.used, uid)
        self._quotas.check_session(
            self._used(uid, disk),
            ring_bytes,
            len(self._live) + len(self._starting),
            trusted=trusted,
        )
        place = uid, ring_bytes
        self._starting.append(place)
        try:
            yield
        finally:
            self._starting.remove(place)

    def _used(self, uid: int, disk_bytes: int) -> Usage:
        rings = [live.ring.capacity for live in self._live.values() if live.spec.uid == uid]
        rings += [ring for who, ring in self._starting if who == uid]
        return Usage(len(rings), sum(rings), disk_bytes)


class UserDisk:
    """What the directories of a user's sessions take up. Looked at when asked, and then not again
    for a while."""

    def __init__(self, sessions_directory: str, size: Callable[[SessionId], int]) -> None:
        self._directory, self._size = sessions_directory, size
        self._uids: dict[str, int] = {}  # by session: it never changes
        self._seen: dict[int, tuple[float, int]] = {}

    def used(self, uid: int) -> int:
        at, size = self._seen.get(uid, (float("-inf"), 0))
        if time.monotonic() < at + USER_DISK_LOOK_S:
            return size
        size = sum(self._size(SessionId(name)) for name in self._of(uid))
        self._seen[uid] = time.monotonic(), size
        return size

    def _of(self, uid: int) -> Iterator[str]:
        names = os.listdir(self._directory)
        self._uids = {name: self._uids[name] for name in names if name in self._uids}
        for name in names:
            if name not in self._uids:
                owner = _owner(f"{self._directory}/{name}")
                if owner is not None:
                    self._uids[name] = owner
            if self._uids.get(name) == uid:
                yield name


def _owner(path: str) -> int | None:
    """None while it is being started."""
    for name in ("spec.json", "tombstone.json"):
        with contextlib.suppress(OSError, ValueError, KeyError), open(f"{path}/{name}") as file:
            return int(json.load(file)["uid"])
    return None
