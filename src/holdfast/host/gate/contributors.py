"""Everybody behind an effect, as the gate names them: whoever sets it off, then the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from holdfast.host.gate.command_book import Approved
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import HOST_ACTOR, ActorId

KnownActor = Callable[[ActorId], Actor | None]


class Provenance(Protocol):
    """Who is behind what happens in one session (provenance.py)."""

    def contributors_of_line(
        self, text: str | None, authors: Sequence[str]
    ) -> tuple[Contributor, ...]:
        """`text`: None if the shell does not say. `authors`: who typed it, by id."""
        ...

    def line_passed(self, approved: Approved | None) -> None:
        """A line is about to be taken; None: it needed no approval."""
        ...

    def contributors_of_key(
        self, text: str | None, authors: Sequence[str], key: bytes
    ) -> tuple[Contributor, ...]:
        """The same, of what another key than Enter does with the line."""
        ...

    def authors_of_history(self) -> tuple[Contributor, ...]:
        """Whoever may have put something into the shell's history."""
        ...

    def behind_resize(self) -> tuple[Contributor, ...]:
        """Of what the shell runs when the terminal's size changes."""
        ...

    def behind_running(self) -> tuple[Contributor, ...]:
        """Of the command that reads the terminal now."""
        ...

    def check(self, contributors: Iterable[Contributor]) -> None:
        """Raise unless all of them may write now."""
        ...


def contributor(
    known: KnownActor, actor: str, part: Part, what: str = "", command: int = 0
) -> Contributor:
    """An actor that is unknown, or no longer known, counts as an agent: a rule that is stricter
    about agents must not be avoided by removing one."""
    found = known(ActorId(actor))
    name, kind = (found.name, found.kind) if found else (str.__str__(actor), ActorKind.AGENT)
    return Contributor(ActorId(actor), name, kind, part, what, command)


def typed_before(found: Iterable[Contributor]) -> list[Contributor]:
    """Whoever set off one part of it did not set off the whole."""
    return [each.replace(part=Part.TYPED) if each.part is Part.TRIGGER else each for each in found]


def merged(first: Contributor, others: Iterable[Contributor]) -> tuple[Contributor, ...]:
    """The one who sets it off first; each part of each once."""
    found = {(each.actor, each.part, each.what): each for each in (first, *others)}
    return tuple(each for each in found.values() if each.actor != HOST_ACTOR)
