"""Stopping a session's tree, or what one actor started in it, and letting it run on.

The kernel is asked in a thread: it answers in milliseconds, but a task deep in the kernel may keep
it for seconds, and the other sessions shall not notice. One thing at a time, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.halt.stop_tree import Tree
from holdfast.core import events as ev
from holdfast.host.clock import now
from holdfast.host.session.parcel import SavedHalt
from holdfast.journal import entries
from holdfast.model.errors import HaltFailed, LevelUnavailable
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.spec import Place
from holdfast.model.turn_info import Receipt
from holdfast.ports.halt import HaltResult, Stopped

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession


class HaltControl:
    """What is stopped of one session, and by which means it is let go."""

    def __init__(self, live: LiveSession, kept: SavedHalt | None) -> None:
        self._live = live
        self._lock = asyncio.Lock()
        self._latest: asyncio.Task[HaltResult] | None = None
        self._thawing: asyncio.Task[bool] | None = None
        self._stopped: tuple[Stopped, ...] = kept.stopped if kept else ()
        self._confirmed = kept is not None and kept.confirmed
        self._standing = kept.standing if kept else None
        self._interrupted = kept is not None and not kept.confirmed
        place = live.spec.place
        # Whose leaf the shell is in: an earlier daemon may have moved it.
        self._writer = cgroup.actor_of(place.cgroup, place.shell_pid) if place.cgroup else ""

    def kept(self) -> SavedHalt | None:
        if not self._live.core.state.is_halted:
            return None
        return SavedHalt(self._confirmed, self._stopped, self._standing)

    def finish_interrupted(self) -> None:
        """The daemon before died while it stopped the tree: stop what it did not reach."""
        if self._interrupted and not self._live.is_over:
            self.record_asked(HOST_ACTOR, "", "")
            self._live.save_parcel()
            self.freeze(HOST_ACTOR, "")

    # -- halt -----------------------------------------------------------------------------------

    def record_asked(self, by: str, only: str, reason: str) -> None:
        scope = f"actor:{only}" if only else "session"
        self._live.journal.happened(by, entries.HaltAskedEntry(scope, reason), forced=True)
        if not only:
            self._confirmed = False

    def freeze(self, by: str, only: str) -> None:
        """Stop it. Input is refused already."""
        self._latest = self._live.spawn(self._halt(by, only))

    async def _halt(self, by: str, only: str) -> HaltResult:
        live = self._live
        async with self._lock:
            if only:
                self._leave_leaf_of(only)
                leaf = cgroup.leaf(live.spec.place.cgroup, only)
                halted = await asyncio.to_thread(freeze.halt_group, leaf)
            else:
                halted = await self._halt_all()
                self._confirmed = halted.frozen
            if live.ending is None:
                self._record(by, only, halted)
        return halted

    async def _halt_all(self) -> HaltResult:
        """At level plain, what stands still already is noted and kept before anything is stopped:
        so a daemon that finds a halt half done can tell what that one stopped from what the session
        had stopped itself, and knows what to continue."""
        live, place, mark = self._live, self._live.spec.place, self._live.spec.mark
        interrupted = self._interrupted and self._standing is not None
        self._interrupted = False
        if not place.cgroup and self._standing is None:
            self._standing = await asyncio.to_thread(_standing, place, mark)
            live.save_parcel()
        halted = await asyncio.to_thread(freeze.halt, place, mark)
        ours = {*self._stopped, *halted.stopped}
        if interrupted and not place.cgroup:
            ours |= {*await asyncio.to_thread(_standing, place, mark)} - {*(self._standing or ())}
        self._stopped = tuple(sorted(ours, key=lambda one: one.pid))
        return halted

    def _record(self, by: str, only: str, halted: HaltResult) -> None:
        live = self._live
        scope = f"actor:{only}" if only else "session"
        live.journal.happened(
            by, entries.HaltedEntry(scope, halted.tasks, halted.seconds, halted.frozen), forced=True
        )
        if not only:
            live.handle(ev.FreezeReported(HOST_ACTOR, now(), halted.frozen))
        live.save_parcel()

    async def complete_receipt(self, receipt: Receipt) -> Receipt:
        """The receipt, with what the kernel said. The records of it are on disk by then, or it says
        why they are not."""
        latest = self._latest if receipt.scope else None
        halted = await asyncio.shield(latest) if latest is not None else None
        receipt = receipt.replace(unrecorded=await self._live.journal.on_disk())
        if halted is None:
            return receipt
        return receipt.replace(
            frozen=halted.frozen,
            tasks=halted.tasks,
            seconds=halted.seconds,
            running=halted.running,
        )

    # -- resume ---------------------------------------------------------------------------------

    def thaw(self, by: str) -> None:
        """Let everything run on."""
        self._thawing = self._live.spawn(self._resume(by))

    async def _resume(self, by: str) -> bool:
        live = self._live
        async with self._lock:
            if live.core.state.is_fenced:  # since it was asked
                return False
            live.journal.happened(by, entries.ResumedEntry(), forced=True)
            runs = await asyncio.to_thread(thaw_all, live.spec.place, self._stopped)
            if runs:
                self._stopped, self._standing, self._confirmed = (), None, False
            live.handle(ev.Thawed(HOST_ACTOR, now(), runs))
            live.save_parcel()
        return runs

    async def resumed(self) -> None:
        if self._thawing is not None and not await asyncio.shield(self._thawing):
            raise HaltFailed("the kernel did not let everything run on in time", hint="try again")

    # -- a lost lease ---------------------------------------------------------------------------

    def fence(self) -> None:
        """Stop it at once: the kernel is asked here and now, and what it says comes later."""
        with contextlib.suppress(OSError):  # the tree may be ending
            cgroup.ask_to_freeze(self._live.spec.place.cgroup)
        self.reconcile()

    def reconcile(self) -> None:
        """The tree stands still, or runs, as halt and lease have it now: the keeper or an earlier
        daemon may have left it otherwise."""
        self._live.spawn(self._reconcile())

    async def _reconcile(self) -> None:
        live, place = self._live, self._live.spec.place
        async with self._lock:
            if live.is_over:
                return
            if live.core.state.is_fenced:
                halted = await asyncio.to_thread(freeze.halt, place, live.spec.mark)
                if live.ending is None and live.core.state.is_fenced:
                    self._record(HOST_ACTOR, "", halted)
                    if halted.frozen and live.leasing is not None:
                        live.leasing.stands_still()
                return
            with contextlib.suppress(OSError):
                if not live.core.state.is_halted and cgroup.asked_to_freeze(place.cgroup):
                    live.journal.happened(HOST_ACTOR, entries.ResumedEntry(), forced=True)
                    runs = await asyncio.to_thread(cgroup.thaw, place.cgroup)
                    if runs and not live.is_over and not live.core.state.is_stopped:
                        live.handle(ev.FreezeReported(HOST_ACTOR, now(), False))

    # -- whose command it is ----------------------------------------------------------------------

    def check_leaves(self) -> None:
        if not self._live.spec.place.cgroup:
            raise LevelUnavailable(
                "at level plain nothing tells one actor's processes from another's",
                hint="halt the whole session, or start it at level contained",
            )

    def move_shell_to_leaf(self, actor: str) -> None:
        """This actor writes now: what the shell starts from here on is in its leaf."""
        place = self._live.spec.place
        if actor == self._writer or not place.cgroup:
            return
        self._writer = actor
        with contextlib.suppress(OSError):  # the tree may be ending
            cgroup.enter(cgroup.leaf(place.cgroup, actor), place.shell_pid)

    def _leave_leaf_of(self, actor: str) -> None:
        """The shell itself goes on: only what the actor started with it is stopped."""
        place = self._live.spec.place
        holder = self._live.core.turn.holder or HOST_ACTOR
        if actor in (holder, HOST_ACTOR) or self._writer != actor:
            return
        self._writer = holder
        with contextlib.suppress(OSError):
            home = cgroup.leaf(place.cgroup, holder) if holder else place.cgroup
            cgroup.enter(home, place.shell_pid)


def _standing(place: Place, mark: str) -> tuple[Stopped, ...]:
    """The processes of the session that are stopped at this moment."""
    levels = Tree(place.pid, mark).levels()
    return tuple(
        Stopped(pid, stat.start_ticks)
        for level in levels
        for pid, stat in level.items()
        if stat.state in "Tt"
    )


def thaw_all(place: Place, stopped: tuple[Stopped, ...]) -> bool:
    """The whole first: a leaf below something frozen stays frozen. Which leaves were to be is asked
    of the kernel, as an earlier daemon may have asked for it; that one is not frozen yet does not
    mean that it will not be."""
    runs = freeze.resume(place, stopped)
    for leaf in cgroup.leaves(place.cgroup).values() if place.cgroup else ():
        with contextlib.suppress(OSError):  # its tree may be ending
            if cgroup.asked_to_freeze(leaf):
                runs = cgroup.thaw(leaf) and runs
    return runs
