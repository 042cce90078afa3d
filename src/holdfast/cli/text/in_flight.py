"""What was under way in a lost session, in lines for people."""

from __future__ import annotations

from holdfast.cli.text.sanitize import quoted, sanitize
from holdfast.model.info import InFlight, SessionInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CHARS = 80  # of one text
_UNFINISHED = "whether any of this took effect is not known"


def lost_lines(info: SessionInfo) -> Iterator[str]:
    """Nothing of one that was not lost."""
    if info.ending is None or info.ending.lost is None:
        return
    going_on = info.in_flight
    if going_on is None:
        yield "its journal does not say what was in flight"
        return
    found = list(_in_flight(going_on))
    yield from found
    yield _UNFINISHED if found else "its journal names nothing in flight"


def _in_flight(of: InFlight) -> Iterator[str]:
    if of.command is not None:
        by = f" by {sanitize(of.command.actor)}" if of.command.actor else ""
        yield f"running: {sanitize(of.command.text, _CHARS)}{by} (in {sanitize(of.command.cwd)})"
    for each in of.inputs:
        typed = quoted(each.text.encode(), _CHARS) if each.text else f"{each.bytes} secret bytes"
        yield f"input {each.seq} by {sanitize(each.actor)}: {typed}"
    if of.unsubmitted:
        by = ", ".join(map(sanitize, of.unsubmitted_by))
        yield f"typed and not submitted, by {by}: {quoted(of.unsubmitted.encode(), _CHARS)}"
