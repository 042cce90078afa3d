"""The ghosts of a session's last checkpoint, kept until its next one.

Neither ever changes, so a page was not written in between exactly if both have the same physical
one: what did not change is then neither read nor encrypted again. Without it the next checkpoint
stores no more, but it takes a second of a processor per gigabyte instead of some tens of
milliseconds; so it is done for sessions that are checkpointed periodically, and only while memory
is plenty: what the session writes in between exists twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from typing import NamedTuple

from holdfast.adapters.criu.ghosts import Ghosts
from holdfast.host.continuity.image_cutting import WindowPlace
from holdfast.host.continuity.image_manifest import Chunk
from holdfast.model.ids import SessionId


class LastGhosts(NamedTuple):
    """Of one checkpoint that is stored."""

    ghosts: Ghosts
    chunks: dict[WindowPlace, Chunk]  # what is stored of each window


class KeptGhosts:
    """Of all sessions of a host."""

    def __init__(self) -> None:
        self._last: dict[SessionId, LastGhosts] = {}

    def take(self, session: SessionId) -> LastGhosts | None:
        """Whoever takes them closes them."""
        return self._last.pop(session, None)

    def keep(self, session: SessionId, last: LastGhosts) -> None:
        """Until its next checkpoint, or `drop_some`. There are none of it here."""
        self._last[session] = last

    async def drop_some(self, live: Container[SessionId]) -> None:
        """Those of sessions that are over, and all for which there is no longer enough memory."""
        for session, last in list(self._last.items()):
            fits = session in live and await asyncio.to_thread(last.ghosts.fits)
            if not fits and self._last.get(session) is last:
                del self._last[session]
                await asyncio.to_thread(last.ghosts.close)
