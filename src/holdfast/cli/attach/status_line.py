"""The one line an attached client draws over the session's screen, at the bottom right: a hint, an
error, the keys. It goes away by itself; the session's own screen is then painted again."""

from __future__ import annotations

from holdfast.model.size import Size

SHOWN_S = 2.5


class StatusLine:
    """Text and until when; the caller has the clock."""

    def __init__(self) -> None:
        self._text = ""
        self._until: float | None = None
        self._covers = 0  # columns drawn over already, of which nothing is to stay

    def show(self, text: str, now: float, seconds: float = SHOWN_S) -> None:
        self._text = text
        self._until = now + seconds

    @property
    def shown(self) -> bool:
        return self._until is not None

    def hide(self) -> None:
        self._until = None
        self._covers = 0

    def expired(self, now: float) -> bool:
        return self._until is not None and now >= self._until

    def timeout_ms(self, now: float) -> float | None:
        """How long to wait before looking again; None forever."""
        return None if self._until is None else max(0.0, self._until - now) * 1000

    def drawn(self, size: Size | None) -> bytes:
        """In reverse, with the cursor put back; nothing when there is nothing to show."""
        if self._until is None or size is None:
            return b""
        text = f" {self._text} "
        if len(text) > size.cols:
            text = text[: max(0, size.cols - 2)] + "… "
        text = text.rjust(min(self._covers, size.cols))[: size.cols]
        self._covers = len(text)
        place = b"\x1b[%d;%dH" % (size.rows, size.cols - len(text) + 1)
        return b"\x1b7\x1b[?6l\x1b[0;7m" + place + text.encode() + b"\x1b[0m\x1b8"
