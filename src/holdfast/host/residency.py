"""What sessions cost while they live (S8): from the kernel and the disk, measured off the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from holdfast.adapters.proc.residency import residency
from holdfast.host.session_store import SessionStore
from holdfast.model.ids import SessionId
from holdfast.model.info import Residency
from holdfast.model.spec import Place

Measured = tuple[SessionId, Place | None]  # None: it has ended, and costs only disk


class ResidencyMeter:
    """Of one host."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    async def of(self, sessions: Iterable[Measured]) -> list[Residency]:
        """In the order given."""
        asked = list(sessions)
        return await asyncio.to_thread(lambda: [self._of(*each) for each in asked])

    def _of(self, session: SessionId, place: Place | None) -> Residency:
        lives = residency(place) if place is not None else Residency()
        return lives.replace(disk_bytes=self._store.disk_bytes(session))


def total(measured: Iterable[Residency]) -> Residency:
    each = list(measured)
    return Residency(
        sum(one.memory_bytes for one in each),
        sum(one.processes for one in each),
        sum(one.descriptors for one in each),
        sum(one.disk_bytes for one in each),
    )
