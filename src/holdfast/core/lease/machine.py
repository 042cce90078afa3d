"""One incarnation's lease on a session: taken, renewed, released, or lost by time (F1-F3).

The rules. Where nothing else is said, one has a mutant in `tests/simulation/mutants.py` whose
counterexample shows what it is for. [unit]: no order of events in the model needs it for F1, as it
is about time, about what comes after, or about a store that counts anew; `tests/unit/test_lease.py`
holds it.

- A holder acts until `sent + T(1-drift) - grace` on its own clock, counted from when it *sent* the
  write that gave it the time, and judged at each effect (`usable`), not when a timer fires.
- A successor writes only after it has itself seen one revision unchanged for `T(1+drift) + grace`,
  and only over that revision. Nobody compares two machines' clocks.
- A write without an answer gives no time. The record is read again before anything else is
  written [unit].
- A refused renewal fences at once; a fenced incarnation stays fenced [unit].
- The epoch is `max(record's, highest seen) + 1`, so it rises, also over a store made anew [unit:
  the highest seen].
- A pinned lease has no time in it. Only its holder's release, or an attested force, makes way.
- Absence of a record proves nothing, unless the session was born here just now.
- What is released to a named successor is free for that one, and for its own host, which may take
  it back. For anybody else it is as if it were still held [unit].
- An heir takes over one epoch, by its release and never by time. When it sees a later one, somebody
  else was faster, and it stays fenced (`tests/simulation/move_mutants.py`).

The machine has no clock, no store and no thread. `ReadRecord` and `Write` are carried out by the
caller, one at a time; a lease that is not run simply lapses, which is the point.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from holdfast.core.lease import events as ev
from holdfast.core.lease.table import (
    ASKING,
    FENCED,
    HELD,
    IDLE,
    RELEASED,
    TRANSITIONS,
    WAITING,
    LeaseState,
    LeaseStep,
)
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord, LeaseTerms
from holdfast.model.record import Record

NEVER = float("inf")
_UNSEEN = -1  # no revision: the record was not looked at yet


class Doing(StrEnum):
    """What an answer is awaited for; one thing at a time."""

    NOTHING = ""
    LOOK = "look"
    WRITE = "write"


class SavedLease(Record):
    """All of a lease, to carry over a daemon's restart: the incarnation outlives its daemon, since
    its tree runs on. It does not outlive the machine, and neither do the times in it."""

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
    forced: ev.Force | None
    writing: bool  # an answer was awaited; it will not come now
    heir_of: int = 0
    successor: str = ""


_SAVED_AS_THEY_ARE = set(SavedLease._fields) - {"boot_id", "deadline", "renew_at", "writing"}


class Lease:
    """`incarnation` is random and new for each machine: two lives never share one. `born`: the
    session's key was made just now, so no other incarnation can exist. `max_seen` is the highest
    epoch of this session that the host ever met. `heir_of`: the epoch that is handed over to it, in
    a move; 0: none."""

    __slots__ = (
        "born", "deadline", "doing", "doubt", "epoch", "forced", "heir_of", "incarnation", "look",
        "max_seen", "owner", "record", "renew_at", "retry_at", "revision", "sent", "session",
        "settled", "since", "state", "successor", "terms",
    )  # fmt: skip

    def __init__(
        self,
        session: SessionId,
        owner: str,
        incarnation: str,
        terms: LeaseTerms,
        *,
        born: bool = False,
        max_seen: int = 0,
        heir_of: int = 0,
    ) -> None:
        self.session, self.owner, self.incarnation = session, owner, incarnation
        self.terms = terms.checked()
        self.born = born
        self.max_seen = max(max_seen, heir_of)
        self.heir_of = heir_of
        self.successor = ""  # whom it is released to
        self.state = IDLE
        self.epoch = 0  # ours, once held
        self.revision = _UNSEEN  # the latest we know of
        self.record: LeaseRecord | None = None  # what stood there
        self.since = 0.0  # when we first saw that revision
        self.sent = 0.0  # when the write under way, or the last one, was sent
        self.deadline = 0.0
        self.renew_at = 0.0
        self.retry_at = 0.0
        self.doing = Doing.NOTHING
        self.look = False  # read before anything else is written
        self.doubt = False  # a write of ours that named `revision` may have been done, or be yet
        self.settled = False  # released, and there is nothing left to say
        self.forced: ev.Force | None = None

    def kept(self, boot_id: str) -> SavedLease:
        values = {field: getattr(self, field) for field in _SAVED_AS_THEY_ARE}
        return SavedLease(
            boot_id=boot_id,
            deadline=None if self.deadline == NEVER else self.deadline,
            renew_at=None if self.renew_at == NEVER else self.renew_at,
            writing=self.doing is Doing.WRITE,
            **values,
        )

    @classmethod
    def of(cls, kept: SavedLease, boot_id: str) -> Lease:
        """The lease that was kept, which first looks at its record. After another boot nothing of
        the incarnation is left to hold anything: it is fenced. A release goes on being written."""
        lease = cls(kept.session, kept.owner, kept.incarnation, kept.terms)
        for field in _SAVED_AS_THEY_ARE:
            setattr(lease, field, getattr(kept, field))
        lease.deadline = NEVER if kept.deadline is None else kept.deadline
        lease.renew_at = NEVER if kept.renew_at is None else kept.renew_at
        if kept.boot_id != boot_id and lease.state is not RELEASED:
            lease.state = FENCED
            return lease
        lease.doubt = kept.doubt or kept.writing
        lease.look = lease.state in (WAITING, ASKING, HELD) or lease.doubt
        if lease.state is ASKING:
            lease.state = WAITING  # as a write without an answer
        if lease.state is HELD and lease.terms.pinned:
            lease.renew_at = NEVER
        return lease

    def usable(self, now: float) -> bool:
        """Asked before each input taken, output sent and handshake answered."""
        return self.state is HELD and now < self.deadline

    def wakes_at(self) -> float | None:
        """When a Tick would do something; None when no time would."""
        at = self.deadline if self.state is HELD else NEVER
        if self.doing is Doing.NOTHING:
            at = min(at, max(self.retry_at, self._acts_at()))
        return at if at < NEVER else None

    def handle(self, event: ev.LeaseEvent) -> list[ev.LeaseOutcome]:
        """The only way in. An event that does not fit the state raises and changes nothing; an
        answer nobody waits for any more is no such event."""
        if self.state is HELD and event.now >= self.deadline:
            return self._fence(LeaseStep.LAPSE)
        hands_over = isinstance(event, ev.Release) and bool(event.successor)
        if self.state is FENCED and not hands_over and type(event) not in (ev.Acquire, ev.Force):
            return []
        outcomes = _HANDLERS[type(event)](self, event)
        outcomes += self._act(event.now)
        return outcomes

    # -- what is wanted ---------------------------------------------------------------------------

    def _acquire(self, event: ev.Acquire) -> list[ev.LeaseOutcome]:
        self._enter(LeaseStep.ACQUIRE)
        self.look = True
        return []

    def _force(self, event: ev.Force) -> list[ev.LeaseOutcome]:
        if not event.reason:
            raise InvalidArgument("a forced lease needs a reason", hint="it is kept with the epoch")
        self._enter(LeaseStep.FORCE)
        self.forced = event
        return []

    def _release(self, event: ev.Release) -> list[ev.LeaseOutcome]:
        claimed = self.state is not WAITING or self.doubt
        self.look = self.look or self.state is FENCED  # what it knows of the record may be old
        self._enter(LeaseStep.RELEASE)
        self.retry_at, self.successor = 0.0, event.successor
        self.look = self.look or self.doubt
        if claimed:
            return []
        self.settled = True
        return [ev.Released()]

    # -- answers ----------------------------------------------------------------------------------

    def _seen(self, event: ev.RecordSeen) -> list[ev.LeaseOutcome]:
        if self.doing is Doing.LOOK:
            self.doing, self.look = Doing.NOTHING, False
        if event.record is not None:
            self.max_seen = max(self.max_seen, event.record.epoch)
        if self.state is WAITING:
            return self._seen_by_heir(event) if self.heir_of else self._sight(event)
        if self.state is HELD:
            return self._seen_by_holder(event)
        if self.state is RELEASED:
            return self._seen_after_release(event)
        return []

    def _sight(self, event: ev.RecordSeen) -> list[ev.LeaseOutcome]:
        """The wait is for one revision; another begins it anew. An older one too: a stale read
        costs time, and a store made anew has lower revisions."""
        self.record = event.record
        if event.revision != self.revision:
            self.revision, self.since = event.revision, event.now
            self.doubt = False  # what named the revision before can no longer be done
        return []

    def _seen_by_heir(self, event: ev.RecordSeen) -> list[ev.LeaseOutcome]:
        record = event.record
        if record is not None and record.epoch > self.heir_of and not self._is_ours(record):
            return self._fence(LeaseStep.OUSTED)
        self._sight(event)
        if self._free_at() == NEVER:  # not released yet, or an older read: look again
            self.look, self.retry_at = True, event.now + self.terms.retry_s
        return []

    def _seen_by_holder(self, event: ev.RecordSeen) -> list[ev.LeaseOutcome]:
        record = event.record
        if record is not None and self._is_ours(record):
            if event.revision > self.revision:  # a write we had no answer to
                # Another that is under way may be refused because of it: that is no loss.
                self.revision, self.doubt = event.revision, self.doing is Doing.WRITE
                self.renew_at = event.now if not self.terms.pinned else NEVER
            return []
        if record is not None and record.epoch > self.epoch:
            return self._fence(LeaseStep.OUSTED)
        if record is None and self.terms.pinned:
            # The store lost its memory; ours is the session it forgot.
            self.revision, self.renew_at = event.revision, event.now
        return []  # else: older than what we know

    def _seen_after_release(self, event: ev.RecordSeen) -> list[ev.LeaseOutcome]:
        record, ours = event.record, False
        if record is not None and event.revision >= self.revision:
            ours = self._is_ours(record) and not record.released
        if record is not None and ours:
            self.doubt = self.doubt and event.revision == self.revision
            self.revision, self.record = event.revision, record
            return []
        if event.revision < self.revision or (self.doubt and event.revision == self.revision):
            # A stale answer, or a write of ours may be done yet.
            self.look, self.retry_at = True, event.now + self.terms.retry_s
            return []
        return self._settle()

    def _look_failed(self, event: ev.LookFailed) -> list[ev.LeaseOutcome]:
        if self.doing is Doing.LOOK:
            self.doing = Doing.NOTHING
            self.retry_at = event.now + self.terms.retry_s
        return []

    def _wrote(self, event: ev.LeaseWritten) -> list[ev.LeaseOutcome]:
        if not self._answered():
            return []
        self.revision, self.doubt = event.revision, False
        if self.state is RELEASED:
            return self._settle() if self.record is not None and self.record.released else []
        until = self._usable_until(event)
        if self.state is HELD:
            self._enter(LeaseStep.RENEW)
            self.deadline = until
            return [ev.Renewed(until)]
        if event.now >= until:
            self._enter(LeaseStep.LATE)  # the record is ours, so the next claim need not wait
            return []
        return self._granted(until)

    def _granted(self, until: float) -> list[ev.LeaseOutcome]:
        assert self.record is not None
        self._enter(LeaseStep.GRANTED)
        self.epoch = self.record.epoch
        self.max_seen = max(self.max_seen, self.epoch)
        self.deadline = until
        self.renew_at = self.sent + self.terms.renew_s if not self.terms.pinned else NEVER
        forced, self.forced = self.forced, None
        self.since = 0.0
        return [ev.Acquired(self.epoch, until, forced.by if forced else "")]

    def _write_lost(self, event: ev.WriteLost) -> list[ev.LeaseOutcome]:
        if not self._answered():
            return []
        if self.state is HELD and not (self.doubt or self.terms.pinned):
            return self._fence(LeaseStep.REFUSED)
        if self.state is RELEASED and not self.doubt:
            return self._settle()
        # It may be an earlier write of ours that was in the way: only the record can tell.
        self.look = True
        if self.state is ASKING:
            self._enter(LeaseStep.REFUSED)
        return []

    def _write_unknown(self, event: ev.WriteUnknown) -> list[ev.LeaseOutcome]:
        if self._answered():
            self.look = self.doubt = True
            if self.state is not RELEASED:
                self._enter(LeaseStep.UNKNOWN)
        return []

    def _tick(self, event: ev.LeaseTick) -> list[ev.LeaseOutcome]:
        return []

    # -- rules ------------------------------------------------------------------------------------

    def _usable_until(self, answer: ev.LeaseWritten) -> float:
        """From the sending, not from the answer: a successor may count from any moment after the
        sending, the answer may have taken as long as the lease."""
        return self.sent + self.terms.usable_s()

    def _free_at(self) -> float:
        """When nobody can be acting on the record we see. NEVER: no time will tell."""
        record, forced = self.record, self.forced
        if forced is not None and forced.epoch == (record.epoch if record else 0):
            return self.since
        if record is None:
            return self.since if self.born else NEVER
        if self._is_ours(record) or self._is_handed_over(record):
            return self.since
        if self.heir_of:
            return NEVER
        if record.length_s is None:
            return NEVER
        return self.since + self.terms.wait_s(record.length_s)

    def _is_ours(self, record: LeaseRecord) -> bool:
        return record.incarnation == self.incarnation

    def _is_handed_over(self, record: LeaseRecord) -> bool:
        """Whether its holder stopped, and left it to this incarnation or to anybody."""
        if not record.released:
            return False
        if self.heir_of:
            # The host that gave it up may take it back: the store decides who was first.
            mine = record.successor == self.incarnation or record.owner == self.owner
            return record.epoch == self.heir_of and mine
        return not record.successor

    def _acts_at(self) -> float:
        """When there is something to read or write, if nothing is under way."""
        if self.state is RELEASED:
            return NEVER if self.settled else 0.0
        if self.state not in (WAITING, HELD):
            return NEVER
        if self.look:
            return 0.0
        return self._free_at() if self.state is WAITING else self.renew_at

    def _act(self, now: float) -> list[ev.LeaseOutcome]:
        """The next thing to read or write, if it is time and nothing is under way."""
        if self.doing is not Doing.NOTHING or now < max(self.retry_at, self._acts_at()):
            return []
        if self.look:
            self.doing = Doing.LOOK
            return [ev.ReadRecord()]
        if self.state is WAITING:
            self._enter(LeaseStep.CLAIM)
            return self._write(now, self._claim())
        if self.state is HELD:
            self.renew_at = now + self.terms.renew_s if not self.terms.pinned else NEVER
        return self._write(now, self._ours(released=self.state is RELEASED))

    def _claim(self) -> LeaseRecord:
        before = self.record.epoch if self.record is not None else 0
        forced = self.forced
        return LeaseRecord(
            self.session,
            self.owner,
            self.incarnation,
            max(before, self.max_seen) + 1,
            self.terms.length_s,
            forced_by=forced.by if forced else "",
            reason=forced.reason if forced else "",
        )

    def _ours(self, *, released: bool) -> LeaseRecord:
        assert self.record is not None
        return self.record.replace(released=released, successor=self.successor)

    def _write(self, now: float, record: LeaseRecord) -> list[ev.LeaseOutcome]:
        self.doing, self.sent, self.record = Doing.WRITE, now, record
        return [ev.Write(record, max(self.revision, 0))]

    # -- what these share -------------------------------------------------------------------------

    def _enter(self, step: LeaseStep) -> None:
        after = TRANSITIONS.get((self.state, step))
        if after is None:
            raise InvalidArgument(f"a lease that is {self.state} cannot {step}")
        self.state = after

    def _answered(self) -> bool:
        """Whether a write's answer was awaited; it is not any more."""
        awaited = self.doing is Doing.WRITE
        if awaited:
            self.doing = Doing.NOTHING
        return awaited

    def _fence(self, step: LeaseStep) -> list[ev.LeaseOutcome]:
        self._enter(step)
        self.doing, self.look, self.doubt = Doing.NOTHING, False, False
        return [ev.LeaseFenced(step, self.epoch)]

    def _settle(self) -> list[ev.LeaseOutcome]:
        if self.settled:
            return []
        self.settled, self.look = True, False
        return [ev.Released()]


_HANDLERS: dict[type[ev.LeaseEvent], Callable[[Lease, Any], list[ev.LeaseOutcome]]] = {
    ev.LeaseTick: Lease._tick,
    ev.RecordSeen: Lease._seen,
    ev.LookFailed: Lease._look_failed,
    ev.LeaseWritten: Lease._wrote,
    ev.WriteLost: Lease._write_lost,
    ev.WriteUnknown: Lease._write_unknown,
    ev.Acquire: Lease._acquire,
    ev.Force: Lease._force,
    ev.Release: Lease._release,
}
