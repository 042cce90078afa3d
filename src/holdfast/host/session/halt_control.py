"""Stopping a session's tree, or what one actor started in it, and letting it run on.

The kernel is asked in a thread: it answers in milliseconds, but a task deep in the kernel may delay
it for seconds, and the other sessions must not notice. One thing at a time, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.halt.stop_tree import Tree
from holdfast.core import events as ev
from holdfast.core.session import SessionMachine
from holdfast.host.clock import now
from holdfast.host.session.command_leaves import CommandLeaves
from holdfast.host.session.parcel import SavedHalt
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model.errors import HaltFailed, LevelUnavailable
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.spec import Place
from holdfast.model.turn_info import Receipt
from holdfast.ports.halt import HaltResult, Stopped

T = TypeVar("T")

_PIDS_RECORDED = 64  # of each kind, in one entry; a tree of thousands must not outgrow it


class Spawn(Protocol):
    """Starts work that takes a moment."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> asyncio.Task[T]: ...


class HaltControl:
    """What is stopped of one session, and how it is made to run again."""

    def __init__(
        self,
        place: Place,
        process_tag: str,
        decided: SessionMachine,
        record: SessionRecord,
        kept: SavedHalt | None,
        leaves: CommandLeaves,
        *,
        report: Callable[[ev.SessionEvent], object],
        save: Callable[[], None],
        spawn: Spawn,
        is_closed: Callable[[], bool],
        fence_holds: Callable[[], None],
    ) -> None:
        """`fence_holds`: called when the kernel has stopped a fenced tree."""
        self._place, self._tag, self._decided, self._journal = place, process_tag, decided, record
        self._report, self._save, self._spawn = report, save, spawn
        self._is_closed, self._fence_holds = is_closed, fence_holds
        self._lock = asyncio.Lock()
        self._undisturbed = False
        self._latest: asyncio.Task[HaltResult] | None = None
        self._thawing: asyncio.Task[bool] | None = None
        self._stopped: tuple[Stopped, ...] = kept.stopped if kept else ()
        self._confirmed = kept is not None and kept.confirmed
        self._standing = kept.standing if kept else None
        self._interrupted = kept is not None and not kept.confirmed
        self.leaves = leaves

    def kept(self) -> SavedHalt | None:
        if not self._decided.state.is_halted:
            return None
        return SavedHalt(self._confirmed, self._stopped, self._standing)

    def finish_interrupted(self) -> None:
        """The daemon before died while it stopped the tree: stop what it did not reach."""
        if self._interrupted and not self._is_closed():
            self.record_asked(HOST_ACTOR, "", "")
            self._save()
            self.freeze(HOST_ACTOR, "")

    # -- halt -----------------------------------------------------------------------------------

    def record_asked(self, by: str, only: str, reason: str) -> None:
        scope = f"actor:{only}" if only else "session"
        self._journal.happened(by, entries.HaltAskedEntry(scope, reason), forced=True)
        if not only:
            self._confirmed = False

    def freeze(self, by: str, only: str) -> None:
        """Stop it. Input is refused already."""
        self._latest = self._spawn(self._halt(by, only))

    async def _halt(self, by: str, only: str) -> HaltResult:
        async with self._lock:
            if only:
                self._leave_leaf_of(only)
                halted = await asyncio.to_thread(_halt_parts, self._place.cgroup, only)
            else:
                halted = await self._halt_all()
                self._confirmed = halted.frozen
            if not self._is_closed():
                self._record(by, only, halted)
        return halted

    async def _halt_all(self) -> HaltResult:
        """At level plain, what stands still already is noted and kept before anything is stopped:
        so a daemon that finds a halt half done can tell what that one stopped from what the session
        had stopped itself, and knows what to continue."""
        place, tag = self._place, self._tag
        interrupted = self._interrupted and self._standing is not None
        self._interrupted = False
        if not place.cgroup and self._standing is None:
            self._standing = await asyncio.to_thread(_standing, place, tag)
            self._save()
        halted = await asyncio.to_thread(freeze.halt, place, tag)
        ours = {*self._stopped, *halted.stopped}
        if interrupted and not place.cgroup:
            ours |= {*await asyncio.to_thread(_standing, place, tag)} - {*(self._standing or ())}
        self._stopped = tuple(sorted(ours, key=lambda one: one.pid))
        return halted

    def _record(self, by: str, only: str, halted: HaltResult) -> None:
        scope = f"actor:{only}" if only else "session"
        entry = entries.HaltedEntry(
            scope,
            halted.tasks,
            halted.seconds,
            halted.frozen,
            halted.caught[:_PIDS_RECORDED],
            halted.running[:_PIDS_RECORDED],
        )
        self._journal.happened(by, entry, forced=True)
        if not only:
            self._report(ev.FreezeReported(HOST_ACTOR, now(), halted.frozen))
        self._save()

    async def complete_receipt(self, receipt: Receipt) -> Receipt:
        """The receipt, with what the kernel said. The records of it are on disk by then, or it says
        why they are not."""
        latest = self._latest if receipt.scope else None
        halted = await asyncio.shield(latest) if latest is not None else None
        receipt = receipt.replace(unrecorded=await self._journal.sync())
        if halted is None:
            return receipt
        return receipt.replace(
            frozen=halted.frozen,
            tasks=halted.tasks,
            seconds=halted.seconds,
            running=halted.running,
            caught=halted.caught,
        )

    @contextlib.asynccontextmanager
    async def undisturbed(self) -> AsyncIterator[None]:
        """CRIU stops the tree and lets it run on: meanwhile nobody else does, since a frozen task
        cannot do what CRIU asks of it. What is asked for meanwhile is done right afterwards."""
        async with self._lock:
            self._undisturbed = True
            try:
                yield
            finally:
                self._undisturbed = False

    # -- resume ---------------------------------------------------------------------------------

    def thaw(self, by: str) -> None:
        """Let everything run on."""
        self._thawing = self._spawn(self._resume(by))

    async def _resume(self, by: str) -> bool:
        async with self._lock:
            if self._decided.state.is_fenced:  # since it was asked
                return False
            self._journal.happened(by, entries.ResumedEntry(), forced=True)
            runs = await asyncio.to_thread(thaw_all, self._place, self._stopped)
            if runs:
                self._stopped, self._standing, self._confirmed = (), None, False
            self._report(ev.Thawed(HOST_ACTOR, now(), runs))
            self._save()
        return runs

    async def resumed(self) -> None:
        if self._thawing is not None and not await asyncio.shield(self._thawing):
            raise HaltFailed("the kernel did not let everything run on in time", hint="try again")

    # -- a lost lease ---------------------------------------------------------------------------

    def fence(self) -> None:
        """Stop it at once: the kernel is asked here and now, and what it says comes later."""
        if not self._undisturbed:
            with contextlib.suppress(OSError):  # the tree may be ending
                cgroup.ask_to_freeze(self._place.cgroup)
        self.reconcile()

    async def begin(self) -> None:
        """What was restored has stood still until everybody knows of it. It runs from now on, if
        nobody has halted or fenced it meanwhile."""
        async with self._lock:
            if not (self._is_closed() or self._decided.state.is_stopped):
                with contextlib.suppress(OSError):  # the tree may be ending
                    await asyncio.to_thread(cgroup.thaw, self._place.cgroup)

    def reconcile(self) -> None:
        """The tree stands still, or runs, as halt and lease have it now: the keeper or an earlier
        daemon may have left it otherwise."""
        self._spawn(self._reconcile())

    async def _reconcile(self) -> None:
        place = self._place
        async with self._lock:
            if self._is_closed():
                return
            if self._decided.state.is_fenced:
                halted = await asyncio.to_thread(freeze.halt, place, self._tag)
                if not self._is_closed() and self._decided.state.is_fenced:
                    self._record(HOST_ACTOR, "", halted)
                    if halted.frozen:
                        self._fence_holds()
                return
            state = self._decided.state
            if state.is_checkpointing or state.is_moving:
                return  # whoever had it stand still lets it run
            with contextlib.suppress(OSError):
                if not state.is_halted and cgroup.asked_to_freeze(place.cgroup):
                    self._journal.happened(HOST_ACTOR, entries.ResumedEntry(), forced=True)
                    runs = await asyncio.to_thread(cgroup.thaw, place.cgroup)
                    if runs and not self._is_closed() and not self._decided.state.is_stopped:
                        self._report(ev.FreezeReported(HOST_ACTOR, now(), False))

    # -- whose command it is ----------------------------------------------------------------------

    def check_leaves(self) -> None:
        if not self._place.cgroup:
            raise LevelUnavailable(
                "at level plain nothing tells one actor's processes from another's",
                hint="halt the whole session, or start it at level contained",
            )

    def move_shell_to_leaf(
        self, actor: str, others: Sequence[str] = (), *, running: bool = False
    ) -> None:
        """This actor writes now: what the shell starts from here on is in its leaf. `others` wrote
        a part of the line that it runs. What one of them that is halted has a part in stands still,
        and the shell does not go there. `running`: the shell has begun the line already."""
        if others:
            halted = self._decided.halted_actors
            others = [other for other in others if other not in halted]
        self.leaves.move((actor, *others), running=running)

    def follow_to_leaf(
        self, actor: str, others: Sequence[str] = (), *, running: bool = False
    ) -> None:
        """The shell comes to this actor's line. One that is halted was halted after it typed that;
        the shell does not follow it there."""
        if actor not in self._decided.halted_actors:
            self.move_shell_to_leaf(actor, others, running=running)

    def _leave_leaf_of(self, actor: str) -> None:
        """The shell itself goes on: only what the actor started with it, or had a part in, is
        stopped."""
        holder = self._decided.turn.holder or HOST_ACTOR
        if actor in (holder, HOST_ACTOR) or actor not in self.leaves.writers:
            return
        if holder:
            self.leaves.move((holder,))
        else:
            self.leaves.go_home()


def _halt_parts(directory: str, actor: str) -> HaltResult:
    """Freeze every group in which this actor has a part."""
    cgroup.leaf(directory, actor)  # so that what it starts from now on is frozen too
    found = [path for each, path in cgroup.parts(directory) if each == actor]
    results = [freeze.halt_group(path) for path in found]
    return HaltResult(
        frozen=all(result.frozen for result in results),
        tasks=sum(result.tasks for result in results),
        seconds=sum(result.seconds for result in results),
        running=tuple(sorted({pid for result in results for pid in result.running})),
    )


def _standing(place: Place, tag: str) -> tuple[Stopped, ...]:
    """The processes of the session that are stopped at this moment."""
    levels = Tree(place.pid, tag).levels()
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
    for _, leaf in cgroup.parts(place.cgroup) if place.cgroup else ():
        with contextlib.suppress(OSError):  # its tree may be ending
            if cgroup.asked_to_freeze(leaf):
                runs = cgroup.thaw(leaf) and runs
    return runs
