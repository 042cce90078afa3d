"""One command line that an agent follows: on its way to the shell, running, or ended. It is kept
before anybody waits for it: a caller that was cut off, or gave up waiting, finds it by its handle.
The host knows it by the same key, so following it again runs nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import (
    GateRefused,
    HoldfastError,
    HostLost,
    InputUnknown,
    SessionEnded,
)
from holdfast.model.measured import ActionTrace
from holdfast.model.state import SessionState
from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Piece, Result

Begin = Callable[[], Awaitable[Running]]

ASKING = (SessionState.INPUT, SessionState.SECRET, SessionState.STOPPED)
_ASKS_S = 0.25  # in such a state for so long: it asks


class AgentCommand:
    def __init__(self, session: Session, key: str, line: str, begin: Begin) -> None:
        """`line`: empty of one that another program began: then `begin` only joins it."""
        self.session, self.key, self.line = session, key, line
        self.trace: ActionTrace | None = None  # of a structured action, in the end
        self._running: Running | None = None
        self._has_begun = False  # at any time: what follows is no refusal
        self._begun = asyncio.Event()
        self._told_held = False  # that it waits for approval
        self._task = self._followed(begin)

    @property
    def handle(self) -> str:
        return f"{self.session.id}/{self.key}"

    def _followed(self, begin: Begin) -> asyncio.Task[Result]:
        task = asyncio.create_task(self._follow(begin))
        task.add_done_callback(_looked_at)
        return task

    async def _follow(self, begin: Begin) -> Result:
        try:
            self._running = await begin()
            self._begun.set()
            result = await self._running.result()
        except HoldfastError as error:
            self._has_begun |= error.output_bytes is not None
            raise
        self._has_begun = True
        with contextlib.suppress(HoldfastError):  # not an action; or lost: its result stands
            if self._running.action_id or not self.line:
                self.trace = await self.session.trace(self._running.action_id or self.key)
        return result

    # -- how far it is ------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether the shell has begun it."""
        return self._has_begun or (self._running is not None and self._running.held is None)

    @property
    def held(self) -> ApprovalInfo | None:
        """What it waits for, if a policy holds it."""
        return None if self._running is None or self.done else self._running.held

    @property
    def done(self) -> bool:
        """Whether it is followed no longer: it ended, was refused, or was lost sight of."""
        return self._task.done()

    @property
    def error(self) -> HoldfastError | None:
        """Why it is followed no longer, if it did not come to its end."""
        if not self.done or self._task.cancelled():
            return None
        error = self._task.exception()
        return error if isinstance(error, HoldfastError) else None

    @property
    def is_refused(self) -> bool:
        """Whether nothing was run: its key is free."""
        unknown = isinstance(self.error, InputUnknown | HostLost)
        return self.error is not None and not unknown and not self.begun and not self.is_over

    @property
    def is_denied(self) -> bool:
        """Whether it waited for approval, or did not get as far, and the gate refused it: the host
        keeps nothing of it, so this is known here only."""
        return isinstance(self.error, GateRefused)

    @property
    def is_over(self) -> bool:
        """Whether its session ended or was lost while it ran; or has, and says no more of it."""
        return isinstance(self.error, SessionEnded) and (self.begun or not self.line)

    def ask_again_if_cut_off(self) -> None:
        """Ask the host what became of it, if that could not be known the last time."""
        if self.error is not None and not self.is_over and not self.is_refused:
            self._task = self._followed(lambda: self.session.running(self.key))

    async def result(self, seconds: float) -> Result | None:
        """What became of it. None: it goes on; it asks something, or so many seconds passed."""
        asks = asyncio.create_task(self._until_it_asks())
        try:
            await asyncio.wait(
                (self._task, asks), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            asks.cancel()
        return self._task.result() if self.done and not self._task.cancelled() else None

    async def _until_it_asks(self) -> None:
        """Until its program waits for the terminal, and goes on doing so: what was just typed may
        be on its way, and some programs look at their terminal for a moment only."""
        await self._begun.wait()
        if self.held is not None and not self._told_held:
            self._told_held = True
            return
        try:
            while True:
                await self.session.wait_for(state=ASKING)
                await asyncio.sleep(_ASKS_S)
                if (await self.session.info()).state in ASKING:
                    return
        except HoldfastError:
            await asyncio.wait((self._task,))  # which has a better reason

    # -- what it printed ----------------------------------------------------------------------

    def printed(self, since: int = 0) -> list[Piece]:
        """From an offset of the session's output on."""
        return [] if self._running is None else self._running.printed_since(since)

    @property
    def printed_bytes(self) -> int:
        return sum(len(piece.data) for piece in self.printed())

    @property
    def output_begins(self) -> int | None:
        """The session's output offset at which its own output begins."""
        return None if self._running is None else self._running.printed_from

    def forget(self) -> None:
        """Follow it no longer. In the session it goes on."""
        self._task.cancel()
        if self._running is not None:
            self._running.forget()


def _looked_at(task: asyncio.Task[Result]) -> None:
    """Whoever submitted it may be gone: it is no mistake that nobody asks."""
    if not task.cancelled():
        task.exception()
