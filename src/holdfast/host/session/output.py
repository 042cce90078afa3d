"""A live session's output: from the PTY into the ring, then to whoever reads.

While a turn is blind nothing of it is kept: what a program prints then may be the echo of a secret,
so it goes nowhere, and a line says afterwards how much that was.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from holdfast.adapters.session_memory.key_press import KeyPress
from holdfast.adapters.session_memory.output_ring import Hangup
from holdfast.host.clock import now
from holdfast.host.connection.output_channels import ViewChannel
from holdfast.model.limits import ECHO_DUE_S
from holdfast.model.patience import EchoPatience
from holdfast.wire.frames import output_head

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)

_PUMP_BUDGET_BYTES = 256 << 10  # one session's output before the others get their turn
_REOPEN_CHECK_S = 1.0  # a terminal nobody has open may be opened again by a live process
_UNKEPT_READ_BYTES = 64 << 10
_ECHO_WINDOW_S = 0.03  # after a key: a program that takes longer than that is doing something else


class Reader(NamedTuple):
    """Who gets output without a detour: its socket, and all of the frame but the data."""

    sock: int
    frame_head: bytes
    operator: OperatorConnection | None
    channel: ViewChannel | None


_NOBODY = Reader(-1, b"", None, None)


class OutputPump:
    """Reads one PTY."""

    def __init__(
        self, live: LiveSession, key_press: KeyPress, last_at: float | None, blind: bool
    ) -> None:
        self._live = live
        self._echo = key_press
        self._loop = asyncio.get_running_loop()
        self._patience = EchoPatience()
        self._reading = False
        self.last_at = last_at
        self._blind = blind
        self._unkept = 0

    def read(self, wanted: bool) -> None:
        if wanted and not self._reading:
            self._loop.add_reader(self._live.fds.master, self._on_output)
        elif not wanted and self._reading:
            self._loop.remove_reader(self._live.fds.master)
        self._reading = wanted

    def look_for_echo(self, size: int) -> None:
        """An operator just typed this much: its echo is due (see model.patience)."""
        if self.echo_due(size):
            with contextlib.suppress(Hangup):
                self._patience.answered(self._short_way(ECHO_DUE_S) > 0)

    def echo_due(self, size: int) -> bool:
        """Whether what is typed now is likely to be answered at once, by what may be kept."""
        return self._patience.worthwhile(size) and self._reading and not self._blind

    def _short_way(self, look_s: float) -> int:
        """From the PTY into the ring and to the one who waits for it, with nothing in between.
        Gives how much came within the time; raises Hangup as `Ring.pump` does."""
        reader = self.sole_reader()
        moved, sent = self._echo.look(self._live.fds.master, reader.sock, reader.frame_head, look_s)
        self.looked(reader, moved, sent)
        return moved

    def sole_reader(self) -> Reader:
        """The one who waits for what comes next, if it can be sent at once, before all else."""
        live = self._live
        if len(live.audience) == 1:
            (operator,) = live.audience
            channel = operator.free_channel()
            if isinstance(channel, ViewChannel) and channel.live is live:
                start = live.ring.head
                if channel.cursor == start and channel.shared_from is None:
                    head = output_head(channel.number, start, 0)
                    return Reader(operator.sock.fileno(), head, operator, channel)
        return _NOBODY

    def looked(self, reader: Reader, moved: int, sent: int) -> None:
        """So much came into the ring past `_pump`, and the reader took so much of its frame."""
        operator, channel, ring = reader.operator, reader.channel, self._live.ring
        if sent and operator is not None and channel is not None:
            start, channel.cursor = channel.cursor, channel.cursor + moved
            if sent < len(reader.frame_head) + moved:
                whole = output_head(channel.number, start, moved) + ring.copy(start, ring.head)
                operator.keep_rest(whole[sent:])
        if moved:
            self._came()

    @property
    def is_read(self) -> bool:
        return self._reading

    def answered(self, quickly: bool) -> None:
        """What `echo_due` was asked for."""
        self._patience.answered(quickly)

    def drain(self) -> None:
        """Take all the output there is now."""
        with contextlib.suppress(Hangup, OSError):
            while self._pump():
                self._came()

    def set_blind(self, blind: bool) -> None:
        """From now on output is kept nowhere, or is kept again."""
        self.drain()
        self._blind = blind
        if not blind:
            self._live.ring.insert(
                b"\r\n[holdfast: a blind turn ended; %d bytes of output were not kept]\r\n"
                % self._unkept
            )
            self._unkept = 0
            self._came()

    def _on_output(self) -> None:
        if not self._live.may_act():
            return
        try:
            if self._is_echo():
                self._short_way(0.0)
                return
            moved = self._pump()
        except (Hangup, OSError) as error:
            if not isinstance(error, Hangup):
                log.exception("output of %s", self._live.spec.id)
            self.read(False)
            self._loop.call_later(_REOPEN_CHECK_S, self._reopened)
            return
        if moved:
            self._came()

    def _is_echo(self) -> bool:
        """Whether what comes is most likely the answer to a key: small, and waited for."""
        typed = self._live.typist.last_at
        return self._echo.is_native and not self._blind and now() - typed < _ECHO_WINDOW_S

    def _pump(self) -> int:
        live = self._live
        if self._blind:
            return self._drop()
        return live.ring.pump(live.fds.master, min(_PUMP_BUDGET_BYTES, live.view.room()))

    def _drop(self) -> int:
        try:
            dropped = len(os.read(self._live.fds.master, _UNKEPT_READ_BYTES))
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno == errno.EIO:
                raise Hangup from error
            raise
        if not dropped:
            raise Hangup
        self._unkept += dropped
        return dropped

    def _reopened(self) -> None:
        if not self._live.is_over and not self._live.core.fenced:
            self.read(True)

    def _came(self) -> None:
        live = self._live
        self.last_at = time.time()
        if self._blind:
            return
        if live.ring.head - live.view.offset > live.view.lag_max:
            live.view.make_room()
        if live.core.attachments.answerer is None:
            answers = live.view.answer_queries()
            if answers:
                live.typist.for_layer(answers)
        if live.fanout is not None:
            live.fanout.pump()
        for operator in tuple(live.audience):
            operator.pump()
        if live.watching.watched:
            live.watching.stirred()
