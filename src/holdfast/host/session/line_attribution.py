"""Who typed the line that the session's shell reads: core.line_authors, fed with what is typed and
with what the terminal says.

What an earlier daemon saw typed is read from the end of the journal, where every input has its
actor, so that no key costs another write: the latest entries, back to the last end of a command, at
most JOURNAL_TYPED_ENTRIES. Where they do not say, the worse is assumed: there may be text at the
prompt, and it was typed blind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.adapters import pty
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.session_memory import output_ring
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.core.line_authors import TypedLine, TypedLines
from holdfast.core.turn.machine import TurnMachine
from holdfast.host.clock import now
from holdfast.host.session.halt_control import HaltControl
from holdfast.journal import entries
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.limits import JOURNAL_TAIL_ENTRIES, JOURNAL_TYPED_ENTRIES
from holdfast.model.state import SessionState

_INTERRUPTS = frozenset(b"\x03\x1a\x1c")  # ^C, ^Z and ^\: by default keys for signals
_UNKNOWN_KEYS = b"\x1b"  # as after half a key: nothing is asked of the shell then
# A shell that read a whole line has said by then what it made of it, or wants more of it.
BEGIN_WAIT_S = 1.0


class ReportContext(NamedTuple):
    """What is known of the time between a report and when it is taken up."""

    unread: int | None  # bytes that nobody had read at the end of it
    begun: int  # commands that began in it
    prompted: bool  # and whether, after the last of these, the shell asked for another line


class ShellSight(NamedTuple):
    """How the shell reads what is typed next."""

    modes: int  # of the terminal (pty.local_modes)
    ahead: bool = False  # not at a prompt: it comes to it later


class LastInput(NamedTuple):
    """The last input that an actor gave."""

    actor: str = HOST_ACTOR
    at: float = 0.0
    data: bytes = b""


class LineAttribution:
    """What was typed into one session."""

    def __init__(
        self,
        master: int,
        report_fifo: int,
        ledger: InputLedger,
        turn: TurnMachine,
        leaves: HaltControl,
        activity: Callable[[], SessionState],
        *,
        running: bool,
    ) -> None:
        """`report_fifo`: -1 if the session's program reports no commands. `running`: a command, as
        far as the parcel says."""
        self._master, self._report_fifo, self._ledger = master, report_fifo, ledger
        self._turn, self._leaves, self._activity = turn, leaves, activity
        self.last = LastInput()
        self._loop = asyncio.get_running_loop()
        self._lines = TypedLines()
        self._running = running  # a command has begun and not ended
        self._prompted_at = 0.0
        self.prompt_text_unknown = False  # only the shell knows whether its prompt has text
        self.reports_in_hand = 0  # bytes of the FIFO that are being taken up, and are still in it

    def recover(self, journal: str, seq: int) -> None:
        """What an earlier daemon saw typed, from the journal of this directory, up to `seq`."""
        if self._report_fifo < 0 or not self._ledger.operators():  # nobody has typed yet
            return
        before = typed_before(journal, seq, self.unread(), running=self._running)
        self._lines, self._running, self.last = before.lines, before.running, before.last
        self.prompt_text_unknown = before.in_doubt

    def unread(self) -> int | None:
        """Bytes typed that nobody has read; None when the terminal is gone."""
        unread = pty.unread_input(self._master)
        return None if unread is None else unread + self._ledger.untyped

    # -- what may stand at the prompt -------------------------------------------------------------

    @property
    def prompt_may_have_text(self) -> bool:
        """Whether text may stand at the prompt that is nobody's command yet."""
        return self._lines.waits or self.prompt_text_unknown

    @property
    def at_prompt(self) -> bool:
        """Whether the shell reported no command that still runs."""
        return not self._running

    @property
    def blind(self) -> bool:
        """Whether it was, at least in part, typed blind."""
        return self._turn.blind or self._lines.blind

    def authors(self) -> tuple[str, ...]:
        """Who typed it, the latest last."""
        return self._lines.authors()

    @property
    def typed_in_line(self) -> int:
        """Bytes of the line that has no Enter yet."""
        return self._lines.open_bytes

    def prompt_told(self, has_text: bool) -> None:
        """The shell said whether there is any."""
        if self.prompt_text_unknown and not has_text:
            self._lines.clear()
        self.prompt_text_unknown = False

    def cleared(self) -> None:
        """The host took it away."""
        self._lines.clear()

    # -- typing -----------------------------------------------------------------------------------

    def is_ahead(self, data: bytes) -> bool:
        """Before an input is recorded, with all reports read: whether the shell reads it later,
        not at its prompt."""
        lines = self._lines
        if not self._running and (lines.past is not None or lines.is_ahead):
            self._settle()
        ahead = self._running or lines.is_ahead
        if ahead and (b"\r" in data or b"\n" in data):
            self._look_who_read()
        return ahead

    def before_typing(self, actor: str, sight: ShellSight) -> None:
        """An input is recorded and about to be taken. What the shell starts from here on is its
        actor's, unless it is typed ahead: then from when the shell comes to it."""
        if actor != HOST_ACTOR and not sight.ahead:
            authors = self._lines.next_authors()
            self._leaves.move_shell_to_leaf(actor, _others(authors, actor) if authors else ())

    def after_typing(self, actor: str, data: bytes, sight: ShellSight, blind: bool) -> None:
        """It was taken, and no report was read since."""
        lines = self._lines
        if actor == HOST_ACTOR:
            if self._report_fifo >= 0:
                lines.typed(actor, data)
            return
        self.last = LastInput(actor, now(), data)
        if self._report_fifo < 0:
            return
        if not _INTERRUPTS.isdisjoint(data) and pty.forgets_on_signals(sight.modes):
            lines.interrupted()
            data = after_interrupt(data)
        lines.typed(actor, data, blind=blind, hidden=pty.reads_lines(sight.modes))

    def _reports_wait(self) -> bool:
        return output_ring.unread(self._report_fifo) > self.reports_in_hand

    def _look_who_read(self) -> None:
        """What was read while a command runs, that command read."""
        unread = self.unread()
        if self._running and not self._reports_wait():
            self._lines.program_read(unread)

    def _settle(self) -> None:
        """A shell that read a whole line says what it made of it before it waits for keys again:
        if it waits and has said nothing, what was read before the prompt was a program's."""
        waited = self._loop.time() - self._prompted_at > BEGIN_WAIT_S
        waits = waited or self._activity() is SessionState.PROMPT
        if waits and not self._reports_wait():
            self._lines.settled(self.unread())

    # -- what the shell reports -------------------------------------------------------------------

    def prompted(self, later: ReportContext, coming: int) -> None:
        """A prompt; `coming` is the number of the next command."""
        ahead = bool(later.begun or later.prompted or later.unread)
        self._leaves.leaves.prompted(coming, typed_ahead=ahead)
        self._running, self._prompted_at = False, self._loop.time()
        self._lines.prompted(later.unread, later.begun + later.prompted)
        if self._lines.past is not None:
            self._settle()
        self.prompt_text_unknown = self._lines.waits
        if authors := self._lines.next_authors():
            self._leaves.follow_to_leaf(authors[-1], _others(authors, authors[-1]))

    def began(self, later: ReportContext) -> TypedLine:
        """A command, and the line that it is. One of which nothing is known is of whoever typed
        last; and blind, while the turn is."""
        self._running = True
        line = self._lines.began(later.unread, later.begun, prompted_since=later.prompted)
        if not line.authors:
            line.by(self.last.actor)
        line.blind |= self._turn.blind
        if line.authors:  # as at its prompt, should that have been too late
            others = _others(line.authors, line.authors[-1])
            self._leaves.follow_to_leaf(line.authors[-1], others, running=True)
        self._leaves.leaves.began()
        return line

    def nested_shell_waits(self) -> None:
        """The command that runs is a shell that reports, and is at its first prompt: by what an
        earlier daemon left."""
        self._running, self.prompt_text_unknown = False, True

    def ended(self) -> None:
        """The command."""
        self._running = False


