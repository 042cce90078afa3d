"""The values of a lease: the record at the coordination point, and its times.

`core/lease/machine.py` takes, renews and loses leases; `ports/coordination.py` stores records.
There is no clock here. A record carries a *length*, never a date: machines agree on how fast time
passes within a bound, but not on what time it is.
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.limits import (
    LEASE_CLUSTER_RENEW_S,
    LEASE_CLUSTER_S,
    LEASE_DRIFT,
    LEASE_EMBEDDED_RENEW_S,
    LEASE_EMBEDDED_S,
    LEASE_GRACE_S,
    LEASE_RETRY_S,
)
from holdfast.model.record import Record


class LeaseTerms(Record):
    """The times of a lease. `length_s` None: pinned, it never expires."""

    length_s: float | None
    renew_s: float = 0.0
    drift: float = LEASE_DRIFT  # how much faster or slower than true time a clock may run
    grace_s: float = LEASE_GRACE_S  # for stopping work: kept free on both sides
    retry_s: float = LEASE_RETRY_S  # after a read that failed

    @property
    def pinned(self) -> bool:
        return self.length_s is None

    def usable_s(self) -> float:
        """How long a holder may act on a write, by its own clock, after *sending* it."""
        if self.length_s is None:
            return float("inf")
        return self.length_s * (1 - self.drift) - self.grace_s

    def wait_s(self, length_s: float) -> float:
        """How long a successor must have seen one revision unchanged, by its own clock."""
        return length_s * (1 + self.drift) + self.grace_s

    def checked(self) -> LeaseTerms:
        """These terms, if a holder can keep them."""
        if not 0 <= self.drift < 1 or self.grace_s < 0 or self.retry_s < 0 or self.renew_s < 0:
            raise InvalidArgument("the times of a lease are not negative, and its drift is below 1")
        if self.length_s is not None and not self.renew_s < self.usable_s():
            raise InvalidArgument(
                f"a lease of {self.length_s} s, usable for {self.usable_s():.2f} s, "
                f"cannot be renewed every {self.renew_s} s",
                hint="a longer lease, or a shorter time between renewals",
            )
        return self


PINNED = LeaseTerms(None)
EMBEDDED = LeaseTerms(LEASE_EMBEDDED_S, LEASE_EMBEDDED_RENEW_S)
CLUSTER = LeaseTerms(LEASE_CLUSTER_S, LEASE_CLUSTER_RENEW_S)


class LeaseRecord(Record):
    """The holder of a session, as stored at the coordination point. The epoch is in the value and
    not the store's revision, because revisions start again when a store is recreated."""

    session: SessionId
    owner: str  # the host
    incarnation: str  # random, new after each crash, which the host's name alone would survive
    epoch: int  # the fencing token
    length_s: float | None  # None: pinned
    released: bool = False  # its holder stopped before it wrote this: no need to wait
    successor: str = ""  # the incarnation it is released to; "": to whoever comes first
    forced_by: str = ""  # the actor that attested that the incarnation before is gone, if forced
    reason: str = ""
