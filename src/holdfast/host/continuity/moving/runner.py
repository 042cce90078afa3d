"""One end of one move, run: the machine of `core/continuity/migration.py` with a clock, a file and
a link.

An event is given to the machine, what the next daemon must know is on disk, and only then are the
effects carried out, in their order. What takes long answers with an event later. Where the disk
does not take it, nothing follows: it is gone back to what was kept, as a new daemon would. An
effect that fails takes the later ones with it; soon after, the machine recovers, as it would under
a new daemon, and says what is still to be done.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

from holdfast.core.continuity import move_events as ev
from holdfast.core.continuity.migration import SourceMove, TargetMove
from holdfast.core.continuity.move_table import (
    MovePhase,
    SourceState,
    Superposition,
    TargetState,
    phase_of,
    superposition_of,
)
from holdfast.host.continuity.moving import messages as m
from holdfast.keeper import boottime
from holdfast.model.errors import HoldfastError, HostLost, why_not
from holdfast.model.limits import MOVE_LOOK_S
from holdfast.ports.host_link import HostLink
from holdfast.wire.messages.base import Message

log = logging.getLogger(__name__)

_RECOVERS_S = 1.0


class Told(Protocol):
    """Who hears how far a move is."""

    def __call__(self, runner: MoveRunner, reason: str, /) -> None: ...


class MoveRunner:
    """Of one session. A source and a target each add what they do."""

    machine: SourceMove | TargetMove

    def __init__(self, what: str, told: Told) -> None:
        """`what`: the session, for the log."""
        self.what, self._told = what, told
        self.link: HostLink | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._later: deque[ev.MoveEvent] = deque()
        self._giving = False
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown: SourceState | TargetState | None = None
        self.closed = False

    # -- what each end does -----------------------------------------------------------------------

    def _store(self) -> None:
        """What the next daemon needs. Raises OSError or HoldfastError."""
        raise NotImplementedError

    def _back_to_kept(self) -> None:
        """The machine as it was stored last."""
        raise NotImplementedError

    def _carry_out(self, effect: ev.MoveEffect) -> None:
        raise NotImplementedError

    def _settled(self) -> None:
        """The machine is over, and what it wanted is done."""

    # -- the machine ------------------------------------------------------------------------------

    @property
    def state(self) -> SourceState | TargetState:
        return self.machine.state

    @property
    def phase(self) -> MovePhase | None:
        return phase_of(self.state)

    @property
    def superposition(self) -> Superposition:
        return superposition_of(self.state)

    def begin(self) -> None:
        self._follow(self.machine.begin(boottime.now()))

    def give(self, event: ev.MoveEvent) -> None:
        """What happened. Never nested: an event that follows from an effect waits for the rest."""
        if self.closed:
            return
        self._later.append(event)
        if self._giving:
            return
        self._giving = True
        try:
            while self._later and not self.closed:
                self._follow(self.machine.handle(self._later.popleft()))
        finally:
            self._giving = False

    def _follow(self, effects: list[ev.MoveEffect]) -> None:
        try:
            self._store()
        except (OSError, HoldfastError) as error:
            why = error.message if isinstance(error, HoldfastError) else why_not(error)
            log.critical("the move of %s cannot be kept: %s", self.what, why)
            self._back_to_kept()
            self._later.clear()
            self._recover_soon()
            return
        try:
            for effect in effects:
                self._carry_out(effect)
        except Exception:
            log.exception("the move of %s, %s", self.what, self.state)
            self._recover_soon()
            return
        if self._shown is not self.state:
            self._shown = self.state
            log.info("the move of %s: %s", self.what, self.state)
            self._told(self, getattr(self.machine, "reason", ""))
        self._wake()
        if self.machine.is_over:
            self._settled()

    def _recover_soon(self) -> None:
        asyncio.get_running_loop().call_later(_RECOVERS_S, self._recover)

    def _recover(self) -> None:
        self.give(ev.Recovered(boottime.now(), self._has_tree()))

    def _has_tree(self) -> bool:
        return True

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self.machine.wakes_at()
        if at is not None and not self.closed:
            delay = max(0.0, at - boottime.now())
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self.give(ev.MoveTick(boottime.now()))

    # -- work -------------------------------------------------------------------------------------

    def _begin(
        self,
        work: Awaitable[ev.MoveEvent],
        failed: Callable[[str], ev.MoveEvent | None] | None = None,
    ) -> None:
        """Something that takes a while, and what it comes to."""
        self._spawn(self._done(work, failed or (lambda why: ev.MoveFailed(boottime.now(), why))))

    async def _done(
        self, work: Awaitable[ev.MoveEvent], failed: Callable[[str], ev.MoveEvent | None]
    ) -> None:
        try:
            event: ev.MoveEvent | None = await work
        except HoldfastError as error:
            event = failed(error.message)
        except (OSError, TimeoutError) as error:
            event = failed(why_not(error) if isinstance(error, OSError) else "it took too long")
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("the move of %s", self.what)
            event = failed(f"something went wrong: {error!r}")
        if event is not None:
            self.give(event)

    def _again(self, why: str) -> None:
        """What has failed cannot be given up: it is begun once more, as a new daemon would."""
        log.error("the move of %s, %s: %s", self.what, self.state, why)
        self._recover_soon()

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- the link ---------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        link = self.link
        if link is None:
            raise HostLost("the two hosts are not connected at this moment")
        await link.send(m.encode(message))

    def _tell(self, effect: ev.Tell) -> None:
        """If it can be reached."""
        self._spawn(self._told_other(m.Note(effect.note, effect.reason)))

    async def _told_other(self, message: Message) -> None:
        with contextlib.suppress(HoldfastError):
            await self.send(message)

    async def listen(self, link: HostLink) -> None:
        """Until the link is gone."""
        self.link = link
        try:
            while not self.closed and (data := await link.receive()) is not None:
                await self._heard(m.decode(data))
        except HoldfastError as error:
            log.info("the move of %s: its link: %s", self.what, error.message)
        finally:
            if self.link is link:
                self.link = None
            with contextlib.suppress(HoldfastError):
                await link.close()

    async def _heard(self, message: Message) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Another daemon carries it on, or it is over."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        if not self.over.done():
            self.over.set_result(None)


REDIAL_S = MOVE_LOOK_S * 2
