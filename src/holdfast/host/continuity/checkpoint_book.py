"""Which checkpoint of each session was the last, as this host remembers it.

A store is trusted with nothing: it could show the host an older checkpoint as if it were the last.
It cannot change this file, which is with the host's own state.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.host import json_file
from holdfast.model.checkpoint import Checkpoint, CheckpointId
from holdfast.model.errors import CheckpointRolledBack, StorageFailed, why_not
from holdfast.model.ids import SessionId
from holdfast.model.record import Record


class LastCheckpoint(Record):
    """Of one session."""

    id: CheckpointId
    epoch: int
    journal_seq: int
    created_at: float

    @property
    def order(self) -> tuple[int, int, float]:
        return (self.epoch, self.journal_seq, self.created_at)


class _Book(Record):
    last: dict[str, LastCheckpoint] = {}  # noqa: RUF012 (a record is frozen)


class CheckpointBook:
    """Kept in one file; asked and changed on the event loop, or under the store's lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last = dict((json_file.read(path, _Book, without=_WITHOUT) or _Book()).last)

    def saved(self, checkpoint: Checkpoint) -> None:
        known = self._last.get(checkpoint.session)
        if known is None or known.order <= checkpoint.order:
            self._set(checkpoint.session, checkpoint)

    def deleting(self, session: SessionId, gone: CheckpointId, left: Iterable[Checkpoint]) -> None:
        """Before it is deleted; `left`: the other checkpoints of the session."""
        known = self._last.get(session)
        if known is not None and known.id == gone:
            self._set(session, max(left, key=lambda each: each.order, default=None))

    def check(self, newest: Checkpoint) -> None:
        """That this, the newest in the store, is not older than the last one saved."""
        known = self._last.get(newest.session)
        if known is not None and newest.order < known.order:
            raise CheckpointRolledBack(
                f"the last checkpoint of {newest.session_name}, {known.id}, is not in the store "
                f"or cannot be read; the newest there is {newest.id}, which is older",
                hint=f"to go back to the older one, name it: {newest.id}",
            )

    def last(self, session: SessionId) -> LastCheckpoint | None:
        return self._last.get(session)

    def _set(self, session: str, checkpoint: Checkpoint | None) -> None:
        changed = {id: last for id, last in self._last.items() if id != session}
        if checkpoint is not None:
            changed[session] = LastCheckpoint(
                checkpoint.id, checkpoint.epoch, checkpoint.journal_seq, checkpoint.created_at
            )
        try:
            json_file.write(self._path, _Book(changed))
        except OSError as error:
            raise StorageFailed(f"cannot write {self._path}: {why_not(error)}") from error
        self._last = changed


_WITHOUT = "a checkpoint store could show an older checkpoint as if it were the last"
