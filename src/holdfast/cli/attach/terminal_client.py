"""An operator at a terminal: `hold attach`.

The session's bytes go to the operator's terminal as they are; the operator's keys go to the session
as numbered inputs. When the daemon is replaced, or the connection is lost, the client comes back by
itself: output continues at the next offset, and inputs the host had not taken are sent again under
their old numbers, so nothing is lost or typed twice.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from holdfast.cli.attach.native_loop import KeyLoop
from holdfast.cli.attach.predicted_typing import ASK_AGAIN_S, AUTO, NEVER, PredictedTyping
from holdfast.cli.attach.prefix_keys import (
    HELP,
    PREFIX,
    SWITCHES,
    UNKNOWN,
    PrefixCommand,
    PrefixKeys,
    key_name,
    one_by_one,
)
from holdfast.cli.attach.raw_terminal import RawTerminal, signals_as_bytes, terminal_size, write_all
from holdfast.cli.attach.session_chooser import SessionChooser, beside
from holdfast.cli.attach.status_line import SHOWN_S, StatusLine
from holdfast.cli.attach.turn_prompts import NEWS_S, TurnPrompts
from holdfast.cli.text.approval import approval_news
from holdfast.cli.text.progress import progress_line, progress_text
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import counted
from holdfast.model.errors import (
    Fenced,
    GateHeld,
    GateRefused,
    HostLost,
    InvalidArgument,
    NoSuchSession,
    SessionElsewhere,
    SessionEnded,
    SessionHalted,
    SessionLost,
    TurnHeld,
)
from holdfast.model.size import Size
from holdfast.model.state import Ending, SessionState
from holdfast.sdk.client_core.client_machine import expect, finish, reconnect
from holdfast.sdk.client_core.retry_policy import ATTACH, RECONNECTABLE
from holdfast.sdk.client_core.unacked_inputs import UnackedInputs
from holdfast.sdk.connection import Connection, new_operator, target_host
from holdfast.wire.frames import quiet_input
from holdfast.wire.messages import session as m
from holdfast.wire.messages.checkpoints import ProgressEvent
from holdfast.wire.messages.gate_approvals import ApprovalMessage
from holdfast.wire.terminal_queries import strip_queries

_READ_BYTES = 16 << 10
_WINDOW_BYTES = 64 << 10  # keys sent and not yet taken; beyond it we stop reading the keyboard
_SAY_AFTER_S = 1.0  # a reconnect shorter than this needs no words
_ALONE = "no other terminal is attached"
_ARRIVES_S = 10.0  # a session that moved is at its new host by then


class AttachDetached(Exception):
    """The operator leaves; the session stays."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.why = why


class AttachSwitched(Exception):
    """The operator goes to another session, of this id, and has typed these keys for it."""

    def __init__(self, session: str, keys: bytes) -> None:
        super().__init__(session)
        self.session, self.keys = session, keys


