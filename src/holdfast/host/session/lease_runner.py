"""One session's lease, run: the machine of core.lease with a clock and a coordination point.

Whatever the machine asks for is carried out, and the answer given back. One thing is decided here,
because it is about more than one machine: a fenced incarnation's tree is stopped but not gone, so
this host may acquire the lease again, with the next epoch, and let it run on. It attests that its
own incarnation is over, which saves it the wait. But once another's record was seen the session
lives, or lived, elsewhere: what is stopped here never runs again.

Not here: what it means for a session that its lease is lost (lease.py), or any other clock than
the one handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.core.lease import events as ev
from holdfast.core.lease.machine import Lease, SavedLease
from holdfast.core.lease.table import FENCED, HELD, RELEASED, LeaseStep
from holdfast.model.errors import CoordinationDown, HoldfastError, InvalidArgument
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.lease import LeaseRecord, LeaseTerms
from holdfast.model.record import Record
from holdfast.ports.coordination import CasLost, CasUnknown, StoredValue, Written
from holdfast.wire.coordination import lease_key, pack_lease, unpack_lease

log = logging.getLogger(__name__)

_SAME_TREE = "its own tree, which stood still since"


class AlarmPort(Protocol):
    """Calls back at a moment; one at a time."""

    def set(self, at: float | None) -> None: ...

    def close(self) -> None: ...


class Clock(Protocol):
    """CLOCK_BOOTTIME, or a test's."""

    boot_id: str

    def now(self) -> float: ...

    def alarm(self, call: Callable[[], None]) -> AlarmPort: ...


class LeaseStore(Protocol):
    """As much of a coordination point as a lease needs."""

    async def get(self, key: str) -> StoredValue: ...

    async def cas(
        self, key: str, value: bytes, revision: int
    ) -> Written | CasLost | CasUnknown: ...


class LeaseListener(Protocol):
    """Acts on what happens to the lease."""

    def acquired(self, epoch: int, until: float) -> None: ...

    def renewed(self, until: float) -> None: ...

    def lost(self, step: LeaseStep) -> None: ...

    def taken(self, by: LeaseRecord) -> None: ...

    def save(self) -> None:
        """What is saved of it has changed."""


class SavedLeaseRun(Record):
    """What survives a daemon's restart."""

    lease: SavedLease
    epoch: int  # the last that was held here
    before: str  # the incarnation that held it, when `lease` is for the next
    taken: LeaseRecord | None = None


