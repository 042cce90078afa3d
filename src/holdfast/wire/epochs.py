"""Which incarnation of a session may act: the two halves of the check.

`Incarnation` is the host's: it acts until its lease is lost, and never again after that.
`EpochFloor` is everybody else's: an epoch below one that was seen is refused forever. Neither has
a clock; the code that watches the lease calls `fence`.
"""

from __future__ import annotations

from holdfast.model.errors import Fenced
from holdfast.model.ids import SessionId


class Incarnation:
    """One life of a session, as its host sees it."""

    def __init__(self, session: SessionId, epoch: int) -> None:
        self.session, self.epoch = session, epoch
        self.fenced = False

    def fence(self) -> None:
        """The lease is lost. This is final: only a new epoch may act."""
        self.fenced = True

    def check(self) -> None:
        """Called before every input, output and handshake."""
        if self.fenced:
            raise Fenced(
                f"epoch {self.epoch} of this session no longer holds its lease",
                hint="the session may run on another host: look it up again",
            )


class EpochFloor:
    """The highest epoch of a session that a host has vouched for. Its owner keeps it on disk, or an
    old incarnation could come back after a restart."""

    def __init__(self, highest: int = 0) -> None:
        self.highest = highest

    def check(self, epoch: int) -> None:
        if epoch < self.highest:
            raise Fenced(
                f"epoch {epoch} of this session is over: epoch {self.highest} was seen",
                hint="the session runs on another host: look it up again",
            )

    def rise(self, epoch: int) -> bool:
        """Note an epoch that the host itself vouched for, never one that only a relay named. True
        when it is higher than one seen before."""
        self.check(epoch)
        moved = 0 < self.highest < epoch
        self.highest = epoch
        return moved
