"""Waiting for a text: on the screen as it is, then in what is printed.

Both, because each alone misses something. A line that scrolls by is never seen on a screen looked
at now and then; what a full-screen program shows is never in its output as readable text. So new
output is searched as it comes, and the screen again whenever the output pauses.

A regular expression may come from anybody, and the output from any program. RE2 takes time in
proportion to the text; Python's own engine can take forever (`(a+)+$`), with the event loop in it.
"""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument, session_over
from holdfast.sdk.client_core.client_machine import ask
from holdfast.sdk.client_core.output_reader import OutputReader
from holdfast.sdk.client_core.retry_policy import OUTPUT_PAUSE_S
from holdfast.sdk.plain_text import PlainText
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from holdfast.sdk.client_core.client_io import ClientIo

    class TextMatch(Protocol):
        def group(self) -> str: ...

    class TextPattern(Protocol):
        """What is looked for: an expression of RE2, or a compiled one of the caller's own."""

        def search(self, string: str) -> TextMatch | None: ...


_KEPT_CHARS = 16 << 10  # of what was printed: a match may begin this far back


def pattern(text: str) -> TextPattern:
    """A regular expression in RE2's syntax; `^` and `$` match at lines."""
    import re2  # here: few commands need it

    options = re2.Options()
    options.log_errors = False
    try:
        found: TextPattern = re2.compile(f"(?m){text}", options)
        return found
    except re2.error as error:
        why = error.args[0] if error.args else ""
        if isinstance(why, bytes):
            why = why.decode(errors="replace")
        raise InvalidArgument(
            f"not a regular expression: {text[:80]!r}: {why}",
            hint=r"escape special characters with \, as in 1\+1; there is no look-ahead, "
            "look-behind or back reference",
        ) from error


async def wait_for_text(
    io: ClientIo, session: str, wanted: TextPattern, since: int | None, *, observe: bool = True
) -> str:
    """The text that matched. With `since`: only in the output from there on."""
    look = since is None
    if since is None:
        screen = await ask(io, m.GetScreen(0, session), m.ScreenShown)
        if found := wanted.search(screen.text):
            return found.group()
        since = screen.offset
    reader = OutputReader(io, session, since, observe=observe)
    printed, kept, came = PlainText(), "", False
    try:
        while True:
            piece = await reader.next(OUTPUT_PAUSE_S if look and came else None)
            if isinstance(piece, m.Closed):
                raise session_over(reader.name, piece.ending, how="ended before that")
            came = piece is not None
            if piece is not None:
                text = kept + printed.feed(piece.data)
                kept = text[-_KEPT_CHARS:]
            else:
                text = (await ask(io, m.GetScreen(0, session), m.ScreenShown)).text
            if found := wanted.search(text):
                return found.group()
    finally:
        reader.close()
