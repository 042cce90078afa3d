"""What can happen to a lease, and what can come of it: the vocabulary of `machine.py`.

`now` is the would-be holder's own CLOCK_BOOTTIME in seconds. It must count the time a machine
sleeps: one that wakes after its lease must know it.
"""

from __future__ import annotations

from holdfast.core.lease.table import LeaseStep
from holdfast.model.lease import LeaseRecord
from holdfast.model.record import Record

# -- events -----------------------------------------------------------------------------------


class LeaseEvent(Record):
    """Something wanted, or a fact that bears on the lease."""

    now: float


class Acquire(LeaseEvent):
    """The lease is wanted, as soon as nobody else can be acting on it."""


class Force(LeaseEvent):
    """Somebody attests that the incarnation with this epoch is gone for good, so that nobody needs
    to wait for it. Epoch 0: that there is none, where no record says so."""

    by: str  # an actor, or HOST_ACTOR for a host that knows its own earlier incarnation is over
    reason: str
    epoch: int


class RecordSeen(LeaseEvent):
    """The record as it is, or lately was: the answer to ReadRecord."""

    revision: int
    record: LeaseRecord | None


class LookFailed(LeaseEvent):
    """A ReadRecord had no answer."""


class LeaseWritten(LeaseEvent):
    """A Write is done: the record is ours, with this revision."""

    revision: int


class WriteLost(LeaseEvent):
    """A Write was refused: the revision it named was no longer the record's. A store of several
    servers may be wrong about that for a moment; no rule of safety rests on its being true."""


class WriteUnknown(LeaseEvent):
    """A Write had no answer. It may have been done, or may be done yet."""


class Release(LeaseEvent):
    """The incarnation has stopped: input refused, output flushed, state sealed."""

    successor: str = ""  # the incarnation that takes over; "": whoever comes first


class LeaseTick(LeaseEvent):
    """Time has passed."""


# -- outcomes ---------------------------------------------------------------------------------


class LeaseOutcome(Record):
    """What came of an event, to be carried out in the order given."""


class ReadRecord(LeaseOutcome):
    """Read the record; answer with RecordSeen or LookFailed."""


class Write(LeaseOutcome):
    """Replace the record if it still has this revision (0: if there is none), without garbage
    collection; answer with LeaseWritten, WriteLost or WriteUnknown. There is one at a time."""

    record: LeaseRecord
    revision: int


class Acquired(LeaseOutcome):
    epoch: int
    until: float  # by the same clock; renewals move it
    forced_by: str = ""


class Renewed(LeaseOutcome):
    until: float


class LeaseFenced(LeaseOutcome):
    """Freeze the tree, refuse input, close attachments; for good. A new incarnation needs a lease
    of its own."""

    step: LeaseStep  # LAPSE, REFUSED or OUSTED; an heir is only ever ousted
    epoch: int


class Released(LeaseOutcome):
    """The record says so now, or is not ours any more: a successor need not wait for us."""
