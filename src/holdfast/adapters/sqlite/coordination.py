"""The coordination point in one file: for a single relay.

WAL with synchronous=FULL, so what was acknowledged survives a killed process and a lost machine.
Every call runs in a thread of its own, as SQLite blocks; that thread is the only user of the
connection. Other processes may have the same file open: a watch sees their writes by looking at the
file's change counter. Nothing here is replicated.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from holdfast.model.errors import CoordinationDown, HoldfastError, StorageFailed
from holdfast.model.limits import (
    COORDINATION_CALL_S,
    COORDINATION_MARKER_S,
    COORDINATION_POLL_S,
)
from holdfast.ports.coordination import (
    CasLost,
    CasUnknown,
    StoredValue,
    Written,
    check_key,
    check_write,
)

_T = TypeVar("_T")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value BLOB, gone_at REAL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_revision ON entries (revision);
CREATE INDEX IF NOT EXISTS by_end ON entries (gone_at) WHERE gone_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS counter (only INTEGER PRIMARY KEY CHECK (only = 0), revision INTEGER);
INSERT OR IGNORE INTO counter VALUES (0, 0);
"""


class SqliteCoordination:
    """Opened by the constructor, which blocks for as long as the disk takes."""

    def __init__(self, path: Path, *, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        self._changed = asyncio.Event()  # set and replaced when this client wrote
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="coordination")
        self._db = self._thread.submit(self._open).result()

    # -- the port ---------------------------------------------------------------------------------

    async def get(self, key: str) -> StoredValue:
        check_key(key)
        return await self._run(lambda: self._get(key))

    async def cas(
        self, key: str, value: bytes, revision: int, *, gone_after_s: int | None = None
    ) -> Written | CasLost | CasUnknown:
        check_write(key, value, revision, gone_after_s)
        gone_at = None if gone_after_s is None else self._now() + gone_after_s
        outcome = await self._run(lambda: self._cas(key, value, revision, gone_at))
        if isinstance(outcome, Written):
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
        return outcome

    async def watch(self, key: str, *, below: bool = False) -> AsyncIterator[StoredValue]:
        check_key(key)
        seen = counted = -1
        while True:
            changed = self._changed
            try:
                counted, entries = await self._run(
                    lambda c=counted, s=seen: self._since(key, below, c, s)  # type: ignore[misc]
                )
            except HoldfastError:
                entries = []  # read again below, while there are watchers
            for entry in entries:
                seen = max(seen, entry.revision)
                yield entry
            # Not wait_for: in Python 3.11 it loses a cancellation that coincides with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COORDINATION_POLL_S):
                    await changed.wait()

    async def close(self) -> None:
        await self._run(self._db.close)
        self._thread.shutdown()

    # -- in the thread ----------------------------------------------------------------------------

    async def _run(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as error:
            raise _told(self._path, error) from error

    def _open(self) -> sqlite3.Connection:
        try:
            db = sqlite3.connect(
                self._path,
                timeout=COORDINATION_CALL_S,
                isolation_level=None,  # transactions are begun and ended by name
                check_same_thread=True,
            )
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise _told(self._path, error) from error
        return db

    def _get(self, key: str) -> StoredValue:
        self._tidy()
        row = self._db.execute("SELECT revision, value FROM entries WHERE key = ?", (key,))
        revision, value = row.fetchone() or (0, None)
        return StoredValue(key, revision, value)

    def _cas(
        self, key: str, value: bytes, revision: int, gone_at: float | None
    ) -> Written | CasLost | CasUnknown:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if _kind(error) == sqlite3.SQLITE_BUSY:
                return CasUnknown("another process keeps the file locked")
            raise
        committing = False
        try:
            if self._get(key).revision != revision:
                return CasLost()
            done = Written(self._put(key, value, gone_at))
            committing = True
            self._db.execute("COMMIT")
            return done
        except sqlite3.Error as error:
            # A commit whose sync failed may be on disk all the same; one without room is not.
            if committing and _kind(error) != sqlite3.SQLITE_FULL:
                return CasUnknown(str(error))
            raise
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _put(self, key: str, value: bytes | None, gone_at: float | None) -> int:
        self._db.execute("UPDATE counter SET revision = revision + 1")
        (revision,) = self._db.execute("SELECT revision FROM counter").fetchone()
        self._db.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", (key, revision, value, gone_at)
        )
        return int(revision)

    def _tidy(self) -> None:
        """What is over leaves a mark, so that watches see it go; later the mark goes too."""
        now = self._now()
        over = self._db.execute(
            "SELECT key, value IS NULL FROM entries WHERE gone_at <= ?", (now,)
        ).fetchall()
        if not over:
            return
        outermost = not self._db.in_transaction
        if outermost:
            self._db.execute("BEGIN IMMEDIATE")
        try:
            for key, marked in over:
                if marked:
                    self._db.execute("DELETE FROM entries WHERE key = ?", (key,))
                else:
                    self._put(key, None, now + COORDINATION_MARKER_S)
            if outermost:
                self._db.execute("COMMIT")
        finally:
            if outermost and self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _since(
        self, key: str, below: bool, counted: int, seen: int
    ) -> tuple[int, list[StoredValue]]:
        """The entries with a higher revision than `seen`. The file's counter tells of other
        connections' writes only, so it is asked with our own revision."""
        self._tidy()
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        (revision,) = self._db.execute("SELECT revision FROM counter").fetchone()
        count = hash((version, revision))
        if count == counted:
            return counted, []
        rows = self._db.execute(
            "SELECT key, revision, value FROM entries WHERE revision > ?"
            " AND (key = ? OR (? AND substr(key, 1, ?) = ?)) ORDER BY revision",
            (seen, key, below, len(key) + 1, key + "."),
        )
        return count, [StoredValue(*row) for row in rows]


def _kind(error: sqlite3.Error) -> int:
    """The primary code, without SQLite's finer distinctions."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _told(path: Path, error: sqlite3.Error) -> HoldfastError:
    if _kind(error) == sqlite3.SQLITE_BUSY:
        return CoordinationDown(f"{path.name} is locked by another process")
    return StorageFailed(
        f"{path.name}: {error}", hint="free space, or see that the file can be written and is whole"
    )
