"""The end of a session: its tombstone is written, tried again while the disk has no room, and its
readers get the rest of the output before what it holds is given back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from holdfast.host.session.presence import Presence
from holdfast.host.session.record import SessionRecord
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.errors import StorageFailed
from holdfast.model.ids import SessionId

log = logging.getLogger(__name__)

RETRY_S = 5.0  # between tries to write a tombstone
_LINGER_S = 30.0  # an ended session's output waits this long for a slow reader


class Closing:
    """Of one session."""

    def __init__(
        self,
        session: SessionId,
        record: SessionRecord,
        presence: Presence,
        store: SessionStore,
        *,
        last_state: Callable[[], tuple[Stored, bytes, str]],
        release: Callable[[Stored], None],
        close: Callable[[], None],
    ) -> None:
        """`last_state`: what is shown of it, its output and its screen; `release`: the host gives
        up its custody; `close`: gives back what the session holds in this daemon."""
        self._session, self._journal, self._presence, self._store = session, record, presence, store
        self._last_state, self._release, self._close = last_state, release, close
        self._loop = asyncio.get_running_loop()
        # Before the tombstone is written, if that takes longer.
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.tombstone: asyncio.Future[Stored] = self._loop.create_future()

    def begin(self) -> None:
        """The main process is gone, and the journal has its last entry."""
        self._write_tombstone()
        if not self.ended.done():
            self.ended.set_result(None)

    def _write_tombstone(self) -> None:
        """Journal and tombstone first; only then is the custody given up."""
        stored, output, screen = self._last_state()
        try:
            if not self._journal.complete():
                raise StorageFailed(self._journal.unrecorded())
            self._store.bury(stored, output, screen)
        except StorageFailed as error:
            log.error("tombstone of %s: %s; trying again", self._session, error)
            self._loop.call_later(RETRY_S, self._write_tombstone)
            return
        self._release(stored)
        if not self.tombstone.done():
            self.tombstone.set_result(stored)
        self._presence.pump()
        if self._presence.attached():
            self._loop.call_later(_LINGER_S, self._drop_slow_readers)
        else:
            self.close_when_read()

    def _drop_slow_readers(self) -> None:
        """Their connection ends, so that they notice. The rest of the output is on disk; whoever
        comes back gets it from there."""
        for operator in self._presence.attached():
            operator.close()

    def close_when_read(self) -> None:
        """Nobody reads it: give back what it holds, once its tombstone is written."""
        if self.tombstone.done():
            self._close()
