"""A file that says who may do what: `authority.json` or `admission.json`.

Giving a right needs the disk: `write` raises, and the right is not given. Taking one away does not:
`write_when_possible` spends the reserve, and if the disk takes nothing at all, tries again until it
does. Until then the change holds in this daemon's memory only, and is lost with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from holdfast.adapters.disk_reserve import DiskReserve
from holdfast.host import json_file
from holdfast.host.session_store import storage_failed
from holdfast.model.limits import RIGHTS_RESERVE_BYTES, RIGHTS_RETRY_S
from holdfast.model.record import Record

log = logging.getLogger(__name__)


class RightsFile:
    """`content` gives the record as it is in memory now."""

    def __init__(self, path: str, content: Callable[[], Record]) -> None:
        self._path, self._content = path, content
        self._reserve = DiskReserve(path)
        self._why = ""
        self._retry_at: asyncio.TimerHandle | None = None

    def unrecorded(self) -> str:
        """Why what holds in memory is not on disk; "" when it is."""
        return self._why

    def prepare(self) -> None:
        """Keep room from the start of a daemon on, if there is any to be had."""
        with contextlib.suppress(OSError):
            self._keep_reserve(self._content())

    def write(self, record: Record) -> None:
        """Before a change that gives something. Raises StorageFailed; then nothing has changed."""
        try:
            self._keep_reserve(record)
            json_file.write(self._path, record)
        except OSError as error:
            raise storage_failed(error) from error
        self._recorded()

    def write_when_possible(self) -> None:
        """After a change that takes something away."""
        record = self._content()
        try:
            try:
                json_file.write(self._path, record)
            except OSError:
                self._reserve.spend(json_file.encode(record))
        except OSError as error:
            self._why = storage_failed(error).message
            log.critical("%s is not up to date, rights are taken away: %s", self._path, self._why)
            self._retry_later()
        else:
            self._recorded()

    def _keep_reserve(self, record: Record) -> None:
        # Taking everything away that a record grants makes it less than twice as long.
        self._reserve.keep(2 * len(json_file.encode(record)) + RIGHTS_RESERVE_BYTES)

    def _recorded(self) -> None:
        if self._why:
            log.warning("%s is up to date again", self._path)
        self._why = ""
        if self._retry_at is not None:
            self._retry_at.cancel()
            self._retry_at = None

    def _retry_later(self) -> None:
        if self._retry_at is None:
            self._retry_at = asyncio.get_running_loop().call_later(RIGHTS_RETRY_S, self._retry)

    def _retry(self) -> None:
        self._retry_at = None
        self.write_when_possible()
