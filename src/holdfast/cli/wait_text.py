"""Waiting for a text: on the screen as it is, then in what is printed.

Both, because each alone misses something. A line that scrolls by is never seen on a screen looked
at now and then; what a full-screen program shows is never in its output as readable text. So new
output is searched as it comes, and the screen again whenever the output pauses.
"""

from __future__ import annotations

import re
import time

from holdfast.cli.raw_output import RawOutput
from holdfast.model.errors import InvalidArgument, SessionEnded, TimedOut
from holdfast.sdk.plain_text import PlainText
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client import Host

_KEPT_CHARS = 16 << 10  # of what was printed: a match may begin this far back
_PAUSE_S = 0.1  # output that rests this long may have completed a screen


class TextPattern:
    """A regular expression; `^` and `$` match at lines."""

    def __init__(self, text: str) -> None:
        try:
            self._regex = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise InvalidArgument(
                f"not a regular expression: {text[:80]!r}: {error}",
                hint=r"escape special characters with \, as in text:1\+1",
            ) from error
        self._kept = ""
        self._plain = PlainText()

    def wait(self, host: Host, session: str, since: int | None, deadline: float | None) -> int:
        info = host.show(session)
        if info.ending is not None:
            raise SessionEnded(f"{info.name} has ended: {info.ending}")
        # Attached before the screen is asked for, so that nothing falls between the two.
        output = RawOutput(host, info.id, since)
        look = since is None
        while True:
            if look and self._on_screen(host, info.id):
                return 0
            message = self._next(output, deadline, may_pause=since is None and not look)
            look = message is None
            if isinstance(message, m.Output) and self._in_output(message.data):
                return 0
            if isinstance(message, m.Closed):
                raise SessionEnded(f"{info.name} ended before that: {message.ending}")

    def _next(
        self, output: RawOutput, deadline: float | None, *, may_pause: bool
    ) -> m.Output | m.Gap | m.Closed | None:
        """What comes next; None when output came and then paused."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not may_pause:
            return output.next(left)
        pause = _PAUSE_S if left is None else min(_PAUSE_S, left)
        try:
            return output.next(pause)
        except TimedOut:
            if left is not None and left <= _PAUSE_S:
                raise
            return None

    def _in_output(self, data: bytes) -> bool:
        text = self._kept + self._plain.feed(data)
        self._kept = text[-_KEPT_CHARS:]
        return self._regex.search(text) is not None

    def _on_screen(self, host: Host, session: str) -> bool:
        return self._regex.search(host.screen(session).text) is not None
