"""The epoch rule: of a session, only the incarnation with the highest epoch known is routed, and an
epoch belongs to one host for ever.

`MemoryFloors` are one relay's own, and forgotten with it; hosts that come back announce again, and
the first to do so is believed. Operators have floors of their own, so a forgetful relay can
misroute for a while but deceive nobody. `SharedFloors` are kept at a coordination point: a file,
for one relay that is started again, or NATS, for several, and each hears what rose at another.
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

_PLACE = "relay_floors"  # the word before the session's id, at the coordination point
_EPOCH_BYTES = 8
_TRIES = 8  # each failed one means that somebody else wrote, or that there was no answer


class Floor(Record):
    """The highest epoch known of a session, and whose it is."""

    epoch: int
    host: bytes

    def admits(self, epoch: int, host: bytes) -> bool:
        return (epoch, host) == (self.epoch, self.host)


class Floors(Protocol):
    """Where floors are kept."""

    lasting: bool  # whether they outlive the relay

    async def rise(self, session: SessionId, epoch: int, host: bytes) -> Floor:
        """Raise the floor to this epoch of this host, if it is lower, and give the floor then."""
        ...

    def risen(self) -> AsyncIterator[tuple[SessionId, Floor]]:
        """Floors that rose, here or at another relay that shares them, as they do."""
        ...

    def known(self, session: SessionId) -> Floor | None:
        """The floor as far as was heard, without asking anybody."""
        ...


class _Heard:
    """Floors in memory, the least recent forgotten beyond the bound."""

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
        """Nobody else can raise them."""
        nobody: tuple[tuple[SessionId, Floor], ...] = ()
        for risen in nobody:
            yield risen


class SharedFloors(_Heard):
    """Floors at a coordination point, and those heard of in memory."""

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
            # Lost, or unknown: what stands there now tells.
        raise CoordinationDown("the floor of a session could not be raised")

    async def risen(self) -> AsyncIterator[tuple[SessionId, Floor]]:
        async for entry in self._store.watch(_PLACE, below=True):
            floor = _floor(entry.value)
            try:
                session = SessionId(entry.key.removeprefix(f"{_PLACE}."))
            except ValueError:
                continue  # somebody else's key, by hand
            if floor is not None:
                yield session, self.raised(session, floor)


def _value(floor: Floor) -> bytes:
    return floor.epoch.to_bytes(_EPOCH_BYTES) + floor.host


def _floor(value: bytes | None) -> Floor | None:
    if value is None or len(value) <= _EPOCH_BYTES:
        return None
    return Floor(int.from_bytes(value[:_EPOCH_BYTES]), value[_EPOCH_BYTES:])
