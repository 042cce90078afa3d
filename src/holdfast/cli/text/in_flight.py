"""What was under way in a lost session, in lines for people."""

from __future__ import annotations

from holdfast.cli.text.sanitize import quoted, sanitize
from holdfast.cli.text.table import clock
from holdfast.model.info import InFlight, SessionInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_CHARS = 80  # of one text
_NAMED = 10  # variables that had another value
_UNFINISHED = "whether any of this took effect is not known"


def lost_lines(info: SessionInfo) -> Iterator[str]:
    """Nothing of one that was not lost."""
    if info.ending is None or info.ending.lost is None:
        return
    going_on = info.in_flight
    if going_on is None:
        yield "its journal does not say what was in flight"
        return
    found = [*_in_flight(going_on), *_held(info)]
    yield from found
    yield _UNFINISHED if found else "its journal names nothing in flight"


def _held(info: SessionInfo) -> Iterator[str]:
    for each in info.last_known.held if info.last_known is not None else ():
        text = quoted(each.text.encode(), _CHARS)
        yield f"waited for approval {each.id}, by {sanitize(each.actor)}: {text} (it was not done)"


def last_known_lines(info: SessionInfo) -> Iterator[tuple[str, str]]:
    """How a lost session last was: a word, and what is said of it."""
    known = info.last_known
    if known is None:
        return
    yield "last seen", f"{known.state} in {sanitize(known.cwd)}, {clock(known.at)}"
    if known.environment:
        names = [sanitize(each) for each in known.environment[:_NAMED]]
        more = len(known.environment) - len(names)
        yield "changed", ", ".join([*names, *([f"and {more} more"] if more else [])])
    for job in known.jobs:
        yield "job", sanitize(job, _CHARS)
    if known.present:
        yield "attached", ", ".join(sanitize(each.name) for each in known.present)
    if known.holder:
        yield "turn", f"{sanitize(known.holder)} held it"


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
