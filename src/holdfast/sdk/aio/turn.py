"""The turn, held for as long as a block of code runs.

    async with session.turn(message="two lines, then it is yours") as turn:
        await session.submit("make")

It is asked for, waited for, and given back at the end, unless it was ours before or was taken away
meanwhile. It stays ours for as long as the block runs, however long that takes: the hold is renewed
in the background, and ends soon after a program that crashed. A person can still seize it. From the
moment it was taken, everything written through this session object raises
TurnLost, also when the turn is free again: whoever took it decides what comes next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from holdfast.model.errors import (
    HoldfastError,
    NoSuchSession,
    SessionBusy,
    SessionEnded,
    SessionHalted,
    TimedOut,
    TurnHeld,
    TurnLost,
    TurnNotHeld,
)
from holdfast.sdk import events as ev
from holdfast.sdk.aio.driver import AsyncHostClient
from holdfast.sdk.aio.values import TurnState
from holdfast.sdk.client_core import turn_wait
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from holdfast.sdk.aio.session import Session

BLOCK_HOLD_S = 30.0  # after a crash others wait so long; a busy event loop may be late by less
_RENEWALS = 3  # in that time: one that is lost with its connection is no loss
_IDLE = "idle"  # the reason of a turn that was lost by a pause
_GIVEN = ("yield", "grant", "hand off")  # what only a holder does
_TOLD_S = 2.0  # for an event that is on its way already


class Turn:
    """Holding a session's turn. `lost` is set when it was taken away."""

    def __init__(
        self,
        session: Session,
        link: AsyncHostClient,
        held: HeldTurns,
        message: str,
        timeout: float | None,
        hold_for: float,
    ) -> None:
        self._session, self._link, self._held = session, link, held
        self._message, self._timeout, self._hold_for = message, timeout, hold_for
        self.lost = asyncio.Event()
        self.lost_to = ""  # who took it, or has it now, by name
        self.reason = ""  # and why, if they said; "idle" when it expired
        self._how = ""  # the same in a sentence
        self._ours_to_give = False  # it was taken here, and not given on since
        self.given = False  # on by this program itself
        self._watching: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        before = await self._session.turn_state()
        listening = asyncio.Event()
        self._watching = asyncio.create_task(self._watch(listening))
        try:
            await self._until(listening)
            await self._wait()
        except BaseException:
            await self._stop()
            raise
        self._ours_to_give = not before.yours or self._held.hold_by_writing(before)
        self._held.entered(self)
        if self._hold_for:
            self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._held.left(self)
        await self._stop()
        if self._ours_to_give and not self.lost.is_set() and not self.given:
            with suppress(TurnNotHeld, SessionEnded, NoSuchSession):
                await self._session.yield_turn()

    def check(self) -> None:
        """Raise TurnLost if it was taken away."""
        if self.lost.is_set():
            raise self.loss()

    def loss(self) -> TurnLost:
        return TurnLost(self._how, hint="stop, and ask whoever holds it now before you go on")

    # -- waiting for it -------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Ask for it, until it comes or it is waited for no longer."""
        link, session = self._link, self._session.id
        request = turn_messages.RequestTurn(0, session, self._message, self._hold_for)
        try:
            await asyncio.wait_for(turn_wait.wait_for_turn(link, request), self._timeout)
        except (TimeoutError, asyncio.CancelledError) as given_up:
            withdrawn = asyncio.ensure_future(turn_wait.withdraw(link, session))
            shown = await asyncio.shield(withdrawn)
            if isinstance(given_up, asyncio.CancelledError):
                if shown.yours:
                    await self._session.yield_turn()
                raise
            if not shown.yours:
                raise TimedOut(
                    f"the turn of {self._session.name} did not come within {self._timeout:g} s; "
                    f"{shown.turn.holder_name or 'nobody'} holds it",
                    hint="wait longer, ask its holder, or seize it if you may",
                ) from None

    async def _until(self, event: asyncio.Event) -> None:
        """Until it is set; what ends the watching (the session's end) is raised here."""
        assert self._watching is not None
        waiting = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait((waiting, self._watching), return_when=asyncio.FIRST_COMPLETED)
            if not event.is_set():
                self._watching.result()
                raise SessionEnded(f"{self._session.name} has ended")
        finally:
            waiting.cancel()

    # -- holding it -----------------------------------------------------------------------------

    async def _renew(self) -> None:
        """While the block runs. What goes wrong here, the watching or the next write tells."""
        session, hold_for = self._session.id, self._hold_for
        renewal = turn_messages.RequestTurn(0, session, hold_s=hold_for, renew=True)
        while not self.lost.is_set() and not self.given:
            await asyncio.sleep(hold_for / _RENEWALS)
            with suppress(HoldfastError):
                await self._link.ask(renewal, turn_messages.TurnShown)

    async def _watch(self, listening: asyncio.Event) -> None:
        async with aclosing(self._session.events()) as events:
            async for event in events:
                if isinstance(event, ev.TurnChanged) and not event.yours and self in self._held:
                    self._taken(event)
                elif isinstance(event, ev.TurnLost):  # the event before may have been about another
                    why = f": {event.reason}" if event.reason else ""
                    how = f"{event.by} took the turn of {self._session.name}{why}"
                    self._lose(event.by, event.reason, how)
                elif isinstance(event, ev.Dropped):
                    shown = await self._session.turn_state()
                    if not shown.yours and self in self._held:
                        self.lose(shown, "it moved while the connection was lost")
                listening.set()

    def _taken(self, moved: ev.TurnChanged) -> None:
        by, to = moved.actor, moved.turn.holder_name
        turn, now_with = f"the turn of {self._session.name}", f"{to or 'nobody'} has it now"
        why = f": {moved.reason}" if moved.reason else ""
        if moved.reason == _IDLE:
            policy = f"policy {moved.turn.policy}"
            how = f"{turn} expired: you wrote nothing for too long ({policy}); {now_with}"
            by = to or "the host"
        elif moved.step == "seize":
            how = f"{by} seized {turn}{why}"
        elif moved.step == "revoke":
            by = by or "the host"
            how = f"{by} took {turn} away{why}; {now_with}"
        elif moved.step in _GIVEN:
            how = f"{by}, which is you, gave {turn} up through another connection; {now_with}"
        else:
            by = by or "the host"
            how = f"{turn} moved ({moved.step}){why}; {now_with}"
        self._lose(by, moved.reason, how)

    def lose(self, shown: TurnState, why: str) -> None:
        """Nobody said how it was lost."""
        holder = shown.turn.holder_name
        how = f"the turn of {self._session.name} is no longer yours: {why}"
        self._lose(holder, "", f"{how}; {holder or 'nobody'} has it now")

    def _lose(self, by: str, reason: str, how: str) -> None:
        if not self.lost.is_set() and not self.given:
            self.lost_to, self.reason, self._how = by, reason, how
            self.lost.set()

    async def _stop(self) -> None:
        tasks = [task for task in (self._watching, self._renewing) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # looked at: the session's own calls tell of it


class HeldTurns:
    """The blocks in which one handle holds the turn, one inside the other, and what is written
    through it meanwhile."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turns: list[Turn] = []
        self._wrote = False  # which may have taken a free turn

    def __contains__(self, turn: Turn) -> bool:
        return turn in self._turns

    def entered(self, turn: Turn) -> None:
        self._turns.append(turn)

    def left(self, turn: Turn) -> None:
        self._turns.remove(turn)

    @contextmanager
    def giving(self) -> Iterator[None]:
        """The turn is given on by this program itself: that is no loss. Not so if it is refused."""
        giving = [turn for turn in self._turns if not turn.given]
        for turn in giving:
            turn.given = True  # before: the event may come before the answer
        try:
            yield
        except HoldfastError:
            for turn in giving:
                turn.given = False
            raise

    def hold_by_writing(self, state: TurnState) -> bool:
        """Whether the turn is ours because we wrote while it was free: nobody asked for it."""
        return state.yours and self._wrote and not self._turns and not state.turn.seized

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Nothing is sent once the turn was taken away; and what is refused because it was taken
        at this moment is raised as that."""
        for turn in self._turns:
            turn.check()
        try:
            yield
            self._wrote = True
        except (TurnHeld, SessionHalted, SessionBusy) as error:
            shown = await self._session.turn_state() if self._turns else None
            if shown is None or shown.yours:
                raise
            turn = self._turns[-1]
            with suppress(TimeoutError):  # who took it, and why, comes after the refusal
                await asyncio.wait_for(turn.lost.wait(), _TOLD_S)
            turn.lose(shown, error.message)
            if not turn.lost.is_set():  # it was given on
                raise
            raise turn.loss() from error
