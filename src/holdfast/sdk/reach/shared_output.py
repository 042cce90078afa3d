"""Output that a host sends once for all readers of a session, as one attached channel shows it.

The channel begins like any other. When the host says from which offset on the output comes by what
is sent to all (`Shared`), frames from there take over, exactly there: what came early waits, what
was here already is cut off. When frames are missing, or turn out not to be the host's, the channel
begins anew with a screen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.model.errors import Fenced, HoldfastError, OutputGap, OutputRefused
from holdfast.model.ids import SessionId
from holdfast.wire.epochs import EpochFloor
from holdfast.wire.frames import output_head
from holdfast.wire.output_listener import Listener
from holdfast.wire.request_classes import fields_of

_EARLY_MAX_BYTES = 1 << 20  # frames that wait for their key, or for what comes before them
_OUTPUT = (b"\x84\xa1t\xa6output", b"\x86\xa1t\xa6resync", b"\x83\xa1t\xa6closed")


class SharedOutput:
    """One channel. `forward` gets messages for its user; `begin_anew` asks the host for that."""

    def __init__(
        self,
        session: SessionId,
        channel: int,
        host_key: bytes,
        floor: EpochFloor,
        forward: Callable[[bytes], None],
        begin_anew: Callable[[], None],
        since: int | None = None,
    ) -> None:
        """`since`: its user has seen everything before this offset, and asked for what follows."""
        self.channel = channel
        self._listener = Listener(session, host_key, floor)
        self._forward, self._begin_anew = forward, begin_anew
        self._shown = since  # offset of the next byte to show; None: a screen comes first
        self._from: int | None = None  # from there on it comes by frames
        self._frames: list[bytes] = []  # that came before their key
        self._pieces: list[tuple[int, bytes]] = []  # that came before what is in front of them
        self._held: list[tuple[int, bytes]] = []  # of the channel itself, behind pieces to come
        self._early_bytes = 0
        self.alone = False  # the host was asked to start over: nothing is shared for now
        self._spoiled = False  # and since then something was missed again

    # -- over the session's own channel ---------------------------------------------------------

    def message(self, body: bytes) -> None:
        """Something the host says to this operator alone."""
        if not body.startswith(_OUTPUT):
            self._forward(body)
            return
        fields = fields_of(body)
        if fields.get("channel") != self.channel:
            self._forward(body)
        elif fields["t"] == "closed" and self._held:
            self._held.append((self._held[-1][0], body))
        elif fields["t"] == "closed":
            self._forward(body)
        else:
            self._own(fields, body)

    def _own(self, fields: dict[str, Any], body: bytes) -> None:
        offset = fields["offset"]
        if fields["t"] == "resync":
            self._shown = offset
            self._forward(body)
        elif self._shown is not None and offset > self._shown and self._from is not None:
            self._held.append((offset, body))
            return
        else:
            self._shown = offset + len(fields["data"])
            if fields["data"]:
                self._forward(body)
        self._catch_up()

    def shared(self, offset: int) -> None:
        """The host's answer: from there on."""
        self._from, self.alone = offset, False
        if self._spoiled:
            self._start_over()
        else:
            self._catch_up()

    def refused(self) -> None:
        """It does not come by frames, then; what waited for them need not wait."""
        self._from, held, self._held = None, self._held, []
        for _, body in held:
            self._forward(body)

    def key(self, body: bytes, now: float) -> None:
        try:
            self._listener.take_key(body, now)
        except OutputRefused:
            return
        except HoldfastError:
            self._start_over()
            return
        frames, self._frames, self._early_bytes = self._frames, [], 0
        for frame in frames:
            self.frame(frame, now)

    def mark(self, body: bytes, now: float) -> None:
        try:
            self._listener.mark(body, now)
            self._listener.poll(now)
        except HoldfastError:
            self._start_over()

    # -- from the relay ---------------------------------------------------------------------------

    def frame(self, frame: bytes, now: float) -> None:
        if self._listener.is_early(frame):
            self._keep_early(frame)
            return
        try:
            output = self._listener.open(frame, now)
        except (OutputRefused, Fenced):
            return  # not the host's, or not for us: as if it had not come
        except HoldfastError:
            self._start_over()
            return
        if output.data:
            self._pieces.append((int.from_bytes(output.data[:8]), output.data[8:]))
            self._catch_up()

    def gap(self) -> None:
        """The relay left something out."""
        self._start_over()

    def _keep_early(self, frame: bytes) -> None:
        self._early_bytes += len(frame)
        if self._early_bytes > _EARLY_MAX_BYTES:
            self._frames, self._early_bytes = [], len(frame)
        self._frames.append(frame)

    # -- in order ---------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Show what follows on what was shown."""
        if self._from is None or self._shown is None or self.alone:
            return
        pieces, self._pieces = self._pieces, []
        for at, (offset, data) in enumerate(pieces):
            if offset > self._shown:
                self._pieces = pieces[at:]
                if self._shown >= self._from:
                    self._start_over()
                    return
                break
            fresh = data[self._shown - offset :]
            if fresh:
                self._forward(output_head(self.channel, self._shown, len(fresh))[4:] + fresh)
                self._shown += len(fresh)
        while self._held and self._held[0][0] <= self._shown:
            self._forward(self._held.pop(0)[1])

    def _start_over(self) -> None:
        if self.alone:
            self._spoiled = True
            return
        self.alone, self._spoiled, self._from = True, False, None
        self._pieces, self._frames, self._early_bytes = [], [], 0
        if not self._listener.lost:
            self._listener.give_up(OutputGap("the output starts over"))
        self._begin_anew()
