"""A command line on its way: its output as it comes, and its result. How it is followed across lost
connections: `client_core/exec_reader.py`. With a key, a program that crashed asks in the same way
for what it had begun.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import HoldfastError, SessionBusy, TimedOut
from holdfast.model.state import SessionState
from holdfast.sdk.aio.driver import AsyncHostClient, InputCounter
from holdfast.sdk.aio.values import Piece, Result
from holdfast.sdk.client_core.event_reader import about_to_prompt
from holdfast.sdk.client_core.exec_reader import ExecReader
from holdfast.sdk.client_core.retry_policy import PROMPT_S
from holdfast.sdk.plain_text import plain
from holdfast.wire.messages import session as m
from holdfast.wire.messages.gate_actions import Act, ActionTaken

if TYPE_CHECKING:
    from holdfast.sdk.aio.session import Session

OUTPUT_KEPT_BYTES = 8 << 20  # of one command's output: the last of it
_PAUSES_S = (0.02, 0.2)  # when it is at its prompt already, and the host has yet to hear of it


class Running:
    """One command line. Made by `Session.start`."""

    def __init__(
        self,
        link: AsyncHostClient,
        inputs: InputCounter,
        session: Session,
        command: str,
        key: str,
        intent: str,
        action: str = "",
        retried: tuple[str, ...] = (),
        line: str = "",
    ) -> None:
        """`action`: the JSON form of a structured action, of which this is the command line.
        `line`: what is typed for the command, if that is not the command itself."""
        self._action, self._retried = action, retried
        self.action_id = ""  # of the action, once the host has typed its line
        self._link, self._inputs, self._session = link, inputs, session
        self.command = command
        self._line = line or command
        self.key = key
        self.intent = intent
        self.output_offset: int | None = None  # session output offset at which it began
        self.seq = 0  # journal sequence of its beginning
        # what it waits for, if a policy holds it; None once it has begun
        self.held: ApprovalInfo | None = None
        self._output = _Kept()
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(self._ended)

    # -- for its user ---------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether its end is known here."""
        return self._task.done()

    async def begun(self) -> None:
        """Until the shell has begun it, or a policy holds it: then `held` says what it waits for.
        Raises what kept it from that."""
        await asyncio.shield(self._began)

    async def result(self, timeout: float | None = None) -> Result:
        """Its end. Raises TimedOut after that many seconds; the command goes on then, and so does
        this handle. An error that cut it off once it had begun (SessionEnded, SessionLost,
        NotPermitted, ...) has what it printed as `output_bytes`."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._task), timeout)
        except TimeoutError:
            if self.held is not None:
                raise TimedOut(
                    f"nobody approved the command within {timeout:g} s; it waits on in "
                    f"{self._session.name} as {self.held.id}",
                    hint="ask for its result again, or take it back with ^C",
                ) from None
            raise TimedOut(
                f"the command did not end within {timeout:g} s; it goes on in {self._session.name}",
                hint="ask for its result again, or look at the screen",
            ) from None

    async def output(self) -> AsyncGenerator[Piece, None]:
        """What it prints, from its beginning on, as it comes; until it ends."""
        number, end = 0, 0
        while True:
            number, found = self._output.after(number)
            for piece in found:
                gap = piece.offset - end if end else piece.gap  # it may have been dropped here
                yield piece.replace(gap=gap)
                end = piece.end
            if self._task.done() and number == self._output.count:
                return
            if number == self._output.count:
                await self._output.more(self._task)

    def printed(self) -> str:
        """What came of its output so far, as text."""
        return plain(self.printed_bytes())

    def printed_bytes(self) -> bytes:
        """The same as the program wrote it."""
        return self._output.all()

    def printed_since(self, offset: int) -> list[Piece]:
        """What came of it from an offset of the session's output on."""
        return self._output.since(offset)

    @property
    def printed_from(self) -> int | None:
        """The session's output offset of the first byte that came; None: nothing has yet."""
        return self._output.begin

    async def interrupt(self) -> None:
        """Interrupt it, as ^C does; what it makes of that is its own affair. Nothing happens if it
        has ended."""
        await self._signal("INT")

    async def kill(self) -> None:
        """Kill what it runs in the foreground. Nothing happens if it has ended."""
        await self._signal("KILL")

    async def _signal(self, name: str) -> None:
        """The signal goes to whatever is in the foreground: at the prompt that is the shell, which
        must not get it."""
        info = await self._session.info()
        if not self.done and info.state is not SessionState.PROMPT and info.ending is None:
            await self._session.signal(name)

    def forget(self) -> None:
        """Follow it no longer. The command goes on in the session; its key still names it."""
        self._task.cancel()

    def __await__(self) -> Generator[Any, None, Result]:
        return self.result().__await__()

    # -- following ------------------------------------------------------------------------------

    def _ended(self, task: asyncio.Task[Result]) -> None:
        error = None if task.cancelled() else task.exception()  # retrieved: it is raised below
        if not self._began.done():
            if error is not None:
                self._began.set_exception(error)
                self._began.exception()  # whoever started it may be gone
            elif task.cancelled():
                self._began.cancel()
            else:
                self._began.set_result(None)
        self._output.stir()

    async def _follow(self) -> Result:
        """Others' inputs wait until the host has said something about it."""
        async with AsyncExitStack() as others_wait:
            seq = await others_wait.enter_async_context(self._inputs.next())
            reader = ExecReader(self._link, self._request(seq))
            try:
                while True:
                    answer = await reader.next()
                    if isinstance(answer, ActionTaken):
                        self.action_id = answer.action
                    elif isinstance(answer, m.ExecHeld):
                        self.held = answer.approval
                        await others_wait.aclose()
                        if not self._began.done():
                            self._began.set_result(None)
                    elif isinstance(answer, m.ExecBegan):
                        self.held = None
                        self.seq, self.output_offset = answer.journal_seq, answer.offset
                        await others_wait.aclose()
                        if not self._began.done():
                            self._began.set_result(None)
                    elif isinstance(answer, m.ExecOutput):
                        self._output.add(answer.offset, answer.data)
                    elif isinstance(answer, m.ExecEnded):
                        missed = 0 if reader.joined else answer.lost_bytes
                        return self._result(answer, missed, ran=reader.began)
            except HoldfastError as error:
                if reader.began:  # so it is no refusal: it ran, and what it printed is its asker's
                    error.output_bytes = self._output.all()
                raise
            finally:
                reader.close()

    def _request(self, seq: int) -> m.Exec | Act:
        if self._action:
            return Act(0, self._session.id, seq, self._action, self._retried)
        return m.Exec(0, self._session.id, seq, self._line, self.key, self.intent)

    def _result(self, ended: m.ExecEnded, missed: int, *, ran: bool) -> Result:
        """`missed`: what the host says that this reading did not get. The shell begins nothing for
        a comment; then its status is that of an earlier command."""
        kept = self._output
        return Result(
            self.command,
            ended.status if ran else None,
            kept.all(),
            ended.seconds,
            self.seq,
            ended.cwd,
            max(missed, kept.gaps) + kept.dropped,
        )


