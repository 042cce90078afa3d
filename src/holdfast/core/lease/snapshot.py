"""A lease carried over a daemon's restart. The incarnation outlives its daemon (its tree runs on),
so its lease must too; it does not outlive the machine, and neither do the times in it."""

from __future__ import annotations

from holdfast.core.lease.events import Force
from holdfast.core.lease.machine import NEVER, Doing, Lease
from holdfast.core.lease.table import ASKING, FENCED, HELD, WAITING, LeaseState
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord, LeaseTerms
from holdfast.model.record import Record


class SavedLease(Record):
    """All of a lease. Its times are of one boot of the machine, which is named with them."""

    boot_id: str
    session: SessionId
    owner: str
    incarnation: str
    terms: LeaseTerms
    born: bool
    state: LeaseState
    epoch: int
    revision: int
    record: LeaseRecord | None
    since: float
    sent: float
    deadline: float | None  # None: never
    renew_at: float | None
    doubt: bool
    settled: bool
    max_seen: int
    forced: Force | None
    writing: bool  # an answer was awaited; it will not come now


_AS_THEY_ARE = set(SavedLease._fields) - {"boot_id", "deadline", "renew_at", "writing"}


def kept(lease: Lease, boot_id: str) -> SavedLease:
    values = {field: getattr(lease, field) for field in _AS_THEY_ARE}
    return SavedLease(
        boot_id=boot_id,
        deadline=None if lease.deadline == NEVER else lease.deadline,
        renew_at=None if lease.renew_at == NEVER else lease.renew_at,
        writing=lease.doing is Doing.WRITE,
        **values,
    )


def restored(kept: SavedLease, boot_id: str) -> Lease:
    """The lease that was kept, which first looks at its record. After another boot nothing of the
    incarnation is left to hold anything, and none of the times mean anything: it is fenced."""
    lease = Lease(kept.session, kept.owner, kept.incarnation, kept.terms)
    for field in _AS_THEY_ARE:
        setattr(lease, field, getattr(kept, field))
    lease.deadline = NEVER if kept.deadline is None else kept.deadline
    lease.renew_at = NEVER if kept.renew_at is None else kept.renew_at
    if kept.boot_id != boot_id:
        lease.state = FENCED
        return lease
    lease.doubt = kept.doubt or kept.writing
    lease.look = lease.state in (WAITING, ASKING, HELD) or lease.doubt
    if lease.state is ASKING:
        lease.state = WAITING  # as a write without an answer
    if lease.state is HELD and lease.terms.pinned:
        lease.renew_at = NEVER
    return lease
