"""What a daemon keeps of moves for the next one: one file for each of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TypeVar

from holdfast.adapters import atomic_file
from holdfast.core.continuity.migration import SavedSource, SavedTarget
from holdfast.core.lease.machine import SavedLease
from holdfast.host import json_file
from holdfast.host.continuity.moving.messages import Propose
from holdfast.model.ids import SessionId
from holdfast.model.record import Record

_WITHOUT = "it is not known what became of a session that was changing hosts"
K = TypeVar("K", bound=Record)


class KeptSource(Record):
    """Of a session that leaves."""

    session: SessionId
    ticket: str
    actor: str  # who asked
    to: str  # what people call the other host
    began: float
    machine: SavedSource
    lease: SavedLease | None
    checkpoint: str = ""
    settled: bool = False  # the target said that its part is over, and may know nothing of it now

    @property
    def move(self) -> str:
        return self.machine.successor


class KeptTarget(Record):
    """Of a session that comes."""

    session: SessionId
    propose: Propose
    source: bytes  # the other host's key
    mover: str  # who asked at the source
    admitted_by: str  # the same person here
    began: float
    machine: SavedTarget
    lease: SavedLease | None
    checkpoint: str = ""
    parcel: bytes = b""  # as it was when the rest was sent

    @property
    def move(self) -> str:
        return self.propose.move


class MoveBook:
    """Of one host."""

    def __init__(self, state: str) -> None:
        self._directory = f"{state}/moves"

    def files(self, move: str) -> str:
        """Where what comes by this move is put until it lives here."""
        return f"{self._directory}/{move}"

    def keep(self, kept: KeptSource | KeptTarget) -> None:
        """Raises OSError."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        json_file.write(self._path(kept.move, type(kept)), kept)

    def forget(self, kept: type[KeptSource] | type[KeptTarget], move: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(move, kept))
            atomic_file.sync_directory(self._directory)

    def sources(self) -> Iterator[KeptSource]:
        """Raises StorageFailed when one cannot be read."""
        yield from self._all(KeptSource)

    def targets(self) -> Iterator[KeptTarget]:
        yield from self._all(KeptTarget)

    def _all(self, kind: type[K]) -> Iterator[K]:
        if not os.path.isdir(self._directory):
            return
        suffix = _SUFFIXES[kind]
        for name in sorted(os.listdir(self._directory)):
            if name.endswith(suffix):
                found = json_file.read(f"{self._directory}/{name}", kind, without=_WITHOUT)
                if found is not None:
                    yield found

    def _path(self, move: str, kind: type[Record]) -> str:
        return f"{self._directory}/{move}{_SUFFIXES[kind]}"


_SUFFIXES: dict[type[Record], str] = {KeptSource: ".leaves.json", KeptTarget: ".comes.json"}