class TypedBefore:
    """What the journal says of what was typed."""

    def __init__(self, *, running: bool = False) -> None:
        self.lines = TypedLines()
        self.in_doubt = False  # something may stand at the prompt, only the shell knows
        self.running = running  # a command has begun and not ended
        self.last = LastInput()

    def replay(self, found: list[entries.Entry]) -> None:
        """These entries, in order."""
        voided = {
            (entry.body.operator, entry.body.last_seq)
            for entry in found
            if isinstance(entry.body, entries.Voided)
        }
        for entry in found:
            match entry.body:
                case entries.InputEntry() | entries.BlindInput() as body:
                    if (body.operator, body.last_seq) not in voided:
                        self._typed(entry, body)
                case entries.CommandBegan():
                    self.running = True
                    self.lines.submitted()
                case entries.CommandEnded():
                    self.running, self.last = False, self.last._replace(data=b"")

    def _typed(self, entry: entries.Entry, body: entries.InputEntry | entries.BlindInput) -> None:
        data = body.data if isinstance(body, entries.InputEntry) else None
        if entry.actor != HOST_ACTOR:
            self.last = LastInput(entry.actor, entry.at, _UNKNOWN_KEYS if data is None else data)
        if isinstance(body, entries.BlindInput):
            self.lines.typed_unseen(entry.actor, body.size)
        else:
            rest = after_interrupt(body.data)
            if rest != body.data:
                self.lines.interrupted()
            self.lines.typed(entry.actor, rest)

    def nothing_known(self) -> None:
        """The entries do not reach back to the end of a command."""
        self.lines.past = TypedLine(blind=True)


def after_interrupt(data: bytes) -> bytes:
    """What follows the last key for a signal; all of it when there is none."""
    cut = max((at + 1 for at, byte in enumerate(data) if byte in _INTERRUPTS), default=0)
    return data[cut:]


def _others(authors: Sequence[str], actor: str) -> tuple[str, ...]:
    if actor in authors and len(authors) == 1:
        return ()
    return tuple(each for each in authors if each != actor)


def typed_before(journal: str, seq: int, unread: int | None, *, running: bool) -> TypedBefore:
    """Of a session that is carried on; `unread`: the bytes that nobody has read now. `running`: a
    command, if the journal does not say."""
    before = TypedBefore(running=running)
    found: list[entries.Entry] = []
    for count in (JOURNAL_TAIL_ENTRIES, JOURNAL_TYPED_ENTRIES):
        found = _latest(journal, seq, count)
        if any(isinstance(entry.body, entries.CommandEnded) for entry in found):
            break
    before.replay(found)
    whole = any(
        isinstance(entry.body, entries.CommandEnded)
        or (isinstance(entry.body, entries.Began) and not entry.body.predecessor)
        for entry in found
    )
    if not before.running:
        before.lines.left(unread)
    if not whole:
        before.nothing_known()
    before.in_doubt = before.lines.waits or before.lines.past is not None
    return before


def _latest(journal: str, seq: int, count: int) -> list[entries.Entry]:
    try:
        return list(JournalReader(journal).entries(max(1, seq - count + 1), seq))
    except HoldfastError:  # whoever writes the journal next will report it
        return []
