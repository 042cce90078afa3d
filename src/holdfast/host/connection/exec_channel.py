"""The output of one execution (session.exec_runs), for one operator that asked for it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.core.command_output import CommandOutput
from holdfast.host.connection.output_channels import OutputSource, Piece
from holdfast.model.approval_info import ApprovalInfo
from holdfast.model.errors import HoldfastError, ending_of, from_code
from holdfast.model.ids import ActorId
from holdfast.model.limits import OUTPUT_CHUNK_BYTES
from holdfast.wire.frames import encode
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.session.exec_runs import Execution
    from holdfast.host.session.nested_shells import ReportingShells
    from holdfast.host.session.parcel import SessionSpec

_MARK_WITHIN_BYTES = 4096  # of the output printed when the end was reported


class ExecSource(OutputSource, Protocol):
    """A live session, as far as a command's output is read from it."""

    spec: SessionSpec
    shells: ReportingShells

    def check_may_observe(self, actor: ActorId) -> None:
        """Raise unless this actor may still see what is printed."""

    def held_info(self, approval: str) -> ApprovalInfo | None:
        """What waits by this id."""


class ExecChannel:
    """One execution's output for one operator that asked for it."""

    def __init__(
        self,
        live: ExecSource,
        actor: ActorId,
        number: int,
        request: int,
        execution: Execution,
        *first: m.Answer,
    ) -> None:
        """`first`: what is sent before anything of the execution."""
        self.live = live
        self.number = number
        self._actor = actor
        self.wake: Callable[[], None] = lambda: None
        self._request = request
        self._execution = execution
        self._cursor = execution.record.offset
        self._output: CommandOutput | None = None
        self._ready: deque[m.Answer] = deque(first)
        self._lost = 0
        self._told_held = ""  # the approval of which it was told
        self._finished = False
        execution.followers.add(self)

    def next_piece(self) -> Piece | None:
        if self._finished or not self.live.lease_allows():  # else it is closed in this moment
            return None
        try:
            self.live.check_may_observe(self._actor)
        except HoldfastError as refusal:
            return self._fails(refusal)
        self._look()
        if self._ready:
            return [encode(self._ready.popleft())]
        record = self._execution.record
        if record.seconds is None or not self._complete():
            return None
        if record.failure:
            code, message, hint = record.failure
            return self._fails(from_code(code, message, hint, self.live.ending))
        self._finished = True
        self._execution.followers.discard(self)
        ended = m.ExecEnded(
            self._request, record.status or 0, record.cwd, record.seconds, self._lost
        )
        return [encode(ended)]

    def _fails(self, error: HoldfastError) -> Piece:
        self._finished = True
        self._ready.clear()
        self._execution.followers.discard(self)
        fields = (error.code, error.message, error.hint, error.retryable, ending_of(error))
        return [encode(m.Failed(self._request, *fields))]

    def finished(self) -> bool:
        return self._finished and not self._ready

    def _look(self) -> None:
        """What there is to say: that it began, then its output, as far as it is wanted now."""
        record = self._execution.record
        held_by = self._execution.held_by
        if held_by != self._told_held and record.command is None and not self._execution.over:
            self._told_held = held_by
            held = self.live.held_info(held_by)
            if held is not None:
                self._ready.append(m.ExecHeld(self._request, held))
        if self._output is None and record.command is not None:
            fish = self.live.shells.kind_of(record.command) == "fish"
            self._output = CommandOutput(
                record.command, parsed=record.parsed, preamble=fish, at=record.offset
            )
            self._ready.append(
                m.ExecBegan(self._request, record.command, record.journal_seq, record.offset)
            )
        if self._output is None or (record.failure and record.end_offset is None):
            return
        end = self.live.ring.head if record.end_offset is None else record.end_offset
        self._read_to(end, self._output)
        if record.end_offset is not None and self._cursor >= end and not self._ready:
            self._read_mark(end, self._output)

    def _read_to(self, end: int, output: CommandOutput) -> None:
        """Take from the ring until there is something to send: a reader that does not read leaves
        the rest there."""
        ring = self.live.ring
        while not self._ready and self._cursor < end:
            if self._cursor < ring.tail:
                self._lost += min(ring.tail, end) - self._cursor
                self._cursor = min(ring.tail, end)
                self._say(output.at, output.lost(self._cursor))
                continue
            piece = min(self._cursor + OUTPUT_CHUNK_BYTES, end)
            data = ring.copy(self._cursor, piece)
            self._cursor = piece
            passed = output.feed(data)
            self._say(output.at - len(passed), passed)

    def _read_mark(self, end: int, output: CommandOutput) -> None:
        """All that was printed when the end was reported is read. The mark may come behind it."""
        if output.complete:
            return
        ring = self.live.ring
        start = max(end, ring.tail)
        behind = ring.copy(start, max(start, min(ring.head, end + _MARK_WITHIN_BYTES)))
        passed = output.end(behind)
        self._say(output.at - len(passed), passed)

    def _complete(self) -> bool:
        output = self._output
        if output is None or output.complete or self._execution.record.failure:
            return True
        return time.monotonic() >= self._execution.mark_deadline

    def _say(self, offset: int, data: bytes) -> None:
        if data:
            self._ready.append(m.ExecOutput(self._request, data, offset))
