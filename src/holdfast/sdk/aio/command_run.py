"""A command line on its way: sent once, followed to its end, across lost connections.

The host remembers what became of the commands it was asked to run: by the key its asker gave it, or
without one by operator and number. Asking the same again joins that command, running or ended, and
never runs another. That is how this side comes back by itself; and, with a key, how a program that
crashed asks for what it had begun.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from holdfast.model.errors import HoldfastError, HostLost, TimedOut, from_code
from holdfast.sdk.aio.carrier import AsyncDriver
from holdfast.sdk.aio.inputs import Inputs, unknown
from holdfast.sdk.aio.link import HostLink
from holdfast.sdk.aio.values import Piece, Result
from holdfast.sdk.connection import NOT_SENT
from holdfast.sdk.plain_text import plain
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.sdk.aio.session import Session

OUTPUT_KEPT_BYTES = 8 << 20  # of one command's output: the last of it


class Running:
    """One command line. Made by `Session.start`."""

    def __init__(
        self,
        link: HostLink,
        inputs: Inputs,
        session: Session,
        command: str,
        key: str,
        intent: str,
    ) -> None:
        self._link, self._inputs, self._session = link, inputs, session
        self.command = command
        self.key = key
        self.intent = intent
        self.output_offset: int | None = None  # session output offset at which it began
        self.seq = 0  # journal sequence of its beginning
        self._output = _Kept()
        self._patience = link.patience
        self._sent = False
        self._began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._follow())
        self._task.add_done_callback(self._ended)

    # -- for its user ---------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether its end is known here."""
        return self._task.done()

    async def begun(self) -> None:
        """Until the shell has begun it. Raises what kept it from that."""
        await asyncio.shield(self._began)

    async def result(self, timeout: float | None = None) -> Result:
        """Its end. Raises TimedOut after that many seconds; the command goes on then, and so does
        this handle."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._task), timeout)
        except TimeoutError:
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
        return plain(self._output.all())

    def forget(self) -> None:
        """Follow it no longer. The command goes on in the session; its key still names it."""
        self._task.cancel()

    def __await__(self) -> Generator[Any, None, Result]:
        return self.result().__await__()

    # -- following ------------------------------------------------------------------------------

    def _ended(self, task: asyncio.Task[Result]) -> None:
        error = None if task.cancelled() else task.exception()  # looked at: it is told below
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
            seq = await others_wait.enter_async_context(self._inputs.turn())
            while True:
                try:
                    carrier = await self._link.carrier()
                except HoldfastError as error:
                    if not self._sent:
                        raise
                    raise self._out_of_reach() from error
                try:
                    return await self._ask(carrier, seq, others_wait)
                except HostLost as lost:
                    if self._link.closed or self._patience.over:
                        raise self._out_of_reach() from lost
                    self._patience.lost()
                except NOT_SENT:
                    await self._patience.not_yet()
        raise AssertionError("unreachable")

    async def _ask(self, carrier: AsyncDriver, seq: int, others_wait: AsyncExitStack) -> Result:
        await carrier.ready()
        heard: asyncio.Queue[m.Message | None] = asyncio.Queue()
        request = m.Exec(0, self._session.id, seq, self.command, self.key, self.intent)
        number = carrier.send(request, heard.put_nowait)
        self._sent = True
        fresh = not self._output.count
        try:
            while (message := await heard.get()) is not None:
                if isinstance(message, m.Failed):
                    raise from_code(message.code, message.message, message.hint)
                self._patience = self._link.patience  # it is there: the next loss is another
                if isinstance(message, m.ExecBegan):
                    self.seq = message.journal_seq
                    self.output_offset = message.offset
                    await others_wait.aclose()
                    if not self._began.done():
                        self._began.set_result(None)
                elif isinstance(message, m.ExecOutput):
                    self._output.add(message.offset, message.data)
                elif isinstance(message, m.ExecEnded):
                    return self._result(message, message.lost_bytes if fresh else 0)
        finally:
            carrier.forget(number)
        raise HostLost("the host was lost while the command ran")

    def _out_of_reach(self) -> HoldfastError:
        """The host is lost, and did not come back."""
        if not self._began.done():
            return unknown()
        return HostLost(
            "the host was lost while the command ran; it goes on there",
            hint="with a key its result can be asked for again",
        )

    def _result(self, ended: m.ExecEnded, missed: int) -> Result:
        """`missed`: what the host says that this reading did not get."""
        kept = self._output
        return Result(
            self.command,
            ended.status,
            kept.all(),
            ended.seconds,
            self.seq,
            ended.cwd,
            max(missed, kept.gaps) + kept.dropped,
        )


class _Kept:
    """The last of a command's output, in pieces, for readers of any speed. By offset: what comes a
    second time after a reconnect is known."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self._bytes = 0
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
