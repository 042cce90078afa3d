"""Messages about who is behind what a session holds, runs and printed."""

from __future__ import annotations

from holdfast.model.why import WhoIsBehind
from holdfast.wire.messages.base import Answer, Request


class AskWhy(Request, tag="why"):
    """Who is behind something of a session. Answered by WhyShown."""

    session: str
    # `pid:N`, `port:N`, `file:PATH`, `var:NAME`, `alias:NAME`, `func:NAME`, `option:NAME`,
    # `trap:NAME`, `hash:NAME`, `path:DIRECTORY`, `dir:NAME`, `job:PID`, `cwd`, `umask`,
    # `line:N` of the scrollback, or `command:N`
    target: str


class Adopt(Request, tag="adopt"):
    """The asker answers from now on for what others are behind; it needs the right `input`.
    Recorded. Answered by WhyShown."""

    session: str
    target: str  # as for `why`


class WhyShown(Answer, tag="why_shown"):
    why: WhoIsBehind  # who is behind it, now
