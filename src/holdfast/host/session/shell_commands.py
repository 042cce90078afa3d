"""What the session's own shell reports of the commands it runs; `exec` needs it (exec_runs.py)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable

from holdfast.adapters import pty
from holdfast.adapters.proc import procfs
from holdfast.adapters.session_memory import output_ring
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.adapters.shell import report_fifo
from holdfast.adapters.shell.integration import (
    CLEAR_LINE,
    GATE_PROBE,
    LINE_PROBE,
    PASTE_PROBE,
    CommandBegin,
    CommandEnd,
    LineShown,
    PromptShown,
    Report,
    ReportReader,
    ShellBelow,
    is_replaced,
    may_probe,
)
from holdfast.core import command_output
from holdfast.core.command_output import BEGIN
from holdfast.core.gate.commit_bytes import walks_history
from holdfast.core.input_machine import InputMachine
from holdfast.core.line_authors import TypedLine
from holdfast.host.gate.provenance import SessionProvenance
from holdfast.host.session.exec_runs import Execution, Executions
from holdfast.host.session.halt_control import Spawn
from holdfast.host.session.line_attribution import (
    BEGIN_WAIT_S,
    LineAttribution,
    ReportContext,
    ShellSight,
)
from holdfast.host.session.nested_shells import ReportingShells
from holdfast.host.session.parcel import SavedExec, SessionSpec
from holdfast.host.session.record import SessionRecord
from holdfast.journal import entries
from holdfast.model.errors import (
    GateHeld,
    HoldfastError,
    InputUnknown,
    InvalidArgument,
    NoShellIntegration,
    SessionBusy,
    TerminalInUse,
    TextAtPrompt,
    session_over,
)
from holdfast.model.ids import HOST_ACTOR, OperatorId
from holdfast.model.info import CommandRecord
from holdfast.model.limits import COMMANDS_REMEMBERED
from holdfast.model.state import Ending, SessionState

TYPED_BLIND = "(typed blind, not kept)"  # in place of a command line that is a secret
_FIFO_LOOKS = 16  # in one go; a shell that goes on reporting is heard in the next
_CLEAR_LINE = b"\x03"
# Programs that are a shell, or have one read the terminal behind them.
_LEAD_TO_A_SHELL = frozenset(
    ("bash", "zsh", "fish", "sh", "dash", "su", "sudo", "ssh", "docker", "podman", "kubectl")
)
GATE_LINE_WAIT_S = 2.0  # for a shell that waits for keys to say its line; then it is not known
_PENDING_TRIES = 4  # to ask for a line that did not begin; a loaded machine may answer late
_REPLACED_CHECK_MAX_S = 30.0  # between two looks whether a running command replaced the shell
_PROMPT_BYTES = 64 << 10  # of the latest output, in which a prompt is looked for
_PROMPT_END = b"B"  # the mark that bash and zsh print behind their prompt
_SHOWN_CHARS = 200  # of the text at the prompt, in a refusal
_PROBE_CONTEXT_BYTES = 16  # typed last: after some keys a shell takes the next one as text
_LINE_WAIT_S = 0.5  # a shell at its prompt answers in a millisecond
_READS_ON_S = 0.005  # and reads on in another


class _Times:
    """When something happened last, by the loop's clock."""

    __slots__ = ("asked", "enter", "entered", "heard", "prompt", "typed")

    def __init__(self) -> None:
        self.heard = self.prompt = 0.0  # the shell reported something, or a prompt
        self.enter = self.typed = 0.0  # an Enter was typed, or a key
        self.entered = 0.0  # an Enter that the shell has to say something of
        self.asked = 0.0  # somebody had typed, when the shell was asked for its line


