"""Leases of re-homeable sessions in this host: taken before a session begins, renewed, given back
at its end; and what follows for the session when its lease is lost (F2).

Lost: the tree is frozen, input and attaching are refused, whoever is attached is sent away and told
why, and the journal says so. The state stays for whoever looks into it. Taken again: a new epoch,
in the journal, the token file and the state blob, before anything of the tree runs. While the token
file cannot be written the session stays fenced, with its lease held and renewed: a program that ran
on would show outside systems an epoch that is over (F4). Nothing of this is about pinned sessions,
which have no `Leasing`.

When a lease is lost is decided by core.lease; tenure.py runs that. Behind it stands the keeper's
dead man's handle, for a daemon that hangs: it freezes half the grace later, so that it is not in
the way of a daemon that does not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.halt import cgroup
from holdfast.core import events as ev
from holdfast.core.lease.table import LeaseStep
from holdfast.host.clock import now
from holdfast.host.coordination_point import CoordinationPoint, terms_of
from holdfast.host.session import fencing_token
from holdfast.host.session.lease_runner import LeaseRunner, SavedLeaseRun, newborn
from holdfast.host.session_store import Stored
from holdfast.journal import entries
from holdfast.keeper import boottime
from holdfast.model.errors import CoordinationDown, Fenced, StorageFailed
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.info import LeaseInfo
from holdfast.model.lease import LeaseRecord
from holdfast.model.limits import LEASE_ACQUIRE_S, LEASE_RELEASE_S
from holdfast.wire.epochs import Incarnation
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)

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

    def __init__(self, daemon: Daemon) -> None:
        config, home = daemon.config, daemon.home
        self.daemon = daemon
        self.terms = terms_of(config.coordination, config.lease_s)
        self.point = CoordinationPoint(config.coordination, f"{home.state}/registry.sqlite")
        self.clock = BootClock()
        self._releasing: set[asyncio.Task[None]] = set()

    async def acquire(self, session: SessionId) -> SessionLease:
        """For a session that is about to begin. Raises CoordinationDown."""
        owner = self.daemon.store.host_key.public.hex()
        home = cgroup.home(self.daemon.instance)
        leasing = SessionLease(self, session, f"{home}/{session}", begins=True)
        leasing.tenure = LeaseRunner(
            newborn(session, owner, self.terms), self.point, self.clock, leasing
        )
        try:
            held = await leasing.tenure.acquire(LEASE_ACQUIRE_S)
        except BaseException:
            leasing.over()
            raise
        if not held:
            leasing.over()
            raise CoordinationDown(
                f"no lease was to be had within {LEASE_ACQUIRE_S:.0f} s: the coordination point "
                "does not answer",
                hint="a pinned session, without --rehomeable, needs none",
            )
        return leasing

    def carry_on(self, session: SessionId, group: str, kept: SavedLeaseRun) -> SessionLease:
        """That of a session which another daemon held until now; `begin` follows."""
        leasing = SessionLease(self, session, group)
        leasing.tenure = LeaseRunner.of(kept, self.point, self.clock, leasing)
        return leasing

    def release(self, tenure: LeaseRunner) -> None:
        """In its own time: nothing of the session runs any more."""
        task = asyncio.get_running_loop().create_task(self._release(tenure))
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _release(self, tenure: LeaseRunner) -> None:
        tenure.release()
        try:
            async with asyncio.timeout(LEASE_RELEASE_S):
                await tenure.settled.wait()
        except TimeoutError:
            log.warning("the lease of %s is not given back: it lapses", tenure.lease.session)
        finally:
            tenure.close()

    async def close(self) -> None:
        """What is being given back is; then nobody is asked any more."""
        if self._releasing:
            await asyncio.wait(self._releasing)
        await self.point.close()


class SessionLease:
    """One session's lease, and what follows from it there."""

    tenure: LeaseRunner

    def __init__(
        self, leases: HostLeases, session: SessionId, group: str, *, begins: bool = False
    ) -> None:
        self._leases, self._session, self._group = leases, session, group
        self._begins = begins
        self._live: LiveSession | None = None  # none yet while it is starting
        self._unwritten = ""  # why the token file does not say this epoch
        self._again: asyncio.TimerHandle | None = None
        self._over = False

    def begin(self, live: LiveSession) -> None:
        """The session is there; what its lease allows at this moment is made so."""
        self._live = live
        if self._begins:
            live.journal.happened(HOST_ACTOR, entries.Leased(self._length_s()))
        self._watch()
        self.tenure.carry_on()
        self._take_up()
        live.halts.reconcile()

    def stands_still(self) -> None:
        """The kernel says so: there is nothing left for the keeper to stop."""
        self._keeper(None)

    def covers(self, epoch: int) -> bool:
        """Whether the lease is held for the epoch that everything of the session says; a daemon may
        have ended in between."""
        return self.tenure.usable() and self.tenure.epoch == epoch

    def judge(self) -> bool:
        """Asked before anything is taken, told or shown."""
        return self.tenure.judge() and not self._unwritten

    def check(self, epoch: int) -> None:
        """Raises Fenced unless this very epoch may be acted on."""
        if not self.judge() or self.tenure.epoch != epoch:
            raise _fenced()

    async def force(self, by: str, reason: str) -> None:
        """Take the lease although no record says that it is free: on this actor's word."""
        if not await self.tenure.force(by, reason, LEASE_ACQUIRE_S):
            raise CoordinationDown(
                f"the lease was not to be had within {LEASE_ACQUIRE_S:.0f} s",
                hint="it is tried further on your word; `hold show` says how it stands",
            )

    def over(self) -> None:
        """The session has ended, or did not come to begin."""
        if not self._over:
            self._over = True
            self._keeper(None)
            self._leases.release(self.tenure)

    def close(self) -> None:
        """Another daemon carries it on."""
        if not self._over:
            self._over = True
            self.tenure.close()

    def info(self) -> LeaseInfo:
        tenure = self.tenure
        held = tenure.usable() and not self._unwritten
        state = "taken" if tenure.taken else "held" if held else "fenced"
        later = tenure.taken.epoch if tenure.taken else 0
        why = self._unwritten if state == "fenced" else ""
        return LeaseInfo(state, self._length_s(), tenure.left_s(), later, why)

    def _length_s(self) -> float:
        return self.tenure.lease.terms.length_s or 0.0

    # -- told by the tenure -----------------------------------------------------------------------

    def acquired(self, epoch: int, until: float) -> None:
        self._watch()
        self._take_up()

    def _take_up(self) -> None:
        """What was fenced runs on, if it may and its token file says the epoch; else that is tried
        again."""
        live, epoch = self._live, self.tenure.epoch
        if self._again is not None:
            self._again.cancel()
        if live is None or self._over or live.is_over:
            return
        if not (live.core.state.is_fenced and self.tenure.usable()):
            return
        try:
            fencing_token.write(self._leases.daemon.home, live.spec.mark, epoch)
        except StorageFailed as error:
            if not self._unwritten:
                log.error("session %s stays fenced: its token: %s", self._session, error.message)
                self.moved()
            self._unwritten = f"its token file cannot be written: {error.message}"
            loop = asyncio.get_running_loop()
            self._again = loop.call_later(_TOKEN_AGAIN_S, self._take_up)
            return
        self._unwritten = ""
        live.handle(ev.LeaseHeld(HOST_ACTOR, now(), epoch))

    def renewed(self, until: float) -> None:
        self._watch()
        self.moved()

    def lost(self, step: LeaseStep) -> None:
        live, never_ran = self._live, bool(self._unwritten)
        self._unwritten = ""
        if live is None or live.is_over or never_ran:
            return
        if live.core.state.is_fenced:  # a new daemon found it so, and it is not known from before
            self.fence()
            self.record_fence(step)
            live.save_parcel()
        else:
            live.handle(ev.LeaseLost(HOST_ACTOR, now(), step))

    def taken(self, by: LeaseRecord) -> None:
        log.warning("session %s lives elsewhere, in epoch %d", self._session, by.epoch)
        live = self._live
        if live is not None and not live.is_over:
            body = entries.FencedEntry("taken", by.epoch, by.owner)
            live.journal.happened(HOST_ACTOR, body, forced=True)
        self.moved()

    def moved(self) -> None:
        if self._live is not None and not self._live.is_over:
            self._live.save_parcel()

    def _watch(self) -> None:
        tenure = self.tenure
        if tenure.usable() and not self._over:
            self._keeper(tenure.lease.deadline + tenure.lease.terms.grace_s / 2)

    def _keeper(self, until: float | None) -> None:
        self._leases.daemon.keeper.lease(self._session, self._group, until)

    # -- what it means for the session ------------------------------------------------------------

    def fence(self) -> None:
        """First the tree, then everybody."""
        live = self._live
        assert live is not None
        live.incarnation.fence()
        live.halts.fence()
        live.output.read(False)
        live.custody.pause()
        self._send_away(live)

    def record_fence(self, cause: str) -> None:
        live = self._live
        assert live is not None
        live.journal.happened(HOST_ACTOR, entries.FencedEntry(cause), forced=True)
        self._leases.daemon.reach.withdraw(live.spec.id)
        log.warning("session %s is fenced (%s), epoch %d", self._session, cause, live.spec.epoch)

    def unfence(self, epoch: int) -> None:
        """Everything says the new epoch before anything of the tree runs; the token does so now."""
        live, daemon = self._live, self._leases.daemon
        assert live is not None
        before = live.spec.epoch
        live.spec = live.spec.replace(epoch=epoch)
        live.incarnation, live.fanout = Incarnation(live.spec.id, epoch), None
        live.journal.happened(*self._how(before), forced=True)
        live.save_parcel()
        try:
            daemon.store.save_spec(Stored(live.info(), live.spec.uid))
        except StorageFailed as error:
            log.error("epoch %d of %s: %s", epoch, self._session, error)
        live.halts.reconcile()
        live.output.read(True)
        live.custody.flush_to_pty()
        daemon.reach.announce(live)
        log.warning("session %s runs on in epoch %d", self._session, epoch)

    def _how(self, before: int) -> tuple[str, entries.Leased]:
        """By whom it is held again: the host by itself, or on somebody's word, and why."""
        record = self.tenure.lease.record
        by = record.forced_by if record is not None else HOST_ACTOR
        reason = record.reason if record is not None and by else ""
        return by, entries.Leased(self._length_s(), before, reason)

    def _send_away(self, live: LiveSession) -> None:
        """Whoever has a channel here, told why."""
        for operator in tuple(live.audience):
            for channel in tuple(operator.channels.values()):
                if channel.live is not live:
                    continue
                if channel.number >= 0:
                    operator.event(m.Dismissed(channel.number, Fenced.code))
                else:
                    operator.fail(-1 - channel.number, _fenced())
                self._leases.daemon.operators.close_channel(operator, channel)


def _fenced() -> Fenced:
    return Fenced(
        "this host lost the session's lease; what runs here is frozen until it has it again",
        hint="`hold show` says how it stands; the session may live on another host",
    )
