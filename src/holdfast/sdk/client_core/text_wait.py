"""Waiting for a text: on the screen as it is, then in what is printed.

Both, because each alone misses something. A line that scrolls by is never seen on a screen looked
at now and then; what a full-screen program shows is never in its output as readable text. So new
output is searched as it comes, and the screen again whenever the output pauses.
"""

from __future__ import annotations

import re

from holdfast.model.errors import InvalidArgument, session_over
from holdfast.sdk.client_core.client_machine import ask
from holdfast.sdk.client_core.output_reader import OutputReader
from holdfast.sdk.client_core.retry_policy import OUTPUT_PAUSE_S
from holdfast.sdk.plain_text import PlainText
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client_core.client_io import ClientIo

_KEPT_CHARS = 16 << 10  # of what was printed: a match may begin this far back


def pattern(text: str) -> re.Pattern[str]:
    """A regular expression; `^` and `$` match at lines."""
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise InvalidArgument(
            f"not a regular expression: {text[:80]!r}: {error}",
            hint=r"escape special characters with \, as in 1\+1",
        ) from error


async def wait_for_text(
    io: ClientIo, session: str, wanted: re.Pattern[str], since: int | None, *, observe: bool = True
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
