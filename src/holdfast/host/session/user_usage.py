"""What each unix user has of this host: live sessions and those being started, their rings, and
the disk that their sessions, live and ended, take up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from holdfast.core.access.user_quotas import Usage, UserQuotas
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.ids import SessionId
from holdfast.model.limits import USER_DISK_LOOK_S

log = logging.getLogger(__name__)


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
        self._looking: dict[int, asyncio.Future[int]] = {}  # at the disk, in a thread, by uid

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
            self.disk_changed(uid)

    @contextlib.contextmanager
    def disk_growth(self, uid: int, size: int) -> Iterator[None]:
        """Held while a journal of this user's running session takes so much of the disk. Raises
        StorageFailed if it may not. The loop does not wait for a look at the disk: until there is
        one, what was known counts."""
        if uid in (0, self._host_uid):
            yield
            return
        self._look_if_stale(uid)
        self._quotas.check_journal(self._disk.known(uid), size)
        yield
        # Not before: a look at the disk would take it for something it has seen.
        self._disk.take(uid, size)

    def disk_changed(self, uid: int) -> None:
        """A session of this user began, or an ended one was pruned."""
        if uid not in (0, self._host_uid):
            self._disk.outdate(uid)
            self._look_if_stale(uid)

    def _look_if_stale(self, uid: int) -> None:
        if self._disk.is_stale(uid) and uid not in self._looking:
            look = asyncio.get_running_loop().run_in_executor(None, self._disk.used, uid)
            self._looking[uid] = look
            look.add_done_callback(lambda done: self._looked(uid, done))

    def _looked(self, uid: int, done: asyncio.Future[int]) -> None:
        del self._looking[uid]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("the disk of uid %d could not be looked at: %s", uid, error)

    def _used(self, uid: int, disk_bytes: int) -> Usage:
        rings = [live.ring.capacity for live in self._live.values() if live.spec.uid == uid]
        rings += [ring for who, ring in self._starting if who == uid]
        return Usage(len(rings), sum(rings), disk_bytes)


class _Look(NamedTuple):
    """At the directories of one user's sessions."""

    at: float
    size: int
    taken: int  # what journals had taken by then, by `take`


class UserDisk:
    """What the directories of a user's sessions take up. Looked at when asked, and then not again
    for a while; what journals take meanwhile is added."""

    def __init__(self, sessions_directory: str, size: Callable[[SessionId], int]) -> None:
        self._directory, self._size = sessions_directory, size
        self._uids: dict[str, int] = {}  # by session: it never changes
        self._seen: dict[int, _Look] = {}
        self._outdated: set[int] = set()
        self._taken: Counter[int] = Counter()
        self._one_at_a_time = threading.Lock()

    def used(self, uid: int) -> int:
        """As of the last look; looks again if that was long ago. Any thread but the loop's."""
        with self._one_at_a_time:
            if self.is_stale(uid):
                # Before the look: what changes during it may be counted twice, until the next one,
                # and is never missed.
                self._outdated.discard(uid)
                taken = self._taken[uid]
                size = sum(self._size(SessionId(name)) for name in self._of(uid))
                self._seen[uid] = _Look(time.monotonic(), size, taken)
        return self.known(uid)

    def known(self, uid: int) -> int:
        """Without a look; what was taken since this daemon began, if there never was one."""
        seen = self._seen.get(uid)
        return self._taken[uid] if seen is None else seen.size + self._taken[uid] - seen.taken

    def is_stale(self, uid: int) -> bool:
        seen = self._seen.get(uid)
        return (
            seen is None or uid in self._outdated or time.monotonic() >= seen.at + USER_DISK_LOOK_S
        )

    def take(self, uid: int, size: int) -> None:
        """A journal has taken so much."""
        self._taken[uid] += size

    def outdate(self, uid: int) -> None:
        """Something was made or removed. What was known counts until the next look."""
        self._outdated.add(uid)

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
