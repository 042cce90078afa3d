"""Who is behind a process of a contained session, by the control group that it is in: what an actor
starts is born in that actor's group, and stays there (adapters/halt/cgroup.py).

And who wrote which file, by inode, since somebody asks: so a file keeps its writers when it is
renamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.adapters.halt import cgroup
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import ActorId

FILES_MAX = 20_000  # with somebody known behind them: a build writes some thousands


class GroupContributors:
    """Of one session."""

    def __init__(
        self, directory: str, created_by: str, actor: Callable[[ActorId], Actor | None]
    ) -> None:
        self._directory, self._created_by, self._actor = directory, created_by, actor
        self._files: dict[
            tuple[int, int], tuple[ActorId, ...]
        ] = {}  # by whom written, oldest first

    def of_group(self, membership: str) -> tuple[Contributor, ...]:
        """Whoever set it off first. What is in no actor's group is of whoever started the session;
        what left the session's own group may be anybody's that wrote there."""
        actors = cgroup.actors_in(membership, self._directory)
        if actors is None:
            return self.everybody()
        return self._contributors(actors or (self._created_by,))

    def of_file(self, device: int, inode: int, path: str) -> tuple[Contributor, ...]:
        wrote = self._files.get((device, inode), ())
        what = f"file:{path}"
        return tuple(self._contributor(actor, Part.FILE, what) for actor in wrote)

    def wrote(self, membership: str, device: int, inode: int, path: str, *, adds: bool) -> None:
        """All who are behind the process are behind the file."""
        key = device, inode
        before = self._files.pop(key, ()) if adds else ()
        actors = [each.actor for each in self.of_group(membership)]
        self._files[key] = tuple(dict.fromkeys((*actors, *before)))
        if len(self._files) > FILES_MAX:
            del self._files[next(iter(self._files))]

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

    def _contributor(self, actor: str, part: Part, what: str = "") -> Contributor:
        id = ActorId(actor)
        found = self._actor(id)
        # One that is no longer known counts as what policies trust least.
        name, kind = (found.name, found.kind) if found else (actor, ActorKind.AGENT)
        return Contributor(id, name, kind, part, what)
