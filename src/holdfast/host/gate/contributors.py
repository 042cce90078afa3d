"""Who had a part in an effect at the gate, as it needs them. Who is behind the state and the files
that a line uses is in provenance.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from holdfast.host.access.actor_book import ActorBook
from holdfast.model.actor import ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import HOST_ACTOR, ActorId


class Provenance(Protocol):
    """Who is behind a line of one session."""

    def contributors_of_line(
        self, text: str | None, authors: Sequence[str]
    ) -> tuple[Contributor, ...]:
        """`text`: None if the shell does not say; `authors`: by id, who sets it off last."""
        ...

    def check(self, contributors: Iterable[Contributor]) -> None:
        """Raise unless all of them may write there now."""
        ...


def contributor(actors: ActorBook, actor: str, part: Part) -> Contributor:
    known = actors.get(actor)
    kind = known.kind if known else ActorKind.SERVICE
    return Contributor(ActorId(actor), actors.name(actor), kind, part)


def merged(first: Contributor, others: Iterable[Contributor]) -> tuple[Contributor, ...]:
    """The one who sets it off first; each part of each once."""
    found = {(each.actor, each.part, each.what): each for each in (first, *others)}
    return tuple(each for each in found.values() if each.actor != HOST_ACTOR)
