"""Leases of re-homeable sessions in this host: acquired before a session begins, renewed, released
at its end; and the events that follow for the session when its lease is lost or held again (F2).

Lost: the tree is frozen, input and attaching are refused, attached operators are dismissed with the
reason, and the journal records it. The session can still be inspected. Held again: a new epoch, in
the journal, the token file and the parcel, before anything of the tree runs. While the token file
cannot be written the session stays fenced, with its lease held and renewed: a program that ran on
would show outside systems an epoch that is over (F4). Pinned sessions have no `SessionLease`.

core.lease decides when a lease is lost; lease_runner.py runs it. If the daemon hangs, the keeper
freezes the tree: half the grace later, so that it does not get in the way of a daemon that works.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Protocol

from holdfast.core import events as ev
from holdfast.core.lease.machine import Lease
from holdfast.core.lease.table import LeaseStep
from holdfast.host.clock import now
from holdfast.host.coordination_point import CoordinationPoint
from holdfast.host.session import fencing_token
from holdfast.host.session.lease_runner import LeaseRunner, SavedLeaseRun, again, first_lease
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.model.errors import CoordinationDown, Fenced, StorageFailed
from holdfast.model.home import Home
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.info import LeaseInfo
from holdfast.model.lease import LeaseRecord, LeaseTerms
from holdfast.model.limits import LEASE_ACQUIRE_S, LEASE_RELEASE_S
from holdfast.wire.coordination import lease_key, unpack_lease

log = logging.getLogger(__name__)

_OWN = "its own earlier incarnation, of which nothing runs"
_HANDED = "the host that had it handed it over"
_ATTESTED = "the host that had it is dead"
_TOKEN_AGAIN_S = 1.0  # between tries to write a token file


class BootClock:
    """CLOCK_BOOTTIME for this event loop."""

    def __init__(self) -> None:
        self.boot_id = boottime.boot_id()
        self.now = boottime.now

    def alarm(self, call: Callable[[], None]) -> _LoopAlarm:
        return _LoopAlarm(call)


class _LoopAlarm:
    def __init__(self, call: Callable[[], None]) -> None:
        self._alarm, self._call = boottime.Alarm(), call
        self.set = self._alarm.set
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._alarm.fileno(), self._rang)

    def _rang(self) -> None:
        self._alarm.heard()
        self._call()

    def close(self) -> None:
        self._loop.remove_reader(self._alarm.fileno())
        self._alarm.close()


class HostLeases:
    """All of a host."""

    def __init__(
        self,
        terms: LeaseTerms,
        point: CoordinationPoint,
        home: Home,
        owner: bytes,
    ) -> None:
        """`owner`: the host's public key."""
        self._terms, self._point, self._home = terms, point, home
        self._owner = owner.hex()
        self._clock = BootClock()
        self._releasing: set[asyncio.Task[None]] = set()

    @property
    def point(self) -> CoordinationPoint:
        return self._point

    async def acquire(self, session: SessionId) -> SessionLease:
        """For a session that is about to begin. Raises CoordinationDown."""
        return await self._acquire(first_lease(session, self._owner, self._terms))

    async def acquire_again(
        self,
        session: SessionId,
        process_tag: str,
        before: int,
        actor: str,
        *,
        host_is_dead: bool,
        handed_by: str = "",
    ) -> SessionLease:
        """For one that is to be restored, and whose last epoch here was `before`. What this host
        held itself is over: nothing of the session runs here. Raises Fenced when the record is
        another host's, or is gone, which proves nothing; unless the actor attests that no other
        incarnation lives. The record may change meanwhile: what is attested is this epoch.
        `handed_by`: key of the host that had it, which gave it to this one: what that one held is
        over too, and it may keep its records elsewhere."""
        record = unpack_lease((await self._point.get(lease_key(session))).value)
        attested: tuple[int, str, str] | None = None
        if handed_by and (record is None or record.owner == handed_by):
            attested = (record.epoch if record else 0, HOST_ACTOR, _HANDED)
        elif record is None or record.owner != self._owner or record.successor:
            if not host_is_dead:
                raise _lives_elsewhere(record)
            attested = (record.epoch if record else 0, actor, _ATTESTED)
        elif not record.released:
            attested = (record.epoch, HOST_ACTOR, _OWN)
        lease = again(session, self._owner, self._terms, before)
        return await self._acquire(lease, process_tag, before, attested)

    async def _acquire(
        self,
        lease: Lease,
        process_tag: str = "",
        before: int = 0,
        attested: tuple[int, str, str] | None = None,
    ) -> SessionLease:
        session = lease.session
        leasing = self._lease(session, process_tag or session, begins=True, before=before)
        leasing.runner = LeaseRunner(lease, self._point, self._clock, leasing)
        try:
            held = await leasing.runner.acquire(LEASE_ACQUIRE_S, attested)
        except BaseException:
            leasing.release()
            raise
        if not held:
            leasing.release()
            raise CoordinationDown(
                f"could not acquire a lease within {LEASE_ACQUIRE_S:.0f} s: the coordination point "
                "does not answer",
                hint="a pinned session, without --rehomeable, needs none",
            )
        return leasing

    def carry_on(self, session: SessionId, process_tag: str, kept: SavedLeaseRun) -> SessionLease:
        """That of a session which another daemon held until now; `begin` follows."""
        leasing = self._lease(session, process_tag, begins=False)
        leasing.runner = LeaseRunner.of(kept, self._point, self._clock, leasing)
        return leasing

    def _lease(
        self, session: SessionId, process_tag: str, *, begins: bool, before: int = 0
    ) -> SessionLease:
        return SessionLease(
            session,
            begins=begins,
            before=before,
            write_token=partial(fencing_token.write, self._home, process_tag),
            release=self._release_soon,
        )

    def _release_soon(self, runner: LeaseRunner) -> None:
        """Nothing waits for it: nothing of the session is running."""
        task = asyncio.get_running_loop().create_task(self._release(runner))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _release(self, runner: LeaseRunner) -> None:
        runner.release()
        try:
            async with asyncio.timeout(LEASE_RELEASE_S):
                await runner.settled.wait()
        except TimeoutError:
            log.warning("the lease of %s is not released: it lapses", runner.lease.session)
        finally:
            runner.close()

    async def close(self) -> None:
        """Finish what is being released."""
        if self._releasing:
            await asyncio.wait(self._releasing)
        await self._point.close()


