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
from collections.abc import Callable

from holdfast.adapters.session_memory.output_ring import Hangup, Ring
from holdfast.core.attachments import Attachments
from holdfast.host.session.screen_view import View
from holdfast.model.ids import SessionId

log = logging.getLogger(__name__)

_PUMP_BUDGET_BYTES = 256 << 10  # one session's output before the others get their turn
_REOPEN_CHECK_S = 1.0  # a terminal nobody has open may be opened again by a live process
_UNKEPT_READ_BYTES = 64 << 10


class OutputPump:
    """Reads one PTY."""

    def __init__(
        self,
        session: SessionId,
        master: int,
        ring: Ring,
        view: View,
        attachments: Attachments,
        *,
        last_at: float | None,
        blind: bool,
        lease_allows: Callable[[], bool],
        may_read: Callable[[], bool],
        answer: Callable[[bytes], None],
        deliver: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        """`answer`: types an emulator's answer when no terminal does; `deliver`: there is more for
        the readers; `changed`: the state of the session may be another."""
        self._session, self._master, self._ring, self._view = session, master, ring, view
        self._attachments = attachments
        self._lease_allows, self._may_read = lease_allows, may_read
        self._answer, self._deliver, self._changed = answer, deliver, changed
        self._loop = asyncio.get_running_loop()
        self._reading = False
        self.last_at = last_at
        self._blind = blind
        self._unkept = 0

    def read(self, wanted: bool) -> None:
        if wanted and not self._reading:
            self._loop.add_reader(self._master, self._on_output)
        elif not wanted and self._reading:
            self._loop.remove_reader(self._master)
        self._reading = wanted

    def drain(self) -> None:
        """Take all the output there is now."""
        with contextlib.suppress(Hangup, OSError):
            while self._pump():
                self._on_arrival()

    def set_blind(self, blind: bool) -> None:
        """From now on output is kept nowhere, or is kept again."""
        self.drain()
        self._blind = blind
        if not blind:
            self._ring.append_notice(
                b"\r\n[holdfast: a blind turn ended; %d bytes of output were not kept]\r\n"
                % self._unkept
            )
            self._unkept = 0
            self._on_arrival()

    def _on_output(self) -> None:
        if not self._lease_allows():
            return
        try:
            moved = self._pump()
        except (Hangup, OSError) as error:
            if not isinstance(error, Hangup):
                log.exception("output of %s", self._session)
            self.read(False)
            self._loop.call_later(_REOPEN_CHECK_S, self._reopened)
            return
        if moved:
            self._on_arrival()

    def _pump(self) -> int:
        if self._blind:
            return self._drop()
        return self._ring.pump(self._master, min(_PUMP_BUDGET_BYTES, self._view.room()))

    def _drop(self) -> int:
        try:
            dropped = len(os.read(self._master, _UNKEPT_READ_BYTES))
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
        if self._may_read():
            self.read(True)

    def _on_arrival(self) -> None:
        self.last_at = time.time()
        if self._blind:
            return
        view = self._view
        if self._ring.head - view.offset > view.lag_max:
            view.make_room()
        if self._attachments.answerer is None:
            answers = view.answer_queries()
            if answers:
                self._answer(answers)
        self._deliver()
        self._changed()
