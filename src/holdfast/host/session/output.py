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
from time import perf_counter
from typing import TYPE_CHECKING

from holdfast.adapters.session_memory.output_ring import Hangup
from holdfast.model.limits import ECHO_DUE_S
from holdfast.model.patience import EchoPatience

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

log = logging.getLogger(__name__)

_PUMP_BUDGET_BYTES = 256 << 10  # one session's output before the others get their turn
_REOPEN_CHECK_S = 1.0  # a terminal nobody has open may be opened again by a live process
_UNKEPT_READ_BYTES = 64 << 10


class OutputPump:
    """Reads one PTY."""

    def __init__(self, live: LiveSession, last_at: float | None, blind: bool) -> None:
        self._live = live
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
        if not self._reading or self._blind or not self._patience.worthwhile(size):
            return
        until, moved = perf_counter() + ECHO_DUE_S, 0
        with contextlib.suppress(Hangup):
            while not (moved := self._pump()) and perf_counter() < until:
                pass
        self._patience.answered(moved > 0)
        if moved:
            self._came()

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
            self._live.ring.append_notice(
                b"\r\n[holdfast: a blind turn ended; %d bytes of output were not kept]\r\n"
                % self._unkept
            )
            self._unkept = 0
            self._came()

    def _on_output(self) -> None:
        if not self._live.lease_allows():
            return
        try:
            moved = self._pump()
        except (Hangup, OSError) as error:
            if not isinstance(error, Hangup):
                log.exception("output of %s", self._live.spec.id)
            self.read(False)
            self._loop.call_later(_REOPEN_CHECK_S, self._reopened)
            return
        if moved:
            self._came()

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
        if not self._live.is_over and not self._live.core.state.is_fenced:
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
                live.custody.type_as_host(answers)
        if live.fanout is not None:
            live.fanout.pump()
        for operator in tuple(live.audience):
            operator.pump()
        if live.watching.watched:
            live.watching.look_soon()
