"""What the session's own shell reports of the commands it runs. `exec` stands on it: see
host.executing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from typing import TYPE_CHECKING

from holdfast.adapters import pty
from holdfast.adapters.shell.integration import (
    LINE_PROBE,
    CommandBegin,
    CommandEnd,
    LineShown,
    PromptShown,
    Report,
    ReportReader,
    may_probe,
)
from holdfast.host.clock import now
from holdfast.host.session.exec_runs import Execution, Executions
from holdfast.host.session.line_attribution import BEGIN_WAIT_S, LineAttribution, ReportContext
from holdfast.host.session.parcel import SavedExec
from holdfast.journal import entries
from holdfast.model.envelope import Right
from holdfast.model.errors import (
    HoldfastError,
    InputUnknown,
    InvalidArgument,
    NoShellIntegration,
    SessionBusy,
    SessionEnded,
)
from holdfast.model.ids import HOST_ACTOR, ActorId, OperatorId
from holdfast.model.info import CommandRecord
from holdfast.model.limits import COMMANDS_REMEMBERED
from holdfast.model.state import Ending, SessionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.core.line_authors import TypedLine
    from holdfast.host.session.live_session import LiveSession

TYPED_BLIND = "(typed blind, not kept)"  # in place of a command line that is a secret
_BELL_READ_BYTES = 64 << 10
_BELL_READS = 16  # in one go; a shell that says more is heard in the next
_CLEAR_LINE = b"\x03"
_PROBE_CONTEXT_BYTES = 16  # typed last: after some keys a shell takes the next one as text
_LINE_WAIT_S = 0.5  # a shell at its prompt answers in a millisecond
_READS_ON_S = 0.005  # and reads on in another


class ShellCommands:
    """The commands of one session, as its shell reported them."""

    def __init__(
        self,
        live: LiveSession,
        known: tuple[CommandRecord, ...],
        executions: tuple[SavedExec, ...] = (),
    ) -> None:
        self._live = live
        self._records: deque[CommandRecord] = deque(known, maxlen=COMMANDS_REMEMBERED)
        self._reader = ReportReader(live.spec.nonce)
        self._loop = asyncio.get_running_loop()
        self._entered_at = 0.0  # an Enter was typed; what the shell makes of it, it reports
        self._reported = asyncio.Event()
        self.typed = LineAttribution(live, running=bool(known and known[-1].status is None))
        self.executions = Executions(executions)
        self.exec: Execution | None = None  # the one that runs
        self._line: asyncio.Future[str | None] | None = None  # what stands at the prompt, asked for
        self._line_at = 0.0  # when somebody had typed last by then

    def recover(self) -> None:
        """Another daemon served the session until now."""
        self.typed.recover()
        self.exec = self.executions.unfinished(self._live.custody.ledger.last_seq)

    def start(self) -> None:
        if self._live.fds.bell >= 0:
            self._loop.add_reader(self._live.fds.bell, self.read_reports)
        if self.exec is not None:
            self._loop.call_later(BEGIN_WAIT_S, self._check_reported, self.exec)

    @property
    def last(self) -> CommandRecord | None:
        return self._records[-1] if self._records else None

    def recent(self, count: int, *, text_chars: int) -> tuple[CommandRecord, ...]:
        """The latest, each with the beginning of its text."""
        latest = list(self._records)[-count:]
        return tuple(record.replace(text=record.text[:text_chars]) for record in latest)

    def check_can_run(self) -> None:
        """Raise unless the shell can take a command line now."""
        live, name = self._live, self._live.spec.name
        if not live.spec.shell:
            raise NoShellIntegration(
                f"the session runs {live.spec.argv[0]}, which does not report its commands",
                hint="type with `hold send` and look with `hold wait` and `hold screen`",
            )
        self.read_reports()  # what was reported and not yet read counts
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
        if self.typed.prompt_may_have_text:
            raise SessionBusy(
                "text typed at the prompt waits for its Enter",
                hint=f"finish it, or clear it with `hold keys {name} C-c`",
            )

    def read_reports(self) -> None:
        """Take up what the shell has reported."""
        data, unread = self._rung()
        if not data:
            return
        # The shell wrote its output before it rang: take that first. But when we are late, what
        # began may have printed already: what is taken now is counted as its own.
        before = self._live.ring.head
        self._live.output.drain()
        reports = self._reader.feed(data)
        for index, report in enumerate(reports):
            self._on_report(report, before, _later(unread, reports[index + 1 :]))
            before = self._live.ring.head

    def _rung(self) -> tuple[bytes, int | None]:
        """All that is reported, and the bytes that nobody had read before the last look for more:
        so whatever was read by then and is reported, is reported here."""
        data, unread = b"", None
        for _ in range(_BELL_READS):
            try:
                data += os.read(self._live.fds.bell, _BELL_READ_BYTES)
            except BlockingIOError:
                break
            unread = self.typed.unread()
        return data, unread

    def _on_report(self, report: Report, before: int, later: ReportContext) -> None:
        at, head = time.time(), self._live.ring.head
        if isinstance(report, PromptShown) and (later.unread or not self._live.custody.is_idle):
            self.enter_typed()  # typed ahead of the prompt, and perhaps with an Enter
        elif isinstance(report, CommandBegin | PromptShown):
            self._reported.set()
        if isinstance(report, CommandBegin):
            self._began(report, at, before, self.typed.began(later))
        elif isinstance(report, CommandEnd):
            self.typed.ended()
            for index, record in enumerate(self._records):
                if record.seq == report.seq and record.status is None:
                    self._records[index] = record.replace(
                        status=report.status, ended_at=at, ended_offset=head
                    )
                    ended = entries.CommandEnded(report.seq, report.status, report.cwd, head)
                    self._live.journal.happened(HOST_ACTOR, ended)
        elif isinstance(report, PromptShown):
            self.typed.prompted(later)
        elif isinstance(report, LineShown):
            if self._line is not None and not self._line.done():
                self._line.set_result(report.text if report.text_known else None)
            return
        execution = self.exec
        if execution is not None:
            self._tell_exec(execution, report, head)
        self._live.save_parcel()
        if execution is not None:
            execution.wake()
        self._live.watching.look_soon()

    def _tell_exec(self, execution: Execution, report: Report, head: int) -> None:
        """What a report means for the command line that somebody waits for. Of one that an earlier
        daemon left, a report may have died with that daemon: the next one tells as much."""
        command, restored = execution.record.command, execution.restored
        if isinstance(report, CommandBegin) and command is None:
            execution.begins(report.seq, self._live.journal.seq, parsed=report.parsed)
        elif isinstance(report, CommandEnd) and (
            command == report.seq or (command is None and restored)
        ):
            if command is None:
                execution.begins(report.seq, 0)
            self._end_exec(execution, report.status, report.cwd, head)
            if not execution.record.parsed and self._live.spec.shell == "fish":
                self._live.custody.type_as_host(_CLEAR_LINE)  # fish leaves a refused line standing
                self.typed.cleared()
        elif isinstance(report, PromptShown) and (command is None or restored):
            # Back at the prompt and nothing began: the shell took the line for no command.
            self._end_exec(execution, report.status, report.cwd, head)

    def _end_exec(self, execution: Execution, status: int, cwd: str, head: int) -> None:
        self.exec = None
        execution.ends(status, cwd, head)

    def _began(self, report: CommandBegin, at: float, head: int, line: TypedLine) -> None:
        """Whoever typed last of its line pressed Enter; whoever typed of it had a part in it."""
        live, authors = self._live, tuple(line.authors)
        by = authors[-1] if authors else HOST_ACTOR
        text = TYPED_BLIND if line.blind else report.text
        live.journal.happened(by, entries.CommandBegan(report.seq, text, report.cwd, head, authors))
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
        "" also while a command runs, None when the shell does not say, or cannot be asked."""
        live = self._live
        if not live.spec.shell:
            return ""
        await self._settled()  # for a moment after an Enter a shell is at no prompt
        if self._line is None:  # else the shell is being asked, and at work on its answer
            if live.state() is not SessionState.PROMPT:
                return None if self.typed.at_prompt else ""
            if not may_probe(live.custody.last_bytes[-_PROBE_CONTEXT_BYTES:]):
                return None
            self._line, self._line_at = self._loop.create_future(), live.custody.last_input_at
            live.custody.type_as_host(LINE_PROBE)
        asked, asked_at = self._line, self._line_at
        try:
            text = await asyncio.wait_for(asyncio.shield(asked), _LINE_WAIT_S)
            if text is not None and live.custody.last_input_at == asked_at:
                self.typed.told(bool(text))
            return text
        except TimeoutError:
            return None
        finally:
            if self._line is asked:
                self._line = None

    def may_ask(self, actor: str) -> bool:
        """Whether the shell is asked on this actor's behalf: that types something."""
        spec, rights = self._live.spec, self._live.core.authority.rights
        return Right.INPUT in rights(ActorId(actor), spec.id, spec.labels, now())

    async def cleared_up(
        self, actor: str, who: OperatorId, seq: int, then: Callable[[], object]
    ) -> None:
        """Do this after the shell was asked whether anything stands at its prompt; `seq`: as the
        operator's input of this number."""
        if self.may_ask(actor) and await self.line() is not None:
            until = self._loop.time() + _LINE_WAIT_S  # it answers before it reads on
            while self._live.state() is SessionState.WORKING and self._loop.time() < until:
                await asyncio.sleep(_READS_ON_S)
        if 0 < seq <= self._live.core.inputs.last(who):
            raise SessionBusy("an input sent after this command line was typed before it")
        then()

    def enter_typed(self) -> None:
        """An Enter was typed: the shell looks as if it were at its prompt until it has read it, and
        what is typed meanwhile is read by the program that it then starts. One that is typed while
        a command runs is that command's."""
        if self.last is None or self.last.status is not None:
            self._entered_at = self._loop.time()
            self._reported.clear()

    def _unread(self) -> bool:
        """Whether something was typed that the shell has not read."""
        return not self._live.custody.is_idle or bool(pty.unread_input(self._live.fds.master))

    async def _settled(self) -> None:
        """Until the shell has said what it made of the last Enter; one that says nothing for so
        long wants the rest of a command line."""
        left = self._entered_at + BEGIN_WAIT_S - self._loop.time()
        if left > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reported.wait(), left)

    def exec_begins(self, execution: Execution) -> None:
        """A command line was typed for `exec`. A shell that asks for more of it has not begun."""
        self.exec = execution
        self.executions.typed()
        self._loop.call_later(BEGIN_WAIT_S, self._check_begun, execution)

    def _check_begun(self, execution: Execution) -> None:
        if self.exec is not execution or execution.record.command is not None:
            return
        # In this order: before a shell has read its Enter it looks as if it asked for more.
        wants_more = not self._unread() and self._live.state() is SessionState.PROMPT
        if self._live.ending is None and wants_more:
            self._live.custody.type_as_host(_CLEAR_LINE)
            why = InvalidArgument(
                "the shell waits for the rest of the command line: it is not complete",
                hint="close its quotes, brackets and blocks; the line was cleared",
            )
            self._give_up(execution, why)
        else:
            self._loop.call_later(BEGIN_WAIT_S, self._check_begun, execution)

    def _check_reported(self, execution: Execution) -> None:
        """One that an earlier daemon left. That one may have died with a report in its hands: then
        the shell is at its prompt, and nobody will ever say how the command ended."""
        if self.exec is not execution or self._live.is_over:
            return
        self.read_reports()
        if self.exec is execution and self._live.state() is SessionState.PROMPT:
            why = InputUnknown(
                "the daemon was replaced in the moment in which the shell reported; the line was "
                "typed, and how it ended is not known",
                hint="look at the screen before you run it again",
            )
            self._give_up(execution, why)
        elif self.exec is execution:
            self._loop.call_later(BEGIN_WAIT_S, self._check_reported, execution)

    def _give_up(self, execution: Execution, why: HoldfastError) -> None:
        self.exec = None
        execution.fails(why)
        self._live.save_parcel()
        execution.wake()

    def session_ended(self, ending: Ending) -> None:
        if self.exec is not None:
            self.exec.fails(SessionEnded(f"the session ended while the command ran: {ending}"))
            self.exec.wake()
            self.exec = None

    def close(self) -> None:
        if self._live.fds.bell >= 0:
            self._loop.remove_reader(self._live.fds.bell)
            with contextlib.suppress(OSError):
                os.close(self._live.fds.bell)


def _later(unread: int | None, reports: list[Report]) -> ReportContext:
    """With these reports, behind the one that is taken up."""
    asked = [report for report in reports if isinstance(report, CommandBegin | PromptShown)]
    begun = sum(isinstance(report, CommandBegin) for report in asked)
    return ReportContext(unread, begun, bool(asked) and isinstance(asked[-1], PromptShown))
