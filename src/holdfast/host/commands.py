"""What the session's own shell reports of the commands it runs, and `exec`, which stands on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.shell import (
    LINE_PROBE,
    CommandBegin,
    CommandEnd,
    LineShown,
    PromptShown,
    Report,
    ReportReader,
    may_probe,
)
from holdfast.core.exec_output import ExecOutput
from holdfast.host.channels import Piece
from holdfast.journal import entries
from holdfast.model.errors import (
    HoldfastError,
    InvalidArgument,
    NoShellIntegration,
    SessionBusy,
    SessionEnded,
)
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.info import CommandRecord
from holdfast.model.limits import COMMANDS_REMEMBERED, OUTPUT_CHUNK_BYTES
from holdfast.model.state import Ending, SessionState
from holdfast.wire import messages as m
from holdfast.wire.frames import encode

if TYPE_CHECKING:
    from holdfast.host.live import LiveSession

TYPED_BLIND = "(typed blind, not kept)"  # in place of a command line that is a secret
_BELL_READ_BYTES = 64 << 10
_CLEAR_LINE = b"\x03"
_BEGIN_WAIT_S = 1.0  # a shell that is at a prompt so long after Enter wants more input
_PROBE_CONTEXT_BYTES = 16  # typed last: after some keys a shell takes the next one as text
_LINE_WAIT_S = 0.5  # a shell at its prompt answers in a millisecond
_MARK_WAIT_S = 1.0  # for the end mark to arrive after the report of the end


class Commands:
    """The commands of one session, as its shell reported them."""

    def __init__(self, live: LiveSession, known: tuple[CommandRecord, ...]) -> None:
        self._live = live
        self._records: deque[CommandRecord] = deque(known, maxlen=COMMANDS_REMEMBERED)
        self._reader = ReportReader(live.spec.nonce)
        self._loop = asyncio.get_running_loop()
        self.typed_since_prompt = False  # the prompt may hold text that is nobody's command yet
        self.blind = live.core.turn.blind  # the line being typed is, at least in part, a secret
        self.exec: ExecChannel | None = None
        self._line: asyncio.Future[str | None] | None = None  # what stands at the prompt, asked for
        if live.fds.bell >= 0:
            self._loop.add_reader(live.fds.bell, self._on_bell)

    @property
    def last(self) -> CommandRecord | None:
        return self._records[-1] if self._records else None

    def recent(self, count: int, *, text_chars: int) -> tuple[CommandRecord, ...]:
        """The latest, each with the beginning of its text."""
        latest = list(self._records)[-count:]
        return tuple(record.replace(text=record.text[:text_chars]) for record in latest)

    def check_free(self) -> None:
        """Raise unless the shell can take a command line now."""
        live, name = self._live, self._live.spec.name
        if not live.spec.shell:
            raise NoShellIntegration(
                f"the session runs {live.spec.argv[0]}, which does not report its commands",
                hint="type with `hold send` and look with `hold wait` and `hold screen`",
            )
        self._on_bell()  # what was reported and not yet read counts
        if self.exec is not None:
            raise SessionBusy(
                "another exec is running in this session",
                hint=f"wait for it: `hold wait {name} --for prompt`",
            )
        state = live.state()
        if state is not SessionState.PROMPT:
            raise SessionBusy(
                f"the session's shell is not at its prompt; the session is {state}",
                hint=f"wait for it: `hold wait {name} --for prompt`",
            )
        if self.typed_since_prompt:
            raise SessionBusy(
                "text typed at the prompt waits for its Enter",
                hint=f"finish it, or clear it with `hold keys {name} C-c`",
            )

    def _on_bell(self) -> None:
        try:
            data = os.read(self._live.fds.bell, _BELL_READ_BYTES)
        except BlockingIOError:
            return
        # The shell wrote its output before it rang: take that first. But when we are late, what
        # began may have printed already: what is taken now is counted as its own.
        before = self._live.ring.head
        self._live.output.drain()
        for report in self._reader.feed(data):
            self._on_report(report, before)
            before = self._live.ring.head

    def _on_report(self, report: Report, before: int) -> None:
        now, head = time.time(), self._live.ring.head
        if isinstance(report, CommandBegin):
            self._began(report, now, before)
            if self.exec is not None:
                self.exec.begins(report)
        elif isinstance(report, CommandEnd):
            for index, record in enumerate(self._records):
                if record.seq == report.seq and record.status is None:
                    self._records[index] = record.replace(
                        status=report.status, ended_at=now, ended_offset=head
                    )
                    ended = entries.CommandEnded(report.seq, report.status, report.cwd, head)
                    self._live.journal.fact(HOST_ACTOR, ended)
            if self.exec is not None and self.exec.seq == report.seq:
                self.exec.ends(report.status, report.cwd)
                if not self.exec.parsed and self._live.spec.shell == "fish":
                    self._live.typist.for_layer(_CLEAR_LINE)  # fish leaves a refused line standing
                    self.typed_since_prompt = False
                self.exec = None
        elif isinstance(report, PromptShown):
            self._prompted()
            if self.exec is not None and self.exec.seq is None:
                # Back at the prompt and nothing began: the shell took the line for no command.
                self.exec.ends(report.status, report.cwd)
                self.exec = None
        elif isinstance(report, LineShown):
            if self._line is not None and not self._line.done():
                self._line.set_result(report.text if report.text_known else None)
            return
        self._live.keep()
        self._live.watching.stirred()

    def _began(self, report: CommandBegin, at: float, head: int) -> None:
        """Whoever typed last pressed Enter; whoever typed since the prompt had a part in it. A line
        that was typed before its prompt was there is of whoever typed last."""
        live = self._live
        typed_ahead = (live.typist.last_by,) if live.typist.last_by != HOST_ACTOR else ()
        authors = tuple(live.typist.authors) or typed_ahead
        by = authors[-1] if authors else HOST_ACTOR
        text = TYPED_BLIND if self.blind else report.text
        live.journal.fact(by, entries.CommandBegan(report.seq, text, report.cwd, head, authors))
        name = live.daemon.actors.name
        self._records.append(
            CommandRecord(
                report.seq,
                text,
                report.cwd,
                at,
                head,
                actor=name(by),
                authors=tuple(name(author) for author in authors),
            )
        )

    async def line(self) -> str | None:
        """The text that stands at the prompt without its Enter, as the shell's line editor has it;
        None when the shell is not at its prompt, or cannot be asked just now."""
        live = self._live
        if not live.spec.shell or live.state() is not SessionState.PROMPT:
            return None
        if not may_probe(live.typist.last_data[-_PROBE_CONTEXT_BYTES:]):
            return None
        if self._line is None:
            self._line = self._loop.create_future()
            live.typist.for_layer(LINE_PROBE)
        asked = self._line
        try:
            return await asyncio.wait_for(asyncio.shield(asked), _LINE_WAIT_S)
        except TimeoutError:
            return None
        finally:
            if self._line is asked:
                self._line = None

    def blind_turn(self, on: bool) -> None:
        """A blind turn began or ended. A line begun in it stays secret until the next prompt."""
        self.blind = on or (self.blind and self.typed_since_prompt)

    def _prompted(self) -> None:
        self.typed_since_prompt = False
        self.blind = self._live.core.turn.blind
        self._live.typist.authors.clear()

    def exec_begins(self, channel: ExecChannel) -> None:
        """A command line was typed for `exec`. A shell that asks for more of it has not begun."""
        self.exec = channel
        self._loop.call_later(_BEGIN_WAIT_S, self._check_begun, channel)

    def _check_begun(self, channel: ExecChannel) -> None:
        if self.exec is not channel or channel.seq is not None:
            return
        if self._live.ending is None and self._live.state() is SessionState.PROMPT:
            self._live.typist.for_layer(_CLEAR_LINE)
            self.exec = None
            channel.fails(
                InvalidArgument(
                    "the shell waits for the rest of the command line: it is not complete",
                    hint="close its quotes, brackets and blocks; the line was cleared",
                )
            )
        else:
            self._loop.call_later(_BEGIN_WAIT_S, self._check_begun, channel)

    def session_ended(self, ending: Ending) -> None:
        if self.exec is not None:
            self.exec.fails(SessionEnded(f"the session ended while the command ran: {ending}"))
            self.exec = None

    def close(self) -> None:
        if self._live.fds.bell >= 0:
            self._loop.remove_reader(self._live.fds.bell)
            with contextlib.suppress(OSError):
                os.close(self._live.fds.bell)


class ExecChannel:
    """One command's output for the operator that asked for it."""

    def __init__(self, live: LiveSession, number: int, request: int) -> None:
        self.live = live
        self.number = number
        self.seq: int | None = None
        self.parsed = True
        self.wake: Callable[[], None] = lambda: None
        self._request = request
        self._cursor = live.ring.head
        self._started = time.monotonic()
        self._output: ExecOutput | None = None
        self._ready: deque[m.Answer] = deque()
        self._last: m.Answer | None = None  # to be sent when the output is complete
        self._mark_deadline = 0.0
        self._lost = 0
        self._finished = False

    def begins(self, report: CommandBegin) -> None:
        if self.seq is None:
            self.seq = report.seq
            self.parsed = report.parsed
            fish = self.live.spec.shell == "fish"
            self._output = ExecOutput(report.seq, parsed=report.parsed, preamble=fish)
            self._ready.append(m.ExecBegan(self._request, report.seq))
            self.wake()

    def ends(self, status: int, cwd: str) -> None:
        seconds = time.monotonic() - self._started
        self._last = m.ExecEnded(self._request, status, cwd, seconds)
        if self._output is not None:
            self._say(self._output.end_reported())
        # The end mark follows within the kernel's time to move it, unless the ring lost it.
        self._mark_deadline = time.monotonic() + _MARK_WAIT_S
        asyncio.get_running_loop().call_later(_MARK_WAIT_S, lambda: self.wake())
        self.wake()

    def fails(self, error: HoldfastError) -> None:
        self._output = None
        self._last = m.Failed(self._request, error.code, error.message, error.hint)
        self.wake()

    def next_piece(self) -> Piece | None:
        if not self.live.may_act():  # it is closed in this moment
            return None
        self._read_on()
        if self._ready:
            return [encode(self._ready.popleft())]
        if self._finished or self._last is None or not self._complete():
            return None
        self._finished = True
        last = self._last
        if isinstance(last, m.ExecEnded):
            last = last.replace(lost_bytes=self._lost)
        return [encode(last)]

    def finished(self) -> bool:
        return self._finished and not self._ready

    def _complete(self) -> bool:
        output = self._output
        return output is None or output.complete or time.monotonic() >= self._mark_deadline

    def _read_on(self) -> None:
        """Take from the ring until there is something to send: a reader that does not read leaves
        the rest there."""
        ring = self.live.ring
        while self._output and not self._ready and self._cursor < ring.head:
            if self._cursor < ring.tail:
                self._lost += ring.tail - self._cursor
                self._cursor = ring.tail
                self._output.lost()
            end = min(self._cursor + OUTPUT_CHUNK_BYTES, ring.head)
            data = ring.copy(self._cursor, end)
            self._cursor = end
            self._say(self._output.feed(data))

    def _say(self, data: bytes) -> None:
        if data:
            self._ready.append(m.ExecOutput(self._request, data))


def command_bytes(command: str, *, bracketed: bool) -> bytes:
    """A command line as typed: pasted as one piece where the shell knows pastes, so that a newline
    in it is text, then Enter."""
    if not command.strip():
        raise InvalidArgument("an empty command line runs nothing")
    text = command.encode()
    return (b"\x1b[200~" + text + b"\x1b[201~" if bracketed else text) + b"\r"
