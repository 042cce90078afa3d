"""A session's lease while it changes hands. `core/lease/machine.py` decides; this asks for one
thing after the other until it is so.

Where two hosts share no coordination point, the source's own one serves for the move: the target
reaches it through the source. So a target that is ready waits while the source is away: it cannot
know whether the session was given to it. Safety comes first.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

from holdfast.core.lease import events as ev
from holdfast.core.lease.machine import Lease, SavedLease
from holdfast.core.lease.table import FENCED, HELD, IDLE, RELEASED
from holdfast.host.continuity.moving import messages as m
from holdfast.host.session.lease_runner import LeaseStore, new_incarnation
from holdfast.keeper import boottime
from holdfast.model.errors import CoordinationDown, HoldfastError
from holdfast.model.ids import SessionId
from holdfast.model.lease import PINNED, LeaseRecord
from holdfast.model.limits import COORDINATION_CALL_S
from holdfast.ports.coordination import CasLost, CasUnknown, StoredValue, Written
from holdfast.wire.coordination import lease_key, pack_lease, unpack_lease


class HandoverLease:
    """Of one session, at one of the two hosts."""

    def __init__(
        self,
        session: SessionId,
        owner: str,
        store: LeaseStore,
        keep: Callable[[], None],
        kept: SavedLease | None = None,
    ) -> None:
        """`keep`: called before anything is written, so that a new daemon knows of it."""
        self._session, self._owner, self._store, self._keep = session, owner, store, keep
        self._boot = boottime.boot_id()
        self._lease = None if kept is None else Lease.of(kept, self._boot)
        self._working = asyncio.Lock()

    def kept(self) -> SavedLease | None:
        return None if self._lease is None else self._lease.kept(self._boot)

    async def hold(self, epoch: int) -> None:
        """A pinned session has no record until it moves: it gets one, of its present epoch. What
        an earlier move left there is over, for it lives here."""
        key = lease_key(self._session)
        entry = await self._store.get(key)
        record = unpack_lease(entry.value)
        if record is not None and (record.epoch, record.owner == self._owner) > (epoch, True):
            raise CoordinationDown(
                f"the record of its lease is of epoch {record.epoch}, and it lives here in {epoch}",
                hint="it may have been restored on another host",
            )
        ours = LeaseRecord(self._session, self._owner, new_incarnation(), epoch, None)
        done = await self._store.cas(key, pack_lease(ours), entry.revision)
        if not isinstance(done, Written):
            raise CoordinationDown("the record of its lease could not be written; try again")
        held = SavedLease(
            boot_id=self._boot,
            session=self._session,
            owner=self._owner,
            incarnation=ours.incarnation,
            terms=PINNED,
            born=False,
            state=HELD,
            epoch=epoch,
            revision=done.revision,
            record=ours,
            since=0.0,
            sent=0.0,
            deadline=None,
            renew_at=None,
            doubt=False,
            settled=False,
            max_seen=epoch,
            forced=None,
            writing=False,
        )
        self._lease = Lease.of(held, self._boot)

    @property
    def epoch(self) -> int:
        return 0 if self._lease is None else self._lease.epoch

    async def release(self, successor: str) -> None:
        """Begin, or go on. It is certain when this returns."""
        async with self._working:
            lease = self._lease
            assert lease is not None
            if lease.state is RELEASED and lease.settled:
                return
            now = boottime.now()
            again = lease.state is RELEASED
            await self._until(ev.LeaseTick(now) if again else ev.Release(now, successor))

    async def inherit(self, heir_of: int, incarnation: str = "") -> int:
        """As the heir of this epoch: begin, or go on. The epoch that is held here; 0: somebody else
        was faster. With an incarnation: that of the target."""
        async with self._working:
            lease = self._lease
            if lease is None or lease.heir_of != heir_of or lease.state in (FENCED, RELEASED):
                # Of another boot, or ousted: a new one looks at the record, and finds out.
                self._lease = lease = Lease(
                    self._session, self._owner, incarnation or new_incarnation(), PINNED,
                    heir_of=heir_of,
                )  # fmt: skip
                outcome = await self._until(ev.Acquire(boottime.now()))
            elif lease.state is HELD:
                return lease.epoch
            else:
                outcome = await self._until(ev.LeaseTick(boottime.now()))
            return outcome.epoch if isinstance(outcome, ev.Acquired) else 0

    async def look(self) -> LeaseRecord | None:
        """Raises HoldfastError without an answer."""
        return unpack_lease((await self._store.get(lease_key(self._session))).value)

    async def _until(self, event: ev.LeaseEvent) -> ev.LeaseOutcome:
        """What it comes to."""
        lease = self._lease
        assert lease is not None
        while True:
            before = lease.kept(self._boot)
            outcomes = lease.handle(event)
            try:
                self._keep()
            except BaseException:
                # As a new daemon would have it: none of what follows has been done.
                self._lease = None if before.state is IDLE else Lease.of(before, self._boot)
                raise
            following: ev.LeaseEvent | None = None
            for outcome in outcomes:
                match outcome:
                    case ev.ReadRecord():
                        following = await self._read()
                    case ev.Write():
                        following = await self._write(outcome)
                    case ev.Acquired() | ev.Released() | ev.LeaseFenced():
                        return outcome
            if following is None:
                at = lease.wakes_at()
                assert at is not None, f"a lease that is {lease.state} waits for nothing"
                await asyncio.sleep(max(0.0, at - boottime.now()))
                following = ev.LeaseTick(boottime.now())
            event = following

    async def _read(self) -> ev.LeaseEvent:
        try:
            entry = await self._store.get(lease_key(self._session))
            record = unpack_lease(entry.value)
        except HoldfastError:
            return ev.LookFailed(boottime.now())
        return ev.RecordSeen(boottime.now(), entry.revision, record)

    async def _write(self, write: ev.Write) -> ev.LeaseEvent:
        try:
            done = await self._store.cas(
                lease_key(self._session), pack_lease(write.record), write.revision
            )
        except HoldfastError as error:
            done = CasUnknown(error.message)
        now = boottime.now()
        match done:
            case Written(revision=revision):
                return ev.LeaseWritten(now, revision)
            case CasLost():
                return ev.WriteLost(now)
        return ev.WriteUnknown(now)


class RecordAtSource:
    """The source's coordination point, as the target has it: one key of it, through the link."""

    def __init__(self, send: Callable[[m.AskRecord | m.WriteRecord], Awaitable[None]]) -> None:
        """`send`: raises HoldfastError while there is no link."""
        self._send, self._numbers = send, itertools.count(1)
        self._asked: dict[int, asyncio.Future[m.RecordFound | m.RecordWritten]] = {}

    async def get(self, key: str) -> StoredValue:
        try:
            answer = await self._ask(m.AskRecord(next(self._numbers), key))
        except TimeoutError:
            raise CoordinationDown("the source does not answer") from None
        if not isinstance(answer, m.RecordFound) or answer.error:
            raise CoordinationDown(getattr(answer, "error", "") or "the source does not answer")
        return StoredValue(key, answer.revision, answer.value)

    async def cas(self, key: str, value: bytes, revision: int) -> Written | CasLost | CasUnknown:
        try:
            answer = await self._ask(m.WriteRecord(next(self._numbers), key, value, revision))
        except (HoldfastError, TimeoutError) as error:
            return CasUnknown(str(error) or "the source does not answer")
        if not isinstance(answer, m.RecordWritten) or answer.unknown:
            return CasUnknown(getattr(answer, "unknown", ""))
        return Written(answer.revision) if answer.revision else CasLost()

    async def _ask(self, question: m.AskRecord | m.WriteRecord) -> m.RecordFound | m.RecordWritten:
        answer: asyncio.Future[m.RecordFound | m.RecordWritten] = (
            asyncio.get_running_loop().create_future()
        )
        self._asked[question.number] = answer
        try:
            async with asyncio.timeout(COORDINATION_CALL_S):
                await self._send(question)
                return await answer
        finally:
            del self._asked[question.number]

    def answered(self, answer: m.RecordFound | m.RecordWritten) -> None:
        waiting = self._asked.get(answer.number)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


async def answer_for(
    question: m.AskRecord | m.WriteRecord, key: str, store: LeaseStore
) -> m.RecordFound | m.RecordWritten:
    """At the source: this one key, and no other."""
    match question:
        case m.AskRecord(number=number):
            try:
                if question.key != key:
                    raise CoordinationDown("that is not the session's record")
                entry = await store.get(key)
            except HoldfastError as error:
                return m.RecordFound(number, error=error.message)
            return m.RecordFound(number, entry.revision, entry.value)
        case m.WriteRecord(number=number, value=value, revision=revision):
            if question.key != key:
                return m.RecordWritten(number, unknown="that is not the session's record")
            try:
                done = await store.cas(key, value, revision)
            except HoldfastError as error:
                return m.RecordWritten(number, unknown=error.message)
            if isinstance(done, Written):
                return m.RecordWritten(number, done.revision)
            return m.RecordWritten(number, unknown=done.why if isinstance(done, CasUnknown) else "")
    raise AssertionError(question)