async def run_at_prompt(session: Session, start: Callable[[], Running]) -> Running:
    """The command, begun; from a shell that is about to be at its prompt. Between the end of one
    command and the next prompt a shell is busy for a moment, and so is one that starts. Whoever
    runs one command after another must not be refused for that; a command that really runs is not
    waited for. Raises SessionBusy and whatever else the host refuses it with."""
    for pause in (*_PAUSES_S, None):
        running = start()
        try:
            await running.begun()
            return running
        except SessionBusy:
            info = await session.info()
            if pause is None or not about_to_prompt(info):
                raise
        except asyncio.CancelledError:
            running.forget()
            raise
        with suppress(TimedOut):  # the next refusal says what is the matter
            if info.state is SessionState.PROMPT:
                await asyncio.sleep(pause)
            await session.wait_for(state=SessionState.PROMPT, timeout=PROMPT_S)
    raise AssertionError("unreachable")


class _Kept:
    """The last of a command's output, in pieces, for readers of any speed. By offset: what comes a
    second time after a reconnect is known."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self._bytes = 0
        self.begin: int | None = None
        self._end: int | None = None
        self.count = 0  # pieces there ever were
        self.gaps = 0  # bytes that never came, between two that did
        self.dropped = 0  # bytes that came and are not kept
        self._stirred = asyncio.Event()

    def add(self, offset: int, data: bytes) -> None:
        gap = 0
        if self._end is not None:
            if offset < self._end:
                data = data[self._end - offset :]
                offset = self._end
            gap = offset - self._end
        if not data:
            return
        self.gaps += gap
        self.begin = offset if self.begin is None else self.begin
        self._end = offset + len(data)
        self._pieces.append(Piece(offset, data, gap))
        self._bytes += len(data)
        self.count += 1
        while self._bytes > OUTPUT_KEPT_BYTES:
            size = len(self._pieces.popleft().data)
            self._bytes -= size
            self.dropped += size
        self.stir()

    def all(self) -> bytes:
        return b"".join(piece.data for piece in self._pieces)

    def since(self, offset: int) -> list[Piece]:
        """What is kept of it from there on. A piece that begins before that is given in part."""
        found = [piece for piece in self._pieces if piece.end > offset]
        if found and found[0].offset < offset:
            found[0] = Piece(offset, found[0].data[offset - found[0].offset :], 0)
        return found

    def after(self, number: int) -> tuple[int, list[Piece]]:
        """The pieces behind this many, and how many there are then. What was dropped meanwhile is
        a gap before the first."""
        first = self.count - len(self._pieces)
        found = list(self._pieces)[max(0, number - first) :]
        return self.count, found

    def stir(self) -> None:
        self._stirred.set()
        self._stirred = asyncio.Event()

    async def more(self, until: asyncio.Task[Result]) -> None:
        if not until.done():
            await self._stirred.wait()


def when_over(running: Running, then: Callable[[], None]) -> None:
    """Do this when its end is known here."""
    running._task.add_done_callback(lambda task: None if task.cancelled() else then())
