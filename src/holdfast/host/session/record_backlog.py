"""What happened to a session and could not be recorded yet.

A full or broken disk keeps nobody from halting, seizing or ending. What follows from that waits
here in order, and is written with its own time once it can be. Attaching and detaching is only
counted: there may be any amount of it, and nothing of the reserve is spent on it.

In memory only: it is lost with a daemon that dies before it could write.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.journal.entries import Body, Unrecorded
from holdfast.model.errors import SessionEnded
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.limits import JOURNAL_BACKLOG_ENTRIES

Write = Callable[[float, str, Body], object]


class Backlog:
    """Of one journal. `why` says why there is one; "" when there is none."""

    def __init__(self) -> None:
        self.why = ""
        self._facts: list[tuple[float, str, Body]] = []
        self._counted: dict[tuple[str, str], Unrecorded] = {}

    @property
    def holds(self) -> bool:
        """Whether something waits to be written that could not be refused."""
        return bool(self._facts)

    def hold(self, at: float, actor: str, body: Body, why: str) -> None:
        """This happened; behind what fits in here it is only counted."""
        if len(self._facts) >= JOURNAL_BACKLOG_ENTRIES:
            self.count(at, actor, body, why)
            return
        self._facts.append((at, actor, body))
        self.why = why

    def count(self, at: float, actor: str, body: Body, why: str) -> None:
        """This happened; only how often is recorded."""
        self.why = why
        key = actor, body.tag
        if key not in self._counted and len(self._counted) >= JOURNAL_BACKLOG_ENTRIES:
            key = HOST_ACTOR, body.tag  # of too many actors to tell them apart
        before = self._counted.get(key, Unrecorded(body.tag, 0, at))
        self._counted[key] = before.replace(count=before.count + 1)

    def write_facts(self, write: Write) -> None:
        """Those that happened, in order, until `write` raises."""
        while self._facts:
            _unless_over(write, *self._facts[0])
            del self._facts[0]
        self._settle()

    def write_counts(self, write: Write, at: float) -> None:
        """How many there were of what was only counted, until `write` raises."""
        for key, body in list(self._counted.items()):
            _unless_over(write, at, key[0], body)
            del self._counted[key]
        self._settle()

    def _settle(self) -> None:
        if not self._facts and not self._counted:
            self.why = ""


def _unless_over(write: Write, at: float, actor: str, body: Body) -> None:
    try:
        write(at, actor, body)
    except SessionEnded:
        return  # its end is recorded: nothing that happened since is part of it
