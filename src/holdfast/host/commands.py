"""What the session's own shell reports of the commands it runs, and `exec`, which stands on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.adapters.shell import CommandBegin, CommandEnd, PromptShown, Report, ReportReader
from holdfast.core.exec_output import ExecOutput
from holdfast.host.channels import Piece
from holdfast.model.errors import (
    HoldfastError,
    InvalidArgument,
    NoShellIntegration,
    SessionBusy,
    SessionEnded,
)
from holdfast.model.info import CommandRecord
from holdfast.model.limits import COMMANDS_REMEMBERED, OUTPUT_CHUNK_BYTES
from holdfast.model.state import Ending, SessionState
from holdfast.wire import messages as m
from holdfast.wire.frames import encode

if TYPE_CHECKING:
    from holdfast.host.live import LiveSession

_BELL_READ_BYTES = 64 << 10


class Commands:
    """The commands of one session, as its shell reported them."""

    def __init__(self, live: LiveSession, known: tuple[CommandRecord, ...]) -> None:
        self._live = live
        self._records: deque[CommandRecord] = deque(known, maxlen=COMMANDS_REMEMBERED)
        self._reader = ReportReader(live.spec.nonce)
        self._loop = asyncio.get_running_loop()
        self._typed_since_prompt = False
        self.exec: ExecChannel | None = None
        if live.fds.bell >= 0:
            self._loop.add_reader(live.fds.bell, self._on_bell)

    @property
    def last(self) -> CommandRecord | None:
        return self._records[-1] if self._records else None

    def recent(self, count: int) -> list[CommandRecord]:
        return list(self._records)[-count:]

    def typed(self) -> None:
        """Something was typed: the prompt may hold text that is nobody's command yet."""
        self._typed_since_prompt = True

    def output_came(self) -> None:
        if self.exec is not None:
            self.exec.stirred()

    def check_free(self) -> None:
        """Raise unless the shell can take a command line now."""
        live = self._live
        if not live.spec.shell:
            raise NoShellIntegration(
                f"the session runs {live.spec.argv[0]}, which does not report its commands",
                hint="type with `hold send` and look with `hold wait` and `hold screen`",
            )
        if self.exec is not None:
            raise SessionBusy("another exec is running in this session")
        state = live.state()
        if state is not SessionState.PROMPT:
            raise SessionBusy(
                f"the session's shell is not at its prompt; the session is {state}",
                hint="wait for it: `hold wait NAME --for prompt`",
            )
        if self._typed_since_prompt:
            raise SessionBusy(
                "text typed at the prompt waits for its Enter",
                hint="finish it, or clear it with `hold keys NAME C-c`",
            )

    def _on_bell(self) -> None:
        try:
            data = os.read(self._live.fds.bell, _BELL_READ_BYTES)
        except BlockingIOError:
            return
        # The shell wrote its output before it rang: take that first.
        self._live.drain()
        for report in self._reader.feed(data):
            self._on_report(report)

    def _on_report(self, report: Report) -> None:
        now, head = time.time(), self._live.ring.head
        if isinstance(report, CommandBegin):
            self._records.append(CommandRecord(report.seq, report.text, report.cwd, now, head))
            if self.exec is not None:
                self.exec.begins(report.seq)
        elif isinstance(report, CommandEnd):
            for index, record in enumerate(self._records):
                if record.seq == report.seq and record.status is None:
                    self._records[index] = record.replace(
                        status=report.status, ended_at=now, ended_offset=head
                    )
            if self.exec is not None and self.exec.seq == report.seq:
                self.exec.ends(report.status, report.cwd)
                self.exec = None
        elif isinstance(report, PromptShown):
            self._typed_since_prompt = False
            if self.exec is not None and self.exec.seq is None:
                # Back at the prompt and nothing began: the shell refused the line itself.
                self.exec.refused(report.status, report.cwd)
                self.exec = None
        self._live.keep()
        self._live.watching.stirred()

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
        self._request = request
        self._cursor = live.ring.head
        self._started = time.monotonic()
        self._filter: ExecOutput | None = None
        self._end_at: int | None = None
        self._last: m.Answer | None = None
        self._lost = 0
        self._ready: deque[m.Answer] = deque()
        self._finished = False
        self.wake: Callable[[], None] = lambda: None

    def begins(self, seq: int) -> None:
        if self.seq is None:
            self.seq = seq
            self._filter = ExecOutput(seq)
            self._ready.append(m.ExecBegan(self._request, seq))
            self.wake()

    def ends(self, status: int, cwd: str) -> None:
        self._end_at = self.live.ring.head
        seconds = time.monotonic() - self._started
        self._last = m.ExecEnded(self._request, status, cwd, seconds)
        self.wake()

    def refused(self, status: int, cwd: str) -> None:
        self._filter = None
        self.ends(status, cwd)

    def fails(self, error: HoldfastError) -> None:
        self._end_at = self.live.ring.head
        self._last = m.Failed(self._request, error.code, error.message, error.hint)
        self.wake()

    def stirred(self) -> None:
        self.wake()

    def next_piece(self) -> Piece | None:
        if self._ready:
            return [encode(self._ready.popleft())]
        if self._finished:
            return None
        ring = self.live.ring
        limit = ring.head if self._end_at is None else self._end_at
        while self._filter is not None and self._cursor < limit:
            data = self._read(limit)
            complete = self._end_at is not None and self._cursor >= limit
            out = self._filter.finish(data) if complete else self._filter.feed(data)
            if out:
                return [encode(m.ExecOutput(self._request, out))]
        if self._last is None:
            return None
        self._finished = True
        last = self._last
        if isinstance(last, m.ExecEnded):
            last = last.replace(lost_bytes=self._lost)
        return [encode(last)]

    def finished(self) -> bool:
        return self._finished and not self._ready

    def _read(self, limit: int) -> bytes:
        ring = self.live.ring
        if self._cursor < ring.tail:
            self._lost += ring.tail - self._cursor
            self._cursor = ring.tail
        end = min(self._cursor + OUTPUT_CHUNK_BYTES, limit)
        data = ring.copy(self._cursor, end)
        self._cursor = end
        return data


def command_bytes(command: str, *, bracketed: bool) -> bytes:
    """A command line as typed: pasted as one piece where the shell knows pastes, so that a newline
    in it is text, then Enter."""
    if not command.strip():
        raise InvalidArgument("an empty command line runs nothing")
    text = command.encode()
    return (b"\x1b[200~" + text + b"\x1b[201~" if bracketed else text) + b"\r"