class LeasedSession(Protocol):
    """The session that a lease is for."""

    @property
    def journal(self) -> SessionRecord: ...

    @property
    def is_closed(self) -> bool: ...

    @property
    def is_fenced(self) -> bool: ...

    def handle(self, event: ev.LeaseHeld | ev.LeaseLost, /) -> object: ...

    def fence_again(self, cause: str) -> None:
        """A new daemon finds it fenced, which was not known before."""

    def save_parcel(self) -> None: ...

    def keeper_deadline(self, until: float | None) -> None:
        """When its keeper freezes it if it hears nothing; None: never."""


class SessionLease:
    """One session's lease."""

    runner: LeaseRunner

    def __init__(
        self,
        session: SessionId,
        *,
        begins: bool,
        before: int,
        write_token: Callable[[int], None],
        release: Callable[[LeaseRunner], None],
    ) -> None:
        self._session, self._begins, self._before = session, begins, before
        self._write_token, self._release = write_token, release
        self._live: LeasedSession | None = None  # none yet while it is starting
        self._token_error = ""  # why the token file does not say this epoch
        self._again: asyncio.TimerHandle | None = None
        self._released = False

    def begin(self, live: LeasedSession) -> None:
        """The session is there: apply what its lease allows at this moment."""
        self._live = live
        if self._begins:
            by, leased = self.held_again(self._before)
            live.journal.happened(by, leased, forced=bool(by))
        self._extend_deadline()
        self.runner.carry_on()
        self._resume_if_held()

    def freeze_confirmed(self) -> None:
        """The kernel has stopped the tree: there is nothing left for the keeper to stop."""
        self._set_deadline(None)

    def valid_for(self, epoch: int) -> bool:
        """Whether the lease is held for the epoch that everything of the session says; a daemon may
        have ended in between."""
        return self.runner.usable() and self.runner.epoch == epoch

    def is_held_now(self) -> bool:
        """Asked before anything is taken, typed or shown."""
        return self.runner.judge() and not self._token_error

    def check(self, epoch: int) -> None:
        """Raises Fenced unless this very epoch may be acted on."""
        if not self.is_held_now() or self.runner.epoch != epoch:
            raise fenced_error()

    async def force(self, by: str, reason: str) -> None:
        """Take the lease although no record says that it is free: on this actor's word."""
        if not await self.runner.force(by, reason, LEASE_ACQUIRE_S):
            raise CoordinationDown(
                f"could not acquire the lease within {LEASE_ACQUIRE_S:.0f} s",
                hint="it is still being tried; `hold show` shows the state of the lease",
            )

    def release(self) -> None:
        """The session has ended, or did not come to begin."""
        if not self._released:
            self._released = True
            self._set_deadline(None)
            self._release(self.runner)

    def close(self) -> None:
        """Another daemon carries it on."""
        if not self._released:
            self._released = True
            self.runner.close()

    def info(self) -> LeaseInfo:
        runner = self.runner
        held = runner.usable() and not self._token_error
        state = "taken" if runner.taken else "held" if held else "fenced"
        later = runner.taken.epoch if runner.taken else 0
        why = self._token_error if state == "fenced" else ""
        return LeaseInfo(state, self._length_s(), runner.left_s(), later, why)

    def _length_s(self) -> float:
        return self.runner.lease.terms.length_s or 0.0

    # -- called by the lease runner ---------------------------------------------------------------

    def acquired(self, epoch: int, until: float) -> None:
        self._extend_deadline()
        self._resume_if_held()

    def _resume_if_held(self) -> None:
        """A fenced session runs on if its lease is held and its token file has the epoch; until
        that can be written, it is tried again."""
        live, epoch = self._live, self.runner.epoch
        if self._again is not None:
            self._again.cancel()
        if live is None or self._released or live.is_closed:
            return
        if not (live.is_fenced and self.runner.usable()):
            return
        try:
            self._write_token(epoch)
        except StorageFailed as error:
            if not self._token_error:
                log.error("session %s stays fenced: its token: %s", self._session, error.message)
                self.save()
            self._token_error = f"its token file cannot be written: {error.message}"
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(_TOKEN_AGAIN_S, self._resume_if_held)
            return
        self._token_error = ""
        live.handle(ev.LeaseHeld(HOST_ACTOR, now(), epoch))

    def renewed(self, until: float) -> None:
        self._extend_deadline()
        self.save()

    def lost(self, step: LeaseStep) -> None:
        live, never_ran = self._live, bool(self._token_error)
        self._token_error = ""
        if live is None or live.is_closed or never_ran:
            return
        if live.is_fenced:
            live.fence_again(step)
        else:
            live.handle(ev.LeaseLost(HOST_ACTOR, now(), step))

    def taken(self, by: LeaseRecord) -> None:
        log.warning("session %s lives elsewhere, in epoch %d", self._session, by.epoch)
        live = self._live
        if live is not None and not live.is_closed:
            body = entries.FencedEntry("taken", by.epoch, by.owner)
            live.journal.happened(HOST_ACTOR, body, forced=True)
        self.save()

    def save(self) -> None:
        if self._live is not None and not self._live.is_closed:
            self._live.save_parcel()

    def _set_deadline(self, until: float | None) -> None:
        if self._live is not None:
            self._live.keeper_deadline(until)

    def _extend_deadline(self) -> None:
        runner = self.runner
        if runner.usable() and not self._released:
            self._set_deadline(runner.lease.deadline + runner.lease.terms.grace_s / 2)

    def held_again(self, before: int) -> tuple[str, entries.Leased]:
        """Since this epoch: by the host itself, or on somebody's word, and why."""
        record = self.runner.lease.record
        by = record.forced_by if record is not None else HOST_ACTOR
        reason = record.reason if record is not None and by else ""
        return by, entries.Leased(self._length_s(), before, reason)


def _lives_elsewhere(record: LeaseRecord | None) -> Fenced:
    hint = "`hold restore --i-know-the-host-is-dead` takes it on your word, which is recorded"
    if record is None:
        return Fenced(
            "there is no record of the session's lease, which does not prove that no other host "
            "has the session",
            hint=hint,
        )
    return Fenced(
        f"the session's lease is that of another host, {record.owner[:12]}, in epoch "
        f"{record.epoch}",
        hint=f"restore it there; if that host is gone for good, {hint}",
    )


def fenced_error() -> Fenced:
    return Fenced(
        "this host lost the session's lease; what runs here is frozen until it has it again",
        hint="`hold show` shows the state of the lease; the session may live on another host",
    )
