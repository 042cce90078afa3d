"""The epoch rule: only a session's incarnation with the highest known epoch is routed, and an epoch
belongs to one host forever.

`MemoryFloors` are one relay's own and are lost with it; hosts that reconnect announce again, and
the first to do so is believed. Operators keep floors of their own, so a relay that forgot can
misroute for a while but deceive nobody. `SharedFloors` are stored at a coordination point: a file,
for one relay that is restarted, or NATS, for several relays, each of which learns what rose at
another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Protocol

from holdfast.model.errors import CoordinationDown
from holdfast.model.ids import SessionId
from holdfast.model.limits import RELAY_EPOCHS_MAX
from holdfast.model.record import Record
from holdfast.ports.coordination import Coordination, Written

_PLACE = "relay_floors"  # prefix of the keys at the coordination point
_EPOCH_BYTES = 8
_TRIES = 8  # a try fails when another relay wrote first, or without an answer


class Floor(Record):
    """The highest known epoch of a session, and its host."""

    epoch: int
    host: bytes

    def admits(self, epoch: int, host: bytes) -> bool:
        return (epoch, host) == (self.epoch, self.host)


class Floors(Protocol):
    """Where floors are stored."""

    lasting: bool  # whether they survive the relay

    async def rise(self, session: SessionId, epoch: int, host: bytes) -> Floor:
        """Raise the floor to this epoch of this host if it is lower, and return the resulting
        floor."""
        ...

    def risen(self) -> AsyncIterator[tuple[SessionId, Floor]]:
        """Floors as they rise, here or at another relay that shares them."""
        ...

    def known(self, session: SessionId) -> Floor | None:
        """The floor as known locally."""
        ...


class _Heard:
    """Floors in memory; beyond the limit the least recent is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._floors: OrderedDict[SessionId, Floor] = OrderedDict()

    def raised(self, session: SessionId, floor: Floor) -> Floor:
        known = self._floors.get(session)
        if known is None or known.epoch < floor.epoch:
            self._floors[session] = known = floor
            if len(self._floors) > self._most:
                self._floors.popitem(last=False)
        self._floors.move_to_end(session)
        return known

    def known(self, session: SessionId) -> Floor | None:
        return self._floors.get(session)


class MemoryFloors(_Heard):
    """Floors of this process."""

    lasting = False

    async def rise(self, session: SessionId, epoch: int, host: bytes) -> Floor:
        return self.raised(session, Floor(epoch, host))

    async def risen(self) -> AsyncIterator[tuple[SessionId, Floor]]:
        """Never yields: nobody else can raise them."""
        nobody: tuple[tuple[SessionId, Floor], ...] = ()
        for risen in nobody:
            yield risen


class SharedFloors(_Heard):
    """Floors at a coordination point, with those heard of cached in memory."""

    lasting = True

    def __init__(self, store: Coordination, most: int = RELAY_EPOCHS_MAX) -> None:
        super().__init__(most)
        self._store = store

    async def rise(self, session: SessionId, epoch: int, host: bytes) -> Floor:
        wanted = Floor(epoch, host)
        for _ in range(_TRIES):
            entry = await self._store.get(f"{_PLACE}.{session}")
            known = _floor(entry.value)
            if known is not None and known.epoch >= epoch:
                return self.raised(session, known)
            done = await self._store.cas(entry.key, _value(wanted), entry.revision)
            if isinstance(done, Written):
                return self.raised(session, wanted)
            # Lost or unknown: read again.
        raise CoordinationDown("could not raise the epoch floor of a session")

    async def risen(self) -> AsyncIterator[tuple[SessionId, Floor]]:
        async for entry in self._store.watch(_PLACE, below=True):
            floor = _floor(entry.value)
            try:
                session = SessionId(entry.key.removeprefix(f"{_PLACE}."))
            except ValueError:
                continue  # a foreign key, written by hand
            if floor is not None:
                yield session, self.raised(session, floor)


def _value(floor: Floor) -> bytes:
    return floor.epoch.to_bytes(_EPOCH_BYTES) + floor.host


def _floor(value: bytes | None) -> Floor | None:
    if value is None or len(value) <= _EPOCH_BYTES:
        return None
    return Floor(int.from_bytes(value[:_EPOCH_BYTES]), value[_EPOCH_BYTES:])