class LeaseRunner:
    """How this host holds one session."""

    def __init__(
        self, lease: Lease, store: LeaseStore, clock: Clock, listener: LeaseListener
    ) -> None:
        self.lease = lease
        self.epoch = lease.epoch
        self.taken: LeaseRecord | None = None  # a later incarnation, of another host
        self.settled = asyncio.Event()  # released, or there is nothing to release
        self._before = ""
        self._seen: LeaseRecord | None = None
        self._held = asyncio.Event()
        self._store, self._clock, self._listener = store, clock, listener
        self._key = lease_key(lease.session)
        self._alarm: AlarmPort | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = False
        self._answered = True  # the coordination point did, when last asked

    @classmethod
    def of(
        cls, kept: SavedLeaseRun, store: LeaseStore, clock: Clock, listener: LeaseListener
    ) -> LeaseRunner:
        """The one that another daemon kept. Nothing is done before `carry_on`."""
        runner = cls(Lease.of(kept.lease, clock.boot_id), store, clock, listener)
        runner.epoch, runner._before, runner.taken = kept.epoch, kept.before, kept.taken
        return runner

    def kept(self) -> SavedLeaseRun:
        lease = self.lease.kept(self._clock.boot_id)
        return SavedLeaseRun(lease, self.epoch, self._before, self.taken)

    # -- what is wanted -------------------------------------------------------------------------

    def usable(self) -> bool:
        return self.taken is None and self.lease.usable(self._clock.now())

    def judge(self) -> bool:
        """Whether it may be acted on at this moment. One that just ran out is fenced now, and not
        when an alarm gets round to it."""
        if self.usable():
            return True
        if self.lease.state is HELD:
            self._give(ev.LeaseTick(self._clock.now()))
        return False

    async def acquire(self, within_s: float, attested: tuple[int, str, str] | None = None) -> bool:
        """For a session that begins, or comes back. False: not in time, and given up. `attested`:
        that the incarnation of this epoch is over, by whom, and why."""
        self._give(ev.Acquire(self._clock.now()))
        if attested is not None:
            epoch, by, reason = attested
            self._give(ev.Force(self._clock.now(), by, reason, epoch))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._held.wait()
        if not self.usable():
            self.release()
            return False
        return True

    async def force(self, by: str, reason: str, within_s: float) -> bool:
        """Somebody attests that the session lives nowhere else, where no record says so: the store
        was lost and created again, and absence alone proves nothing. False: not held in time. The
        record is still written over nothing but that absence."""
        lease = self.lease
        if self.taken is not None or self.usable():
            raise InvalidArgument(
                "its lease is held" if self.taken is None else "the session lives elsewhere",
                hint="only one that is fenced, with no record of any lease, can be forced",
            )
        if lease.revision < 0:
            raise CoordinationDown(
                "the coordination point has not answered, so nothing can be written there",
                hint="bring it back, or name another as `coordination` and restart the daemon",
            )
        if lease.record is not None:
            raise InvalidArgument(
                "there is a record of the lease, which is being taken",
                hint="wait; `hold show` shows the state of the lease",
            )
        self._give(ev.Force(self._clock.now(), by, reason, 0))
        self._listener.save()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._held.wait()
        return self.usable()

    def carry_on(self) -> None:
        """After a restart of the daemon, or when a new listener is there."""
        if self.taken is None and self.lease.state is FENCED:
            self._reacquire()
        self._rang()

    def release(self) -> None:
        """Nothing of it is running; a successor need not wait."""
        self._leaving = True
        if self.taken is None and self.lease.state not in (FENCED, RELEASED):
            self._give(ev.Release(self._clock.now()))
        if self.lease.state is not RELEASED:
            self.settled.set()

    def close(self) -> None:
        """Another daemon carries it on, or it is over."""
        self._leaving = True
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None
        for task in self._tasks:
            task.cancel()

    def left_s(self) -> float:
        """For how long it may be acted on without another renewal."""
        return max(0.0, self.lease.deadline - self._clock.now()) if self.usable() else 0.0

    # -- the machine ----------------------------------------------------------------------------

    def _rang(self) -> None:
        self._give(ev.LeaseTick(self._clock.now()))

    def _give(self, event: ev.LeaseEvent, lease: Lease | None = None) -> None:
        """`lease`: whose answer it is; one of a machine that is gone concerns nobody."""
        if self.taken is not None or (lease is not None and lease is not self.lease):
            return
        for outcome in self.lease.handle(event):
            self._carry_out(outcome)
        self._wake_at(self.lease.wakes_at() if self.taken is None else None)

    def _wake_at(self, at: float | None) -> None:
        if self._alarm is None:
            self._alarm = self._clock.alarm(self._rang)
        self._alarm.set(at)

    def _carry_out(self, outcome: ev.LeaseOutcome) -> None:
        match outcome:
            case ev.ReadRecord():
                self._begin(self._look(self.lease))
            case ev.Write():
                if self.lease.state is not HELD:  # of a renewal, a look at the record tells
                    self._listener.save()  # first: a new daemon must know what may be under way
                self._begin(self._write(self.lease, outcome))
            case ev.Acquired(epoch=epoch, until=until):
                self.epoch = epoch
                self._held.set()
                self._listener.acquired(epoch, until)
            case ev.Renewed(until=until):
                self._listener.renewed(until)
            case ev.LeaseFenced(step=step):
                self._fenced(step)
            case ev.Released():
                self.settled.set()

    def _fenced(self, step: LeaseStep) -> None:
        self._before = self.lease.incarnation
        self._held.clear()
        self._listener.lost(step)
        if self._seen is not None:
            self._taken(self._seen)
        elif self._leaving:
            self.settled.set()
        else:
            self._reacquire()

    def _reacquire(self) -> None:
        """As the next incarnation, whatever this one's record says; not over another's."""
        old, now = self.lease, self._clock.now()
        self._before = old.incarnation
        self.lease = Lease(
            old.session, old.owner, new_incarnation(), old.terms, max_seen=old.max_seen
        )
        self._give(ev.Acquire(now))
        self._give(ev.Force(now, HOST_ACTOR, _SAME_TREE, self.epoch))
        self._listener.save()  # before the look is answered, so before anything is written

    def _taken(self, by: LeaseRecord) -> None:
        self.taken = by
        self._wake_at(None)
        self.settled.set()
        self._listener.taken(by)

    # -- the coordination point -----------------------------------------------------------------

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look(self, lease: Lease) -> None:
        try:
            entry = await self._store.get(self._key)
            record = unpack_lease(entry.value)
        except HoldfastError as error:
            self._no_answer(error.message)
            self._give(ev.LookFailed(self._clock.now()), lease)
            return
        if self._is_anothers(record):
            self._seen = record
            if lease is self.lease and lease.state is not HELD:
                assert record is not None
                self._taken(record)
                return
        self._give(ev.RecordSeen(self._clock.now(), entry.revision, record), lease)

    async def _write(self, lease: Lease, write: ev.Write) -> None:
        try:
            done = await self._store.cas(self._key, pack_lease(write.record), write.revision)
        except HoldfastError as error:
            done = CasUnknown(error.message)
        now = self._clock.now()
        if isinstance(done, CasUnknown):
            self._no_answer(done.why)
            self._give(ev.WriteUnknown(now), lease)
            return
        self._answer()
        self._give(
            ev.LeaseWritten(now, done.revision) if isinstance(done, Written) else ev.WriteLost(now),
            lease,
        )

    def _is_anothers(self, record: LeaseRecord | None) -> bool:
        """Whether a later incarnation, and none of ours, has been written there. Where nothing is
        held here yet, another's is only to be waited for."""
        if record is None or not self.epoch:
            return False
        ours = (self.lease.incarnation, self._before)
        return record.incarnation not in ours and record.epoch > self.epoch

    def _no_answer(self, why: str) -> None:
        if self._answered:
            log.warning("lease of %s: the coordination point: %s", self.lease.session, why)
        self._answered = False

    def _answer(self) -> None:
        if not self._answered:
            log.warning("lease of %s: the coordination point answers again", self.lease.session)
        self._answered = True


def new_incarnation() -> str:
    """A name for one life; two never share one."""
    return secrets.token_hex(16)


def first_lease(session: SessionId, owner: str, terms: LeaseTerms) -> Lease:
    """For a session whose key was made just now."""
    return Lease(session, owner, new_incarnation(), terms, born=True)


def again(session: SessionId, owner: str, terms: LeaseTerms, before: int) -> Lease:
    """For a session that comes back, in an epoch after `before`."""
    return Lease(session, owner, new_incarnation(), terms, max_seen=before)