class ShellCommands:
    """The commands of one session, as its shell reported them."""

    # There are so many that an instance would have a large dict of its own.
    __slots__ = (
        "_activity", "_at", "_changed", "_drain_output", "_found_silent", "_inputs", "_journal",
        "_line", "_line_disputed", "_lines_due", "_loop", "_master", "_name", "_prompt_text",
        "_provenance", "_reader", "_recorded", "_records", "_report_fifo", "_reported", "_ring",
        "_runs", "_save", "_spawn", "_spec", "_type_as_host", "exec", "executions", "lines_begun",
        "may_ask", "shells", "typed", "walked_history",
    )  # fmt: skip

    def __init__(
        self,
        spec: SessionSpec,
        master: int,
        fifo: int,
        ring: Ring,
        typed: LineAttribution,
        inputs: InputMachine,
        record: SessionRecord,
        known: tuple[CommandRecord, ...],
        executions: tuple[SavedExec, ...],
        provenance: SessionProvenance,
        shells: ReportingShells,
        *,
        walked_history: bool,
        type_as_host: Callable[[bytes], None],
        activity: Callable[[], SessionState],
        may_type: Callable[[str], bool],
        drain_output: Callable[[], None],
        save: Callable[[], None],
        changed: Callable[[], None],
        runs: Callable[[str], object],
        name: Callable[[str], str],
        spawn: Spawn,
    ) -> None:
        """`walked_history`: keys that an earlier daemon typed may have; `may_type`: whether the
        host may type on behalf of this actor; `changed`: the state of the session may be another;
        `runs`: whose command line the shell runs now, "" if none."""
        self._spec, self._master, self._report_fifo, self._ring = spec, master, fifo, ring
        self.typed, self._inputs, self._journal = typed, inputs, record
        self._type_as_host = type_as_host
        self._activity, self.may_ask, self._drain_output = activity, may_type, drain_output
        self._save, self._changed, self._runs, self._name = save, changed, runs, name
        self._provenance, self._spawn, self.shells = provenance, spawn, shells
        self._loop = asyncio.get_running_loop()
        self._at = _Times()
        self._records = list(known[-COMMANDS_REMEMBERED:])
        # A report that the last daemon kept and did not take out of the FIFO is seen again.
        self._reader = ReportReader(
            spec.nonce,
            begun=max((record.seq for record in known), default=0),
            ended=max((record.seq for record in known if record.status is not None), default=0),
            below=shells.numbers,
            running=[record.seq for record in known if record.status is None],
        )
        # By the last daemon, and perhaps not kept by it.
        self._recorded: Collection[tuple[type, int]] = ()
        # Until the shell says what it made of an Enter.
        self._reported: asyncio.Future[None] | None = None
        self.executions = Executions(executions)
        self.exec: Execution | None = None  # the one that runs
        self._line: asyncio.Future[LineShown] | None = None  # the text at the prompt, asked for
        self._lines_due = 0  # answers that came too late to be believed, if they still come
        self._found_silent = (0.0, 0.0)  # its last Enter and report, when it was found silent
        self._line_disputed = False  # another answer than the first came to one question
        self.lines_begun = 0  # so often the shell began a line, or asked for a first one
        self._prompt_text = ""  # as the shell last said
        # Keys since the last line was entered may have fetched an earlier one.
        self.walked_history = bool(known) and walked_history

    def renamed(self, spec: SessionSpec) -> None:
        self._spec = spec

    def recover(
        self,
        journal: str,
        last_taken: Callable[[OperatorId], int],
        recent: Iterable[entries.Entry] = (),
    ) -> None:
        """Another daemon served the session until now. `last_taken`: by the ledger; `recent`: the
        journal's last entries."""
        self._recorded = {
            (type(entry.body), entry.body.number)
            for entry in recent
            if isinstance(entry.body, entries.CommandBegan | entries.CommandEnded)
        }
        self.typed.recover(journal, self._journal.seq)
        if self.last is not None and self.last.seq == self.shells.below:
            self.typed.nested_shell_waits()  # no command has begun in it
        self.exec = self.executions.unfinished(last_taken)
        if not self.typed.at_prompt:
            self._at.enter = self._loop.time()

    def start(self) -> None:
        if self._report_fifo >= 0:
            self._loop.add_reader(self._report_fifo, self.read_reports)
        if self.exec is not None:
            self._loop.call_later(BEGIN_WAIT_S, self._check_begun, self.exec)

    @property
    def last(self) -> CommandRecord | None:
        return self._records[-1] if self._records else None

    def recent(self, count: int, *, text_chars: int) -> tuple[CommandRecord, ...]:
        """The latest, each with the beginning of its text."""
        latest = self._records[-count:]
        return tuple(record.replace(text=record.text[:text_chars]) for record in latest)

    def check_can_run(self) -> None:
        """Raise unless the shell can take a command line now."""
        name = self._spec.name
        if not self._spec.shell:
            raise NoShellIntegration(
                f"the session runs {self._spec.argv[0]}, which does not report its commands",
                hint="type with `hold send` and look with `hold wait` and `hold screen`",
            )
        self.read_reports()  # what was reported and not yet read counts
        state = self._activity()
        if self.exec is not None:
            if self.exec.record.command in self.shells.numbers:
                raise self._program_reads(state)
            if self.exec.held_by and self.exec.record.command is None:
                raise GateHeld(
                    f"a command line before it waits for approval ({self.exec.held_by})",
                    hint=f"`hold keys {name} C-c` takes it back, if you may",
                )
            if state is SessionState.PROMPT and self.exec.record.command is not None:
                self._check_prompt_reported()
            self._check_exec_reads_nothing(state)
            raise SessionBusy(
                "another exec is running in this session",
                hint=f"wait for it: `hold wait {name} --for prompt`",
            )
        if state in (SessionState.INPUT, SessionState.SECRET):
            raise self._in_use(state)
        if state is not SessionState.PROMPT:
            raise SessionBusy(
                f"the session's shell is not at its prompt; the session is {state}",
                hint=f"wait for it: `hold wait {name} --for prompt`",
            )
        self._check_prompt_reported()
        if self.typed.prompt_may_have_text:
            shown = f": {self._prompt_text[:_SHOWN_CHARS]!r}" if self._prompt_text else ""
            raise TextAtPrompt(
                f"text typed at the prompt waits for its Enter{shown}",
                hint=f"finish it, or clear it with `hold keys {name} C-c`",
            )

    def _check_prompt_reported(self) -> None:
        """Raise if what looks like the shell's prompt is none that it reported: a line typed there
        would be read by something else, and nothing would be heard of it."""
        self.read_reports()  # a shell says that it asks for a line before it reads one
        name, last = self._spec.name, self.last
        look = f"type with `hold send {name} --enter LINE` and look with `hold screen {name}`"
        if program := self._replaced_by():
            raise NoShellIntegration(
                f"{program} took the place of the session's shell, and does not report its "
                "commands",
                hint=look,
            )
        if not self.typed.at_prompt and last is not None:
            raise self._builtin_reads(last)
        if not self._provenance.prompt_seen or self.is_silent:
            raise NoShellIntegration(
                "the shell waits for input at a prompt that it did not report",
                hint=f"an empty line shows whether it does: `hold keys {name} Enter`; else {look}",
            )

    def _builtin_reads(self, last: CommandRecord) -> TerminalInUse:
        name, text = self._spec.name, last.text[:_SHOWN_CHARS]
        return TerminalInUse(
            f"the shell still runs {text!r}, which reads the terminal",
            hint=f"a line for it: `hold send {name} --enter LINE`; `hold keys {name} C-c` ends "
            "most of them",
        )

    def _replaced_by(self) -> str:
        """The program that took the shell's place: by `exec`, typed or in a start-up file."""
        pid = self.shells.pid
        with contextlib.suppress(OSError):
            return procfs.stat_of(pid).name if is_replaced(pid) else ""
        return ""

    def _check_exec_reads_nothing(self, state: SessionState) -> None:
        """Raise if the command that runs waits for the terminal: whoever waits for its end instead
        of answering it may wait for ever."""
        if state not in (SessionState.INPUT, SessionState.SECRET):
            return
        if pty.foreground_program(self._master)[1] != self.shells.pid:
            raise self._in_use(state)
        name = self._spec.name
        wants = "a secret" if state is SessionState.SECRET else "a line"
        raise SessionBusy(
            f"another exec is running in this session, and waits for {wants}",
            hint=f"a line for it: `hold send {name} --enter LINE`; `hold keys {name} C-c` ends "
            "most of them",
        )

    def _in_use(self, state: SessionState) -> SessionBusy:
        """Which program it is, and what to do."""
        name, (_, pid) = self._spec.name, pty.foreground_program(self._master)
        if pid == self.shells.pid:
            if not self.typed.at_prompt and self.last is not None:
                return self._builtin_reads(self.last)
            return SessionBusy(
                "the session's shell reads a line without its line editor",
                hint=f"a line for it: `hold send {name} --enter LINE`; look with "
                f"`hold screen {name}`",
            )
        return self._program_reads(state)

    def _program_reads(self, state: SessionState) -> TerminalInUse:
        """The group's first process may be gone; a shell on another machine, or one that some other
        program started, reports nothing to us."""
        name, (program, pid) = self._spec.name, pty.foreground_program(self._master)
        wants = "a secret" if state is SessionState.SECRET else "input"
        reads = f"another program reads the terminal ({program}, pid {pid})" if program else ""
        hint = f"answer it or end it: `hold attach {name}`"
        if program in _LEAD_TO_A_SHELL and state is not SessionState.SECRET:
            hint = (
                f"a line for it: `hold send {name} --enter LINE`; `hold keys {name} C-d` leaves "
                "it, and the session's own shell takes commands again"
            )
        return TerminalInUse(
            f"{reads or 'another program reads the terminal'}, and waits for {wants}", hint=hint
        )

    def read_reports(self) -> None:
        """Take up what the shell has reported, if the session has one that does."""
        if self._report_fifo < 0 or self.typed.reports_in_hand:
            return  # that is what is being done
        data, unread = self._look_into_fifo()
        if not data:
            return
        self.typed.reports_in_hand = len(data)
        try:
            self._take_up(self._reader.feed(data), unread)
        finally:
            # Only now: what they mean is kept, so a daemon killed before loses none of them.
            report_fifo.take_out(self._report_fifo, len(data))
            self.typed.reports_in_hand = 0

    def _take_up(self, reports: list[Report], unread: int | None) -> None:
        # The shell wrote its output before it reported: take that first. But when we are late, what
        # began may have printed already: what is taken now is counted as its own.
        before = self._ring.head
        self._drain_output()
        for index, report in enumerate(reports):
            self._on_report(report, before, _later(unread, reports[index + 1 :]))
            before = self._ring.head

    def _look_into_fifo(self) -> tuple[bytes, int | None]:
        """All that is reported, and the bytes that nobody had read before the last look for more:
        so whatever was read by then and is reported, is reported here."""
        data, unread = report_fifo.look(self._report_fifo), None
        for _ in range(_FIFO_LOOKS if data else 0):
            unread, seen = self.typed.unread(), len(data)
            data = report_fifo.look(self._report_fifo)
            if len(data) == seen:
                break
        return data, unread

    def _on_report(self, report: Report, before: int, later: ReportContext) -> None:
        at, head = time.time(), self._ring.head
        self._at.heard = self._loop.time()
        if isinstance(report, ShellBelow):
            self.shells.began(report)
            self._provenance.shells_are(self.shells.numbers)
            self._save()
            return
        if isinstance(report, PromptShown | LineShown):
            self._at.prompt = self._at.heard
        if isinstance(report, PromptShown) and (later.unread or not self._inputs.is_empty):
            self.enter_typed()  # typed ahead of the prompt, and perhaps with an Enter
            self._at.enter = self._loop.time()
        elif isinstance(report, CommandBegin | PromptShown):
            self._answered()
        if isinstance(report, CommandBegin | PromptShown):
            self.lines_begun += 1
            self._lines_due = 0  # what was asked before is answered, or never will be
        if isinstance(report, CommandBegin):
            self._began(report, at, before, self.typed.began(later))
        elif isinstance(report, CommandEnd):
            self._runs("")
            self.typed.ended()
            if self.shells.ended(report.seq):
                self._provenance.shells_are(self.shells.numbers)
            for index, record in enumerate(self._records):
                if record.seq == report.seq and record.status is None:
                    self._records[index] = record.replace(
                        status=report.status, ended_at=at, ended_offset=head
                    )
                    ended = entries.CommandEnded(report.seq, report.status, report.cwd, head)
                    self._record_once(HOST_ACTOR, ended)
        elif isinstance(report, PromptShown):
            self._runs("")
            self.typed.prompted(later, report.seq)
            self._provenance.prompted(report.seq)
        elif isinstance(report, LineShown):
            self._provenance.look()  # asked for the line, the shell writes its whole state
            if self._lines_due:
                self._lines_due -= 1
            elif self._line is not None and not self._line.done():
                self._line.set_result(report)
            elif self._line is not None and self._line.result() != report:
                self._line_disputed = True
            return
        execution = self.exec
        if execution is not None:
            self._tell_exec(execution, report, head)
        self._save()
        if execution is not None:
            execution.wake()
        self._changed()

    def _tell_exec(self, execution: Execution, report: Report, head: int) -> None:
        """What a report means for the command line that somebody waits for. Of one that an earlier
        daemon left, a report may have died with that daemon: the next one tells as much."""
        command, restored = execution.record.command, execution.restored
        if isinstance(report, CommandBegin) and command is None:
            execution.begins(report.seq, self._journal.seq, parsed=report.parsed)
        elif isinstance(report, CommandEnd) and (
            command == report.seq or (command is None and restored)
        ):
            if command is None:
                execution.begins(report.seq, 0)
            self._end_exec(execution, report.status, report.cwd, head)
            if not execution.record.parsed and self.shells.kind == "fish":
                self._type_as_host(CLEAR_LINE)
                self.typed.cleared()
        elif isinstance(report, PromptShown) and (
            command is None
            or (restored and report.seq > command and command not in self.shells.numbers)
        ):
            # Back at the prompt and nothing began: the shell took the line for no command.
            self._end_exec(execution, report.status, report.cwd, head)

    def _end_exec(self, execution: Execution, status: int, cwd: str, head: int) -> None:
        self.exec = None
        execution.ends(status, cwd, head)

    def _began(self, report: CommandBegin, at: float, head: int, line: TypedLine) -> None:
        """Whoever typed last of its line pressed Enter; whoever typed of it had a part in it."""
        authors, name = tuple(line.authors), self._name
        by = authors[-1] if authors else HOST_ACTOR
        text = TYPED_BLIND if line.blind else report.text
        began = entries.CommandBegan(report.seq, text, report.cwd, head, authors)
        whole = report.text if report.text_known else None
        self._record_once(by, self._provenance.began(began, by, at, whole, blind=line.blind))
        self._runs(by)
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
        del self._records[:-COMMANDS_REMEMBERED]

    def _record_once(self, by: str, body: entries.CommandBegan | entries.CommandEnded) -> None:
        """A daemon that was killed may have recorded a report that it did not take out."""
        if (type(body), body.number) not in self._recorded:
            self._journal.happened(by, body)

    async def read_prompt_line(self) -> str | None:
        """The text at the prompt without its Enter, as the shell's line editor has it; "" also
        while a command runs, None when the shell does not say, or cannot be asked."""
        if not self._spec.shell:
            return ""
        await self._settled()  # for a moment after an Enter a shell is at no prompt
        if self._line is None:  # else the shell is being asked, and at work on its answer
            if self._activity() is not SessionState.PROMPT:
                return None if self.typed.at_prompt else ""
            self.read_reports()  # a shell says that it asks for a line before it reads one
            if not self.typed.at_prompt:
                return ""  # `read -e` looks like a prompt, and so does a shell put in its place
            if (
                not self._provenance.prompt_seen
                or self._replaced_by()
                or not may_probe(self.typed.last.data[-_PROBE_CONTEXT_BYTES:])
            ):
                return None
            self._line, self._at.asked = self._loop.create_future(), self.typed.last.at
            self._type_as_host(LINE_PROBE)
        asked, asked_at = self._line, self._at.asked
        try:
            shown = await asyncio.wait_for(asyncio.shield(asked), _LINE_WAIT_S)
            text = shown.text if shown.text_known else None
            if text is not None and self.typed.last.at == asked_at:
                self.typed.prompt_told(bool(text))
            self._prompt_text = text or ""
            return text
        except TimeoutError:
            if self._line is asked:
                self._lines_due += 1
            return None
        finally:
            if self._line is asked:
                self._line = None

    async def line_at_gate(self, *, paste: bool) -> LineShown | None:
        """The same for a line that is about to be entered, or to get a paste: the shell is known to
        wait for keys, and nobody else types. None: it does not say. An answer to an earlier
        question is no answer to this one; two different ones are none either, since whoever knows
        the nonce can write to the FIFO what the shell did not say."""
        while self._line is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._line), _LINE_WAIT_S)
            await asyncio.sleep(0)  # whoever asked takes it
        if not self._spec.gate_keys or not may_probe(self.typed.last.data[-_PROBE_CONTEXT_BYTES:]):
            return None
        self._line = asked = self._loop.create_future()
        self._line_disputed = False
        self._at.asked = self.typed.last.at
        self._type_as_host(PASTE_PROBE if paste else GATE_PROBE)
        until = self._loop.time() + GATE_LINE_WAIT_S
        try:
            shown = await asyncio.wait_for(asyncio.shield(asked), GATE_LINE_WAIT_S)
            while self.typed.unread() or self._activity() is SessionState.WORKING:
                if self._loop.time() > until:
                    return None
                await asyncio.sleep(_READS_ON_S)
            self.read_reports()  # a shell that waits for keys again has answered
            return None if self._line_disputed else shown
        except TimeoutError:
            self._lines_due += 1
            return None
        finally:
            self._line = None

    def clear_refused(self, *, continued: bool, known: bool) -> None:
        """A line was refused. Without a signal, if the shell can: a signal runs its traps."""
        # fish has all lines in its editor; and ^C is no key to it while it is busy.
        whole = not continued or self.shells.kind == "fish"
        private = self._spec.gate_keys and known and whole
        self._type_as_host(CLEAR_LINE if private else _CLEAR_LINE)
        self.typed.cleared()
        if not private:
            # A signal makes the terminal forget what is typed until the shell has taken it: whoever
            # wants to run a line asks the shell first, when it has said that it is at its prompt.
            self.enter_typed()
            self.typed.prompt_text_unknown = True

    async def after_prompt_check(
        self, actor: str, operator: OperatorId, seq: int, then: Callable[[], object]
    ) -> None:
        """Do this after the shell was asked whether there is text at its prompt; `seq`: as the
        operator's input of this number."""
        if self.may_ask(actor) and await self.read_prompt_line() is not None:
            until = self._loop.time() + _LINE_WAIT_S  # it answers before it reads on
            while self._activity() is SessionState.WORKING and self._loop.time() < until:
                await asyncio.sleep(_READS_ON_S)
        if self._inputs.is_behind(operator, seq):
            raise SessionBusy("an input sent after this command line was typed before it")
        then()

    def look_at_shell(self, actor: str, data: bytes) -> ShellSight:
        """Before an input is recorded: what the shell reported and read until now. A line editor
        reads keys, not lines, and it begins after the shell has reported its prompt: with that
        report read, this key is typed at that prompt. In line mode a key waits for its Enter."""
        modes = pty.local_modes(self._master)
        if self._report_fifo < 0 or actor == HOST_ACTOR:
            return ShellSight(modes)
        if not pty.reads_lines(modes) and output_ring.unread(self._report_fifo):
            self.read_reports()
            modes = pty.local_modes(self._master)
        return ShellSight(modes, self.typed.is_ahead(data))

    def before_typing(self, actor: str, sight: ShellSight) -> None:
        self.typed.before_typing(actor, sight)

    def after_typing(self, actor: str, data: bytes, sight: ShellSight, blind: bool) -> None:
        self.typed.after_typing(actor, data, sight, blind)
        if actor != HOST_ACTOR and walks_history(data, suggests=self.shells.kind == "fish"):
            self.walked_history = True
        self._provenance.typed(actor, running=not self.typed.at_prompt)
        self._at.typed = self._loop.time()
        if actor != HOST_ACTOR and (b"\r" in data or b"\n" in data):
            self._at.enter = self._at.typed
            self.enter_typed()

    def enter_typed(self) -> None:
        """An Enter was typed: the shell looks as if it were at its prompt until it has read it, and
        what is typed meanwhile is read by the program that it then starts. One that is typed while
        a command runs is that command's."""
        if self.typed.at_prompt:
            self._at.entered = self._loop.time()
            if self._reported is None:
                self._reported = self._loop.create_future()

    def _answered(self) -> None:
        reported, self._reported = self._reported, None
        if reported is not None:
            reported.set_result(None)

    @property
    def is_silent(self) -> bool:
        """Whether the shell waits at a prompt that it did not report: its hooks are gone, another
        shell took its place, or it wants the rest of a command line."""
        if not self._spec.shell or self._at.enter <= self._at.prompt:
            return False
        since = (self._at.enter, self._at.heard)
        if since == self._found_silent:
            return True  # a resize wakes it for a moment, and it reports no more for that
        quiet = self._loop.time() - max(self._at.enter, self._at.typed, self._at.heard)
        if quiet < BEGIN_WAIT_S or self._unread() or self._activity() is not SessionState.PROMPT:
            return False
        self._found_silent = since
        return True

    def _unread(self) -> bool:
        """Whether something was typed that the shell has not read."""
        return not self._inputs.is_empty or bool(self.typed.unread())

    async def _settled(self) -> None:
        """Until the shell has said what it made of the last Enter; one that says nothing for so
        long wants the rest of a command line."""
        left = self._at.entered + BEGIN_WAIT_S - self._loop.time()
        if left > 0 and self._reported is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._reported), left)

    def exec_begins(self, execution: Execution) -> None:
        """A command line was typed for `exec`. A shell that asks for more of it has not begun."""
        self.exec = execution
        self.executions.typed()
        self._loop.call_later(BEGIN_WAIT_S, self._check_begun, execution)

    def _check_begun(self, execution: Execution) -> None:
        """Whether the shell has read the line and waits for more of it."""
        if self.exec is not execution:
            return
        # In this order: before a shell has read its Enter it looks as if it asked for more; and
        # one that is back at its prompt has reported before what it ran.
        waits = not self._unread() and self._activity() is SessionState.PROMPT
        self.read_reports()
        if self.exec is not execution:
            return
        if execution.record.command is not None and not execution.restored:
            self._check_replaced(execution, BEGIN_WAIT_S)
        elif not waits:
            self._loop.call_later(BEGIN_WAIT_S, self._check_begun, execution)
        elif execution.restored:
            why = InputUnknown(
                "the line was typed before the daemon was replaced, and the shell has not said "
                "what became of it",
                hint="look at the screen before you run it again",
            )
            self._give_up(execution, why)
        else:
            self._spawn(self._ask_what_waits(execution))

    async def _ask_what_waits(self, execution: Execution) -> None:
        """The shell waits at a prompt and has not said that the line began. It is refused only if
        it is still in the line editor; else it may have run, and the report of it is lost."""
        text: str | None = None
        for _ in range(_PENDING_TRIES):
            text = await self.read_prompt_line()
            if self.exec is not execution or execution.record.command is not None:
                return
            if text is not None:
                break
        if text and text.strip().startswith(execution.begins_with):
            self.clear_refused(continued=True, known=True)
            why: HoldfastError = InvalidArgument(
                "the shell waits for the rest of the command line: it is not complete",
                hint="close its quotes, brackets and blocks; the line was cleared",
            )
        else:
            why = InputUnknown(
                "the shell read the line, is at a prompt again, and has not said what became of it",
                hint="it may have run: look at the screen before you run it again",
            )
        self._give_up(execution, why)

    def _check_replaced(self, execution: Execution, waited_s: float) -> None:
        """Whether the command put another shell in the place of the one that would report its end;
        asked less and less often."""
        if self.exec is not execution:
            return
        if self._activity() is SessionState.PROMPT and (program := self._replaced_by()):
            why = InputUnknown(
                f"the command put {program} in the place of the session's shell: its end will not "
                "be reported",
                hint=f"look with `hold screen {self._spec.name}`; type with `hold send`",
            )
            self._give_up(execution, why)
        elif self._is_prompt_shown_again(execution):
            why = InputUnknown(
                "the shell is at its prompt again and has not reported the command's end: the "
                "command may have removed what reports it (PROMPT_COMMAND, precmd_functions)",
                hint=f"look with `hold screen {self._spec.name}`; type with `hold send`",
            )
            self._give_up(execution, why)
        else:
            wait_s = min(2 * waited_s, _REPLACED_CHECK_MAX_S)
            self._loop.call_later(wait_s, self._check_replaced, execution, wait_s)

    def _is_prompt_shown_again(self, execution: Execution) -> bool:
        """By the mark at the end of the shell's prompt: `read -e` looks like the prompt, and has
        none. A command can print one and look so, too; of that one it is said that its end is not
        known, and no more."""
        command = execution.record.command
        if command is None or self._activity() is not SessionState.PROMPT:
            return False
        self._drain_output()
        self.read_reports()
        if self.exec is not execution:
            return False
        start = max(execution.record.offset, self._ring.head - _PROMPT_BYTES, self._ring.tail)
        shown = b"".join(self._ring.read(start, self._ring.head))
        begun = [found.end() for found in command_output.mark(BEGIN, command).finditer(shown)]
        if not begun and start <= execution.record.offset:
            return False
        prompt = command_output.mark(_PROMPT_END, command)
        return prompt.search(shown, begun[-1] if begun else 0) is not None

    def exec_held(self, operator: OperatorId, seq: int, approval: str) -> None:
        """Whoever waits for the command line of this input hears that it waits for approval."""
        execution = self.exec
        if execution is not None and execution.is_input(operator, seq):
            execution.held_by = approval
            execution.wake()

    def input_refused(self, operator: OperatorId, seq: int, why: HoldfastError) -> None:
        """Whoever waits for the command line of this input hears that it was not run."""
        execution = self.exec
        if execution is not None and execution.is_input(operator, seq):
            self._give_up(execution, why)

    def _give_up(self, execution: Execution, why: HoldfastError) -> None:
        self.exec = None
        execution.fails(why)
        self._save()
        execution.wake()

    def session_ended(self, ending: Ending) -> None:
        """The output is drained. A command line that ended its shell (`exit 3`) has that shell's
        status; of one that was cut off it is said, behind what it printed."""
        if self._report_fifo >= 0:
            self.read_reports()
        execution = self.exec
        if execution is None:
            return
        if execution.record.command is None:
            why: HoldfastError = InputUnknown(
                f"the session ended before its shell reported the command line: {ending}",
                hint="it may have run: look at what it should have done",
            )
            execution.fails(why)
        elif ending.code is not None:
            execution.ends_with_session(ending.code, self._ring.head)
        else:
            how = "ended while the command ran"
            execution.fails(session_over("the session", ending, how=how), self._ring.head)
        execution.wake()
        self.exec = None

    def close(self) -> None:
        self.exec = None  # another daemon, or nobody, follows it from here
        if self._report_fifo >= 0:
            self._loop.remove_reader(self._report_fifo)
            with contextlib.suppress(OSError):
                os.close(self._report_fifo)


def _later(unread: int | None, reports: list[Report]) -> ReportContext:
    """With these reports, behind the one that is taken up."""
    asked = [report for report in reports if isinstance(report, CommandBegin | PromptShown)]
    begun = sum(isinstance(report, CommandBegin) for report in asked)
    return ReportContext(unread, begun, bool(asked) and isinstance(asked[-1], PromptShown))
