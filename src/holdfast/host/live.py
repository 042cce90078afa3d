"""One live session: the shell around core.session. It owns the descriptors, moves the bytes and
carries out the effects; it decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING

from holdfast.adapters import pty
from holdfast.adapters.launcher import end as end_tree
from holdfast.adapters.ledger import Ledger
from holdfast.adapters.ring import PAGE, Hangup, Ring
from holdfast.core import session as core
from holdfast.core.waiting import judge
from holdfast.host.commands import Commands
from holdfast.host.kept import Descriptors, Kept
from holdfast.host.view import View
from holdfast.host.watching import Watching
from holdfast.model.graph import Graph
from holdfast.model.ids import LAYER, OperatorId
from holdfast.model.info import SessionInfo
from holdfast.model.limits import ECHO_DUE_S, END_GRACE_S
from holdfast.model.patience import Patience
from holdfast.model.state import Ending, SessionState

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.operator import Operator
    from holdfast.host.store import Stored

log = logging.getLogger(__name__)

_PUMP_BUDGET_BYTES = 256 << 10  # one session's output before the others get their turn
# Of the command records, so many and so much of each are in the state blob, which is small.
_COMMANDS_KEPT, _TEXT_KEPT_CHARS = 10, 500
_REOPEN_CHECK_S = 1.0  # a terminal nobody has open may be opened again by a live process


class LiveSession:
    """A running incarnation."""

    def __init__(self, daemon: Daemon, kept: Kept, fds: Descriptors) -> None:
        self.daemon = daemon
        self.spec = kept.spec
        self.fds = fds
        self.ring = Ring(fds.ring, fds.output)
        self.ledger = Ledger(self.ring, fds.input)
        self.core = core.Session(kept.size, self.ledger.operators())
        self.view = View(self.ring, kept.size, daemon.make_screen)
        self.commands = Commands(self, kept.commands)
        self.watching = Watching(self)
        self.last_output_at = kept.last_output_at
        self.audience: dict[Operator, int] = {}  # who has channels here, and how many
        self.buried: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._pending: deque[tuple[core.Take, asyncio.Future[int]]] = deque()
        self._typing = False
        self._reading = False
        self._closed = False
        self._patience = Patience()
        self._layer_seq = max(kept.layer_seq, self.core.intake.last(LAYER))
        self._read_output(True)
        self._type()

    # -- events in, effects out ---------------------------------------------------------------

    def handle(self, event: core.Event) -> int | asyncio.Future[int] | None:
        """The one ingest. For an input: the output offset at which it was taken, or a future of it;
        -1 says that it had been taken before."""
        answer: int | asyncio.Future[int] | None = None
        for effect in self.core.handle(event):
            match effect:
                case core.Take():
                    answer = self._take(effect)
                case core.Repeat(operator=operator, seq=seq):
                    answer = self._taken_before(operator, seq)
                case core.SetSize(size=size):
                    pty.set_size(self.fds.master, size)
                    self.view.resize(size)
                    self.keep()
                case core.SendSignal(signal=number):
                    self._signal_foreground(number)
                case core.TakeDown():
                    self._take_down()
                case core.Answerer(seat=seat):
                    self.daemon.tell_answerer(self, seat)
                case core.Announce():
                    self.daemon.announce(self)
                case core.Bury(ending=ending):
                    self._bury(ending)
        return answer

    def _taken_before(self, operator: OperatorId, seq: int) -> int | asyncio.Future[int]:
        """A repeat is answered when the first one is: it may still be waiting for custody."""
        for take, answer in self._pending:
            if (take.operator, take.seq) == (operator, seq) and not answer.cancelled():
                return answer
        return -1

    # -- output -------------------------------------------------------------------------------

    def _read_output(self, wanted: bool) -> None:
        if wanted and not self._reading:
            self._loop.add_reader(self.fds.master, self._on_output)
        elif not wanted and self._reading:
            self._loop.remove_reader(self.fds.master)
        self._reading = wanted

    def _on_output(self) -> None:
        try:
            moved = self._pump()
        except (Hangup, OSError) as error:
            if not isinstance(error, Hangup):
                log.exception("output of %s", self.spec.id)
            self._read_output(False)
            self._loop.call_later(_REOPEN_CHECK_S, self._reopened)
            return
        if moved:
            self._output_came()

    def look_for_echo(self, size: int) -> None:
        """An operator just typed this much: its echo is due (see model.patience)."""
        if not self._patience.worthwhile(size) or not self._reading:
            return
        pump, master = self.ring.pump, self.fds.master
        until = perf_counter() + ECHO_DUE_S
        try:
            while perf_counter() < until:
                if pump(master, PAGE):
                    self._output_came()
                    return
        except Hangup:
            return
        self._patience.answered(False)

    def _pump(self) -> int:
        return self.ring.pump(self.fds.master, min(_PUMP_BUDGET_BYTES, self.view.room()))

    def _reopened(self) -> None:
        if self.core.ending is None and not self._closed:
            self._read_output(True)

    def _output_came(self) -> None:
        self.last_output_at = time.time()
        if self.ring.head - self.view.offset > self.view.lag_max:
            self.view.make_room()
        if self.core.attachments.answerer is None:
            self._answer_queries()
        for operator in tuple(self.audience):
            operator.pump()
        if self.watching.watched:
            self.watching.stirred()

    def drain(self) -> None:
        """Take all the output there is now."""
        with contextlib.suppress(Hangup, OSError):
            while self._pump():
                self._output_came()

    def _answer_queries(self) -> None:
        answers = self.view.answer_queries()
        if answers:
            self.type_for_layer(answers)

    def type_for_layer(self, data: bytes) -> None:
        """Input that no operator sent: an emulator's answer. One ingest for it as for all."""
        if self.core.ending is None:
            self._layer_seq += 1
            self.handle(core.Offered(LAYER, self._layer_seq, data))

    # -- input --------------------------------------------------------------------------------

    def key(self, operator: OperatorId, seq: int, data: bytes) -> bool:
        """A key press in the usual state of things; False: nothing was done, use `handle`."""
        if self._pending or self._typing or self.ledger.room() < len(data):
            return False
        if not self.core.takes_at_once(operator, seq, len(data)):
            return False
        self.commands.typed_since_prompt = True
        try:
            if not self.ledger.take_and_type(operator, seq, data, self.fds.master):
                self._await_typing(True)
        except OSError:  # hung up: nobody is left to read it
            pass
        if self.watching.watched:
            self.watching.stirred()
        return True

    def _take(self, take: core.Take) -> int | asyncio.Future[int]:
        """One input into custody: at once if there is room and nobody waits, else in its turn."""
        if not self._pending and self.ledger.room() >= len(take.data):
            self._into_custody(take)
            if self._typing or not self._typed_all():
                self._await_typing(True)
            if self.watching.watched:
                self.watching.stirred()
            return self.ring.head
        answer = self._loop.create_future()
        self._pending.append((take, answer))
        self._type()
        return answer

    def _into_custody(self, take: core.Take) -> None:
        self.ledger.take(take.operator, take.seq, take.data)
        self.core.intake.taken(len(take.data))
        if take.operator != LAYER:
            self.commands.typed_since_prompt = True

    def _type(self) -> None:
        """From custody into the PTY, as far as it takes it; then the inputs that waited."""
        done = self._typed_all()
        while self._pending and self.ledger.room() >= len(self._pending[0][0].data):
            take, answer = self._pending.popleft()
            self._into_custody(take)
            if not answer.done():
                answer.set_result(self.ring.head)
            done = self._typed_all()
        self._await_typing(not done)
        self.watching.stirred()

    def _typed_all(self) -> bool:
        try:
            return self.ledger.type_into(self.fds.master)
        except OSError:  # hung up: nobody is left to read it
            return True

    def _await_typing(self, wanted: bool) -> None:
        if wanted and not self._typing:
            self._loop.add_writer(self.fds.master, self._type)
        elif not wanted and self._typing:
            self._loop.remove_writer(self.fds.master)
        self._typing = wanted

    # -- signals and the end ------------------------------------------------------------------

    def _signal_foreground(self, number: int) -> None:
        group = pty.foreground_pgid(self.fds.master)
        if group is not None and group > 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # sudo's are root's
                os.killpg(group, number)

    def _take_down(self) -> None:
        """Hang up, as a terminal that is closed would; then kill what did not go."""
        self._loop.call_later(END_GRACE_S, self.kill)
        self._signal_main(signal.SIGHUP)
        self._signal_main(signal.SIGCONT)
        self._signal_foreground(signal.SIGHUP)
        self._signal_foreground(signal.SIGCONT)

    def _signal_main(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.spec.place.shell_pid or self.spec.place.pid, number)

    def kill(self) -> None:
        """End the tree now, whatever it does. The end is told by the keeper."""
        if self.core.ending is not None or self._closed:
            return
        end_tree(self.spec.place)

    def main_ended(self, ending: Ending) -> None:
        """The keeper reaped the session's first process."""
        if self._closed:
            return
        self.drain()
        self.handle(core.MainEnded(ending))

    def _bury(self, ending: Ending) -> None:
        self._read_output(False)
        self._await_typing(False)
        for _, answer in self._pending:
            if not answer.done():
                answer.cancel()
        self._pending.clear()
        self.commands.session_ended(ending)
        self.watching.stop()
        self.daemon.bury(self)

    def close(self, *, keep: bool) -> None:
        """Give back what this daemon holds, once: a descriptor closed twice may be another's by
        then. `keep`: the session lives on in custody."""
        if self._closed:
            return
        self._closed = True
        if keep:
            self.keep()
        self._read_output(False)
        self._await_typing(False)
        self.watching.stop()
        self.commands.close()
        self.view.close(keep=keep)
        self.ledger.close()
        self.ring.close()
        os.close(self.fds.master)
        os.close(self.fds.pidfd)

    # -- what it is ---------------------------------------------------------------------------

    @property
    def ending(self) -> Ending | None:
        return self.core.ending

    def state(self) -> SessionState:
        if self.core.ending is not None:
            return SessionState.ENDED
        evidence = self.daemon.observation.evidence(
            self.spec.place, self.fds.master, shell_is_shell=self.spec.is_shell
        )
        state = judge(evidence)
        # Gone, but not reaped yet: it is told as ended in a moment, with its true status.
        return SessionState.WORKING if state is SessionState.ENDED else state

    def graph(self, master: int) -> Graph:
        """By a descriptor of the caller's: it runs in a thread, and ours may be closed by then."""
        return self.daemon.observation.graph(
            self.spec.place, master, shell_is_shell=self.spec.is_shell
        )

    def waiting_line(self, state: SessionState) -> str:
        """The line the cursor is on, when a program waits there."""
        if state not in (SessionState.INPUT, SessionState.SECRET):
            return ""
        _, row = self.view.cursor()
        lines = self.view.text().split("\n")
        return lines[row].strip()[:200] if row < len(lines) else ""

    def info(self) -> SessionInfo:
        state = self.state()
        ended = state is SessionState.ENDED
        return SessionInfo(
            id=self.spec.id,
            name=self.spec.name,
            state=state,
            level=self.spec.level,
            epoch=self.spec.epoch,
            user=self.spec.user,
            argv=self.spec.argv,
            cwd=self.spec.cwd if ended else self._cwd(),
            size=self.core.size,
            created_at=self.spec.created_at,
            pid=0 if ended else self.spec.place.shell_pid or self.spec.place.pid,
            operators=self.core.attachments.count(),
            observers=self.core.attachments.observers(),
            output_offset=self.ring.head,
            held_from=self.ring.tail,
            last_output_at=self.last_output_at,
            title=self.view.title,
            waiting_line=self.waiting_line(state),
            shell=self.spec.shell,
            last_command=self.commands.last,
            ending=self.core.ending,
            ended_at=time.time() if ended else None,
        )

    def _cwd(self) -> str:
        try:
            return os.readlink(f"/proc/{self.spec.place.shell_pid or self.spec.place.pid}/cwd")
        except OSError:
            return self.spec.cwd

    # -- custody ------------------------------------------------------------------------------

    def blob(self) -> bytes:
        kept = Kept(
            self.spec,
            self.core.size,
            self.commands.recent(_COMMANDS_KEPT, text_chars=_TEXT_KEPT_CHARS),
            self._layer_seq,
            self.last_output_at,
        )
        return kept.blob()

    def keep(self) -> None:
        """What the keeper holds is brought up to date."""
        self.daemon.keeper.update(self.spec.id, self.blob())
