"""Who had a part in an effect, as far as it is known by who typed what.

What state and files an effect uses, and whose these are, is said by whatever is put in place of
`TypedContributors` (the Protocol `Provenance`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from holdfast.host.access.actor_book import ActorBook
from holdfast.model.actor import ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import HOST_ACTOR, ActorId


class Provenance(Protocol):
    """Who is behind a line of one session."""

    def contributors_of_line(self, text: str, authors: Sequence[str]) -> tuple[Contributor, ...]:
        """`authors`: who typed it, by id."""
        ...


class TypedContributors:
    """Those who typed it, and nobody else."""

    def __init__(self, actors: ActorBook) -> None:
        self._actors = actors

    def contributors_of_line(self, text: str, authors: Sequence[str]) -> tuple[Contributor, ...]:
        return tuple(contributor(self._actors, author, Part.TYPED) for author in authors)


def contributor(actors: ActorBook, actor: str, part: Part) -> Contributor:
    known = actors.get(actor)
    kind = known.kind if known else ActorKind.SERVICE
    return Contributor(ActorId(actor), actors.name(actor), kind, part)


def merged(first: Contributor, others: Iterable[Contributor]) -> tuple[Contributor, ...]:
    """The one who sets it off first; each part of each once."""
    found = {(each.actor, each.part, each.what): each for each in (first, *others)}
    return tuple(each for each in found.values() if each.actor != HOST_ACTOR)
