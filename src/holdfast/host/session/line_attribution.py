"""Whose the line is that the session's shell reads: core.typed_lines, fed with what is typed and
with what the terminal says. What an earlier daemon saw typed is in the journal (typed_before.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from holdfast.adapters import pty
from holdfast.adapters.session_memory import output_ring
from holdfast.core.line_authors import TypedLines
from holdfast.host.session.typed_before import INTERRUPTS, after_interrupt, typed_before
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.state import SessionState

if TYPE_CHECKING:
    from holdfast.core.line_authors import TypedLine
    from holdfast.host.session.live_session import LiveSession

# A shell that read a whole line has said by then what it made of it, or wants more of it.
BEGIN_WAIT_S = 1.0


class ReportContext(NamedTuple):
    """What is known of the time between a report and when it is taken up."""

    unread: int | None  # bytes that nobody had read at the end of it
    begun: int  # commands that began in it
    prompted: bool  # and whether, after the last of these, the shell asked for another line


class ShellSight(NamedTuple):
    """How the shell reads what is typed next."""

    hidden: bool  # in line mode, not by its line editor
    ahead: bool  # not at a prompt: it comes to it later


_NOT_LOOKED = ShellSight(False, False)


class LineAttribution:
    """What was typed into one session."""

    def __init__(self, live: LiveSession, *, running: bool) -> None:
        """`running`: a command, as far as the parcel says."""
        self._live = live
        self._loop = asyncio.get_running_loop()
        self._lines = TypedLines()
        self._running = running  # a command has begun and not ended
        self._prompted_at = 0.0
        self.prompt_text_unknown = False  # only the shell knows whether its prompt has text

    def recover(self) -> None:
        """What an earlier daemon saw typed is in the journal."""
        live, custody = self._live, self._live.custody
        before = typed_before(live, self.unread(), running=self._running)
        self._lines, self._running = before.lines, before.running
        self.prompt_text_unknown = before.in_doubt
        custody.last_actor, custody.last_input_at = before.last_by, before.last_at
        custody.last_bytes = before.last_data

    def unread(self) -> int | None:
        """Bytes typed that nobody has read; None when the terminal is gone."""
        unread = pty.unread_input(self._live.fds.master)
        return None if unread is None else unread + self._live.custody.ledger.untyped

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
        return self._live.core.turn.blind or self._lines.blind

    def authors(self) -> tuple[str, ...]:
        """Who typed it, the latest last."""
        return self._lines.authors()

    def told(self, stands: bool) -> None:
        """The shell said whether there is any."""
        if self.prompt_text_unknown and not stands:
            self._lines.clear()
        self.prompt_text_unknown = False

    def cleared(self) -> None:
        """The host took it away."""
        self._lines.clear()

    # -- typing -----------------------------------------------------------------------------------

    def look_at_shell(self, actor: str, data: bytes) -> ShellSight:
        """Before an input is recorded: what the shell reported and read until now. A line editor
        reads keys, not lines, and it begins after the shell has said so: heard first, this key is
        typed at that prompt. In line mode a key stands until its Enter is typed."""
        live, lines = self._live, self._lines
        if not live.spec.shell or actor == HOST_ACTOR:
            return _NOT_LOOKED
        hidden = pty.reads_lines(live.fds.master)
        if not hidden and output_ring.unread(live.fds.bell):
            live.commands.read_reports()
        if not self._running and (lines.past is not None or lines.is_ahead):
            self._settle()
        ahead = self._running or lines.is_ahead
        if ahead and (b"\r" in data or b"\n" in data):
            self._look_who_read()
        return ShellSight(hidden, ahead)

    def attribute(self, actor: str, data: bytes, sight: ShellSight, *, blind: bool) -> None:
        """An input is recorded and about to be taken. What the shell starts from here on is its
        actor's, unless it is typed ahead: then from when the shell comes to it."""
        live, lines = self._live, self._lines
        if not live.spec.shell:
            if actor != HOST_ACTOR:
                live.halts.move_shell_to_leaf(actor)
            return
        if actor == HOST_ACTOR:
            lines.typed(actor, data)
            return
        if not INTERRUPTS.isdisjoint(data) and pty.forgets_on_signals(live.fds.master):
            lines.interrupted()
            data = after_interrupt(data)
        lines.typed(actor, data, blind=blind, hidden=sight.hidden)
        if not sight.ahead:
            live.halts.move_shell_to_leaf(actor)

    def _look_who_read(self) -> None:
        """What was read while a command runs, that command read."""
        unread = self.unread()
        if self._running and not output_ring.unread(self._live.fds.bell):
            self._lines.program_read(unread)

    def _settle(self) -> None:
        """A shell that read a whole line says what it made of it before it waits for keys again:
        if it waits and has said nothing, what was read before the prompt was a program's."""
        waited = self._loop.time() - self._prompted_at > BEGIN_WAIT_S
        waits = waited or self._live.state() is SessionState.PROMPT
        if waits and not output_ring.unread(self._live.fds.bell):
            self._lines.settled(self.unread())

    # -- what the shell reports -------------------------------------------------------------------

    def prompted(self, later: ReportContext) -> None:
        """A prompt."""
        self._running, self._prompted_at = False, self._loop.time()
        self._lines.prompted(later.unread, later.begun + later.prompted)
        if self._lines.past is not None:
            self._settle()
        self.prompt_text_unknown = self._lines.waits
        if by := self._lines.next_author():
            self._enter_leaf_of(by)

    def began(self, later: ReportContext) -> TypedLine:
        """A command, and the line that it is. One of which nothing is known is of whoever typed
        last; and blind, while the turn is."""
        self._running = True
        line = self._lines.began(later.unread, later.begun, prompted_since=later.prompted)
        if not line.authors:
            line.by(self._live.custody.last_actor)
        line.blind |= self._live.core.turn.blind
        if line.authors:
            self._enter_leaf_of(
                line.authors[-1]
            )  # as at its prompt, should that have been too late
        return line

    def ended(self) -> None:
        """The command."""
        self._running = False

    def _enter_leaf_of(self, actor: str) -> None:
        """The shell comes to this actor's line. One that is halted was halted after it typed that;
        the shell does not follow it there."""
        if actor not in self._live.core.halted_actors:
            self._live.halts.move_shell_to_leaf(actor)
