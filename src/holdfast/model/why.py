"""Who is behind something in a session: the answer to `hold why`."""

from __future__ import annotations

from holdfast.model.record import Record


class ChainLink(Record):
    """One command on the way to what was asked about."""

    number: int  # the shell's number for it
    text: str  # its line; empty when it is not remembered
    actor: str  # who set it off, by name
    authors: tuple[str, ...]  # everybody who typed it, by name, the latest last
    at: float  # when it began, seconds since 1970
    # what it did here: `set var:PATH`, `set var:DIR, which command 3 used`, `started process 4711`
    what: str


class WhoIsBehind(Record):
    """Who is behind one thing of a session."""

    target: str  # what was asked about: `var:PATH`, `pid:4711` ...
    # False: nobody saw who did it. `originators` are then those that may have, everybody that wrote
    known: bool
    # everybody behind it, by name, the one who set it off first; empty: it is as the session began
    originators: tuple[str, ...]
    trigger: str = ""  # who set the latest command of the chain off, by name
    # commands, the latest first; the others set the state that these used
    chain: tuple[ChainLink, ...] = ()
    adopted: bool = False  # the one originator took the responsibility on itself
    note: str = ""  # what to know about this answer, for people