class AttachEnded(Exception):
    """The session ended while we were attached."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(str(ending))
        self.ending = ending


class TerminalClient:
    """State of one attachment: what was shown, what was typed and not yet taken."""

    def __init__(
        self,
        session: str,
        observe: bool,
        predict: str = AUTO,
        prefix: int = PREFIX,
        *,
        scrollback: bool = False,
        switched: bool = False,
    ) -> None:
        """`scrollback`: the lines above the session's screen are written into this terminal too;
        `switched`: it comes in place of another session's."""
        self.name = session
        self._session = session
        self._observe = observe
        self._operator = new_operator()
        self._connection: Connection
        self._channel = 0
        self._offset: int | None = None  # of the next output byte to show
        self._live_from = 0  # output before this was printed before we came: its queries are old
        self._answers = False
        self._unacked = UnackedInputs()
        self._waking: Callable[[ProgressEvent], None] | None = None  # shows how far that is
        self._prefix = PrefixKeys(prefix)
        self._key = key_name(prefix)
        self._scrollback = scrollback
        self._painted = False
        self._switched = switched
        self.typed_ahead = b""  # for this session, while another was attached
        self.greeting = ""  # in place of the usual one
        self._listing: tuple[int, PrefixCommand] | None = None  # a list of sessions was asked for
        self._behind = b""  # typed since: not for this session
        self._detaching = 0  # the request to detach the others
        self._chooser: SessionChooser | None = None  # while it is open
        self._line = StatusLine()
        self._away_since: float | None = None  # when the connection was lost that is not back yet
        self._said_away = False
        self._moved_at = -_ARRIVES_S  # when it went to another host
        self._found_halted = False  # on attaching
        self._shaped_by: tuple[str, ...] = ()  # then: the shell does not report what it holds
        self._attach_id = 0  # of the latest Attach sent without waiting for its answer
        self._key_loop = KeyLoop(prefix, _WINDOW_BYTES)
        self._size: Size | None = None
        self._turn = TurnPrompts(self._ask, self._say, self._type, self._key)
        self._ahead = PredictedTyping(NEVER if observe else predict, self._ask)

    @property
    def session(self) -> str:
        """Its id, once attached."""
        return self._session

    # -- the connection -----------------------------------------------------------------------

    def leave(self) -> None:
        """For another session: what was typed here was sent."""
        self._connection.close()

    def connect(self) -> None:
        """Connect and open the channel, from where we were if we were."""
        where = target_host()
        asked = time.monotonic()
        with progress_line() as told:  # it may have to be woken first
            self._waking = told
            self._connection = Connection(
                where, self._operator, "hold attach", on_progress=self._on_progress
            )
            attached = self._open(self._offset)
        self._waking = None
        self.name, self._session = attached.info.name, attached.info.id
        self._found_halted = attached.info.state is SessionState.HALTED
        self._shaped_by = attached.info.shaped_by
        if os.environ.get("HOLDFAST_SESSION") == self._session:
            raise InvalidArgument("this terminal is inside that very session")
        if not self._observe:
            self._turn.attached(self._connection.actor, attached.info.holder)
        self._ahead.connected(not isinstance(where, str), time.monotonic() - asked)
        self._unacked.taken(attached.input_seq)
        for seq, data in self._unacked.all():
            self._send_input(seq, data)

    def _on_progress(self, told: ProgressEvent) -> None:
        """Of its checkpoint or restore. While it lasts, the session stands still."""
        if not self._painted:
            if self._waking is not None:
                self._waking(told)
        elif not told.over:
            self._say(progress_text(told))

    def _open(self, since: int | None) -> m.Attached:
        self._channel += 1
        self._size = None if self._observe else terminal_size()
        request = m.Attach(
            self._connection.next_id(),
            self._session,
            self._channel,
            observe=self._observe,
            since=since,
            size=self._size,
            scrollback=self._scrollback and not self._painted,
            detachable=True,
        )
        attached = expect(self._connection.ask(request), m.Attached)
        self._live_from = attached.info.output_offset
        return attached

    def _come_back(self) -> None:
        """The connection is gone; the session most likely is not."""
        self._connection.close()
        self._turn.lost()
        self._stay("")
        self._away_since, self._said_away = time.monotonic(), False
        try:
            finish(reconnect(self, self._dial, ATTACH))
        except SessionEnded:
            raise AttachEnded(self._ending()) from None
        except RECONNECTABLE as error:
            raise AttachDetached(f": {error.message}") from error
        self._away_since = None
        if self._said_away:
            self._repaint()

    def _follow(self, host: str) -> None:
        """It goes on at another host: we connect there, and send what has no answer yet again."""
        from holdfast.sdk.moving import aim_at

        if not aim_at(host):
            raise AttachDetached(f": it has moved to {sanitize(host)}, which you have not joined")
        self._say(f"it has moved to {sanitize(host)}", NEWS_S)
        self._moved_at = time.monotonic()
        raise HostLost("the session has moved")

    def untaken_bytes(self) -> int:
        """How much of what was typed nobody has confirmed, if the host is away."""
        return self._unacked.bytes if self._away_since is not None else 0

    async def _dial(self) -> None:
        try:
            self.connect()
        except NoSuchSession as error:
            # The host that it moved to may not have got round to it.
            if time.monotonic() - self._moved_at > _ARRIVES_S:
                raise
            raise HostLost(error.message) from error

    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """While the host is away keys are kept in order, up to the window."""
        assert self._away_since is not None
        if time.monotonic() - self._away_since > _SAY_AFTER_S and not self._said_away:
            self._said_away = True
            self._say(f"the host is away (`hold up -d` starts one); {self._key} d detaches")
        if self._unacked.bytes >= _WINDOW_BYTES:
            time.sleep(seconds)
        elif select.select([0], [], [], seconds)[0]:
            self._on_keys()

    def _ending(self) -> Ending:
        """How the session ended while we were away."""
        answer = self._connection.ask(m.Show(self._connection.next_id(), self._session))
        ending = answer.info.ending if isinstance(answer, m.Shown) else None
        return ending or Ending(lost="unknown")

    # -- the loop -----------------------------------------------------------------------------

    def serve(self, terminal: RawTerminal) -> None:
        """Until Detached or Ended is raised."""
        woken = signals_as_bytes()
        if self._ahead.measures:
            signal.setitimer(signal.ITIMER_REAL, ASK_AGAIN_S, ASK_AGAIN_S)
        try:
            while True:
                try:
                    self._serve_connection(terminal, woken)
                except HostLost:
                    self._come_back()
        finally:
            # An interpreter that exits gives up its handlers first: SIGALRM would then kill it.
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _serve_connection(self, terminal: RawTerminal, woken: socket.socket) -> None:
        connection = self._connection
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        poll.register(woken, select.POLLIN)
        reading_keys = False
        if not self._painted:
            self._greet()
        if self.typed_ahead:
            ahead, self.typed_ahead = self.typed_ahead, b""
            self._on_typed(ahead)
        while True:
            while (message := connection.take()) is not None:
                self._on_message(message)
            if self._ahead.lacks_screen and self._offset is not None:
                self._repaint()
            if self._usual() and self._serve_usual(connection, woken):
                continue
            wanted = self._unacked.bytes < _WINDOW_BYTES
            if wanted != reading_keys:
                poll.register(0, select.POLLIN) if wanted else poll.unregister(0)
                reading_keys = wanted
            for fd, _ in self._ready(poll):
                if fd == 0:
                    self._on_keys()
                elif fd == connection.fileno():
                    output = connection.read_output(self._channel)
                    if output is not None:
                        self._show(*output)
                else:
                    self._on_signals(woken.recv(256), terminal)
            self._ahead.tick()
            if self._line.expired(time.monotonic()):
                self._repaint()

    def _greet(self) -> None:
        """The first line: where we are and how to leave; or why nothing moves."""
        now = time.monotonic()
        verb = "observing" if self._observe else "attached to"
        if self.greeting:
            self._line.show(self.greeting, now, NEWS_S)
            return
        if self._shaped_by and not self._found_halted:
            by = ", ".join(map(sanitize, self._shaped_by))
            shaped = f"whose shell does not report: shaped by {by}"
            self._line.show(f"{verb} {self.name}, {shaped}; {self._key} d detaches", now, NEWS_S)
            return
        if not self._found_halted:
            self._line.show(f"{verb} {self.name}; {self._key} d detaches", now)
            return
        resume = f"{self._key} u resumes it, {self._key} d detaches"
        self._line.show(f"{verb} {self.name}, which is halted; {resume}", now, NEWS_S)

    def _usual(self) -> bool:
        """Whether keys go to the session as they are, and its output to the terminal."""
        return (
            self._key_loop.loaded
            and self._answers
            and not (self._observe or self._prefix.waiting or self._line.shown or self._ahead.on)
            and self._chooser is None
            and self._turn.usual
            and self._unacked.bytes < _WINDOW_BYTES
            and self._connection.decoder.between_frames
        )

    def _serve_usual(self, connection: Connection, woken: socket.socket) -> bool:
        """Serve the short way until something is not usual. False: take a turn here."""
        if self._offset is None or self._offset < self._live_from:
            return False
        loop = self._key_loop
        went_well = loop.serve(
            connection, woken.fileno(), self._unacked, self._session, self._channel, self._offset
        )
        self._offset = loop.offset
        if loop.keys:
            self._on_typed(loop.keys)
        if loop.rest:
            connection.take_in(loop.rest)
        return went_well

    def _ready(self, poll: select.poll) -> list[tuple[int, int]]:
        """What there is to read; waits for it."""
        return poll.poll(self._ahead.timeout_ms(self._line.timeout_ms(time.monotonic())))

    # -- from the host ------------------------------------------------------------------------

    def _on_message(self, message: m.Message) -> None:
        self._ahead.on_message(message)
        if isinstance(message, m.Output):
            if message.channel == self._channel:
                self._show(message.offset, message.data)
        elif isinstance(message, m.Accepted):
            self._unacked.taken(message.seq)
            if not self._unacked.bytes:
                self._turn.taken()
        elif isinstance(message, m.Resync):
            if message.channel == self._channel:
                self._on_resync(message)
        elif isinstance(message, m.Answering):
            if message.channel == self._channel:
                self._answers = message.answers
        elif isinstance(message, m.Closed):
            raise AttachEnded(message.ending)
        elif isinstance(message, m.Dismissed):
            if message.code == SessionElsewhere.code:
                self._follow(message.by)
            raise AttachDetached(_why_dismissed(message))
        elif isinstance(message, m.StateEvent) and message.name != self.name:
            if message.session == self._session:
                self.name = message.name
                self._say(f"this session is called {message.name} now", NEWS_S)
        elif isinstance(message, m.Sessions):
            self._on_sessions(message)
        elif isinstance(message, m.TerminalsDetached):
            self._on_detached(message)
        elif isinstance(message, m.Failed):
            self._on_failure(message)
        elif isinstance(message, ApprovalMessage):
            if message.session == self._session:
                self._say(approval_news(message, self._turn.you), NEWS_S)
        else:
            self._turn.on_message(message)

    def _on_failure(self, failed: m.Failed) -> None:
        if failed.id == self._attach_id and failed.code in (SessionEnded.code, SessionLost.code):
            raise AttachEnded(self._ending())
        if self._listing is not None and failed.id == self._listing[0]:
            self._stay(failed.message)
            return
        refused = self._unacked.refused(failed.id)
        if failed.code == TurnHeld.code and refused:
            self._turn.refused(refused)
            return
        if failed.code == GateHeld.code:
            # Each key is refused, and a ^C must not be lost with them: it takes the line back.
            self._say(f"{failed.message}; ^C takes it back", NEWS_S)
            return
        self._turn.failed(failed.id, refused)
        if failed.code == GateRefused.code:
            self._say(failed.message, NEWS_S)
            return
        if failed.code == SessionHalted.code:
            self._say(f"{failed.message}; {self._key} u resumes it", NEWS_S)
            return
        self._say(failed.message)

    def _show(self, offset: int, data: bytes) -> None:
        shown = data
        if self._offset is not None and offset < self._offset:
            shown = data[self._offset - offset :]  # a repeat: harmless by its offset
        if not self._answers or offset < self._live_from:
            shown = strip_queries(shown)
        self._offset = offset + len(data)
        self._ahead.show(shown, self._offset)
        if self._chooser is not None:
            self._ahead.show(self._chooser.drawn(terminal_size()))

    def _on_resync(self, message: m.Resync) -> None:
        if not self._painted and not self._switched:
            # What the operator had on the screen moves up into the terminal's own scrollback.
            rows = (terminal_size() or message.size).rows
            write_all(1, b"\r\n" * rows)
        self._painted = True
        self._ahead.paint(message.data, terminal_size())
        self._offset = message.offset
        self._ahead.show(self._line.drawn(terminal_size()))
        if self._chooser is not None:
            self._ahead.show(self._chooser.drawn(terminal_size()))
        self._key_loop.load()  # only now: there is something to see, and it takes milliseconds

    # -- from the operator --------------------------------------------------------------------

    def _on_keys(self) -> None:
        data = os.read(0, _READ_BYTES)
        if not data:
            raise AttachDetached(": the terminal is gone")
        self._on_typed(data)

    def _on_typed(self, data: bytes) -> None:
        if self._listing is not None:
            self._behind += data
            return
        if self._chooser is not None:
            self._choose(data)
            return
        if self._prefix.waiting or self._prefix.prefix in data:
            data, commands = self._prefix.take(data)
        else:
            commands = []
        if data and self._observe:
            self._say(f"observing: keys are not sent; {self._key} d detaches")
        elif data and not self._turn.swallows(data):
            self._type(data)
        for command in commands:
            self._obey(command)
        if self._listing is not None:
            self._behind = self._prefix.behind

    def _type(self, data: bytes) -> None:
        if self._turn.holds(data):
            return
        seq = self._unacked.add(data)  # first of all: whatever happens, it is not lost
        if self._line.shown:
            self._repaint()  # before the program turns to another screen: the line stays on this
        self._send_input(seq, data)
        self._ahead.typed(seq, data)

    def _send_input(self, seq: int, data: bytes) -> None:
        connection = self._connection
        request = connection.next_id()
        self._unacked.sent(request, seq)
        try:
            if self._ahead.on:
                connection.send(m.Input(request, self._session, seq, data))  # answered at once
            else:
                connection.send_frame(quiet_input(request, self._session, seq, data))
        except HostLost:
            return  # noticed by the loop; the input waits in `_unacked` and goes again

    def _obey(self, command: PrefixCommand) -> None:
        if command is PrefixCommand.DETACH:
            raise AttachDetached
        if command is PrefixCommand.HELP:
            self._say(HELP)
        elif command is PrefixCommand.UNKNOWN:
            self._say(UNKNOWN)
        elif command in SWITCHES:
            self._listing = self._ask_host(m.ListSessions), command
        elif command is PrefixCommand.DETACH_OTHERS:
            self._detaching = self._ask(m.DetachTerminals, {"others": True})
        elif not self._turn.obey(command):
            self._repaint()

    # -- other sessions, other terminals --------------------------------------------------------

    def _on_sessions(self, answer: m.Sessions) -> None:
        if self._listing is None or answer.id != self._listing[0]:
            return
        _, command = self._listing
        inside = os.environ.get("HOLDFAST_SESSION")  # it cannot show itself
        sessions = [info for info in answer.sessions if info.id != inside]
        if command is PrefixCommand.CHOOSE:
            self._line.hide()
            self._chooser = SessionChooser(sessions, self._session)
            self._ahead.show(self._chooser.drawn(terminal_size()))
            self._listing, keys = None, self._behind
            self._choose(keys)
            return
        there = beside(sessions, self._session, 1 if command is PrefixCommand.NEXT else -1)
        if there is None:
            self._stay("there is no other session here; `hold run` starts one")
        else:
            raise AttachSwitched(there.id, self._behind)

    def _stay(self, why: str) -> None:
        """No switch comes of it. What was typed for the other session is typed nowhere."""
        self._listing, self._behind, self._chooser = None, b"", None
        if why:
            self._say(why, NEWS_S)

    def _choose(self, data: bytes) -> None:
        keys = one_by_one(data)
        while keys and self._chooser is not None:
            is_open, chosen = self._chooser.take(keys.pop(0))
            if is_open:
                continue
            self._chooser = None
            if chosen and chosen != self._session:
                raise AttachSwitched(chosen, b"".join(keys))
            self._repaint()
        if self._chooser is not None:
            self._ahead.show(self._chooser.drawn(terminal_size()))
        elif keys:
            self._on_typed(b"".join(keys))

    def _on_detached(self, answer: m.TerminalsDetached) -> None:
        if answer.id == self._detaching:
            left = f"; {answer.left - 1} of others still attached" if answer.left > 1 else ""
            others = counted(answer.detached, "other terminal")
            self._say(f"detached {others}{left}" if answer.detached or left else _ALONE, NEWS_S)

    def _ask_host(self, kind: Callable[..., m.Request]) -> int:
        """Ask the host something without waiting for the answer; gives the request."""
        request = self._connection.next_id()
        with contextlib.suppress(HostLost):  # noticed by the loop
            self._connection.send(kind(id=request))
        return request

    def _ask(self, kind: Callable[..., m.Request], fields: dict[str, object]) -> int:
        """Ask something about this session without waiting for the answer; gives the request."""
        request = self._connection.next_id()
        with contextlib.suppress(HostLost):  # noticed by the loop
            self._connection.send(kind(id=request, session=self._session, **fields))
        return request

    # -- the one line we draw over the session's screen -----------------------------------------

    def _say(self, text: str, seconds: float = SHOWN_S) -> None:
        self._line.show(text, time.monotonic(), seconds)
        self._ahead.show(self._line.drawn(terminal_size()))

    def wipe_line(self) -> None:
        """On leaving: nothing of our own must stay behind."""
        self._ahead.close()
        size = terminal_size()
        if self._line.shown and size is not None:
            write_all(1, b"\x1b[%d;1H\x1b[0m\x1b[2K" % size.rows)

    def _repaint(self) -> None:
        """Ask for the whole screen again, on a new channel; the old one is closed."""
        self._line.hide()
        if self._away_since is not None:
            return  # coming back brings it
        old, self._channel = self._channel, self._channel + 1
        self._offset = None
        connection = self._connection
        self._attach_id = connection.next_id()
        attach = m.Attach(
            self._attach_id,
            self._session,
            self._channel,
            observe=self._observe,
            size=None if self._observe else terminal_size(),
            scrollback=False,
            detachable=True,
        )
        try:
            connection.send(attach)  # first: an operator that repaints was never away
            connection.send(m.Detach(connection.next_id(), old))
        except HostLost:
            return  # noticed by the loop; coming back brings the screen

    # -- signals ------------------------------------------------------------------------------

    def _on_signals(self, numbers: bytes, terminal: RawTerminal) -> None:
        for number in set(numbers):
            if number == signal.SIGWINCH:
                self._resized()
            elif number == signal.SIGCONT:
                terminal.make_raw()
                self._repaint()
            elif number == signal.SIGALRM:
                self._ahead.measure(self._unacked.last)
            else:
                raise AttachDetached(f": {signal.Signals(number).name}")

    def _resized(self) -> None:
        size = terminal_size()
        if self._observe or size is None or size == self._size:
            return
        self._size = size
        self._ahead.resized(size)
        request = m.Resize(self._connection.next_id(), self._session, size, self._channel)
        self._connection.send(request)


def _why_dismissed(message: m.Dismissed) -> str:
    if message.code == Fenced.code:
        return ": its host lost its lease"
    if message.code == "detached":
        return f" by {sanitize(message.by)}"
    return ": you may no longer attach to it"
