"""Who is behind a process of a contained session, by the control group that it is in: what an actor
starts is born in that actor's group, and stays there (adapters/halt/cgroup.py).

Deliberately knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.adapters.halt import cgroup
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import ActorId


class GroupContributors:
    """Of one session."""

    def __init__(
        self, directory: str, created_by: str, actor: Callable[[ActorId], Actor | None]
    ) -> None:
        self._directory, self._created_by, self._actor = directory, created_by, actor

    def of_group(self, membership: str) -> tuple[Contributor, ...]:
        """Whoever set it off first. What is in no actor's group is of whoever started the session;
        what left the session's own group may be anybody's that wrote there."""
        actors = cgroup.actors_in(membership, self._directory)
        if actors is None:
            return self.everybody()
        return self._contributors(actors or (self._created_by,))

    def of_file(self, device: int, inode: int, path: str) -> tuple[Contributor, ...]:
        return ()

    def everybody(self) -> tuple[Contributor, ...]:
        """That ever had a part in the session."""
        found = [self._created_by]
        for actor, leaf in cgroup.leaves(self._directory).items():
            found += [actor, *cgroup.others_in(leaf)]
        return self._contributors(found)

    def _contributors(self, actors: Iterable[str]) -> tuple[Contributor, ...]:
        known = dict.fromkeys(actor for actor in actors if actor)
        parts = [Part.TRIGGER, *[Part.TYPED] * len(known)]
        return tuple(
            self._contributor(actor, part) for actor, part in zip(known, parts, strict=False)
        )

    def _contributor(self, actor: str, part: Part) -> Contributor:
        id = ActorId(actor)
        found = self._actor(id)
        # One that is no longer known counts as what policies trust least.
        name, kind = (found.name, found.kind) if found else (actor, ActorKind.AGENT)
        return Contributor(id, name, kind, part)
