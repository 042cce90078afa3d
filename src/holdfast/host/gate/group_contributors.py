"""Who is behind a process of a contained session, and behind a file that it executes or reads.

A process: by the control group that it is in from birth (host/session/command_leaves.py): its
actors, and whoever had a part in the command that started it. A file: whoever wrote it, by inode,
as the exec gate reports; kept with the session's provenance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from holdfast.adapters.halt import cgroup
from holdfast.core.gate.originators import Origin
from holdfast.host.gate.command_book import Approved, PartIn
from holdfast.host.gate.provenance import SessionProvenance
from holdfast.model.gate import Contributor, Part

_KEEP_AFTER_S = 0.5  # the answerer reports again what was written meanwhile
_READERS_MAX = 1024  # control groups that read what others wrote
_COMMANDS_MAX = 32  # that may have started one process, if they share a group


class GroupContributors:
    """Of one session."""

    def __init__(
        self,
        directory: str,
        created_by: str,
        provenance: SessionProvenance,
        commands_in: Callable[[str], tuple[int, int] | None],
    ) -> None:
        """`commands_in`: the first and the last command that may have started a process."""
        self._directory, self._created_by = directory, created_by
        self._provenance, self._commands_in = provenance, commands_in
        self._keeping: asyncio.TimerHandle | None = None
        # By control group: in which command (0: not known) it read what somebody else wrote.
        self._read: dict[str, dict[tuple[int, PartIn], None]] = {}

    def of_group(self, membership: str) -> tuple[Contributor, ...]:
        """Whoever set it off first. What is in no actor's group is of whoever started the session;
        what left the session's own group may be anybody's that wrote there."""
        actors = cgroup.actors_in(membership, self._directory)
        if actors is None:
            return self.everybody()
        found = list(self._contributors(actors or (self._created_by,)))
        first, last = self._commands_in(membership) or (1, 0)
        for number in range(max(first, last - _COMMANDS_MAX + 1), last + 1):
            found += self._provenance.contributors_of_command(number)
        for number, part in self._read.get(membership, ()):
            if not last or first <= number:
                found.append(self._provenance.contributor(part))
        return tuple(dict.fromkeys(found))

    def approved(self, membership: str) -> Approved | None:
        """The line that started the process, if it was held and then approved."""
        first, last = self._commands_in(membership) or (0, 0)
        command = self._provenance.commands.get(last) if first == last else None
        return command.approved if command is not None else None

    def of_file(self, device: int, inode: int, path: str) -> tuple[Contributor, ...]:
        written = self._provenance.files.find(device, inode)
        if written is None:
            return ()
        origin, what = written.origin, f"file:{path}"
        return tuple(
            self._provenance.contributor(PartIn(actor, Part.FILE, what, origin.command))
            for actor in origin.actors
        )

    def of_state(self, key: str) -> tuple[Contributor, ...]:
        """Who set a piece of the shell's state; nobody if the shell began with it."""
        origin = self._provenance.book.entries.get(key)
        if origin is None:
            return ()
        return tuple(
            self._provenance.contributor(PartIn(actor, Part.STATE, key, origin.command))
            for actor in origin.actors
        )

    def wrote(self, membership: str, device: int, inode: int, path: str, *, adds: bool) -> None:
        """All who are behind the process are behind the file."""
        actors = dict.fromkeys(each.actor for each in self.of_group(membership))
        _, last = self._commands_in(membership) or (0, 0)
        origin = Origin(last, tuple(actors))
        self._provenance.wrote(device, inode, path, origin, adds=adds)
        if self._keeping is None:
            self._keeping = asyncio.get_running_loop().call_later(_KEEP_AFTER_S, self._keep)

    def read(self, membership: str, device: int, inode: int) -> None:
        """Whoever wrote the file is behind the command from here on, and so behind what it leaves
        in the shell; any other process of its control group may have read it as well."""
        written = self._provenance.files.find(device, inode)
        if written is None or cgroup.actors_in(membership, self._directory) is None:
            return
        origin = written.origin
        what = f"file:{written.path}"
        parts = [PartIn(actor, Part.FILE, what, origin.command) for actor in origin.actors]
        self._took(membership, parts)

    def learns(self, membership: str, of: str) -> None:
        """Everybody behind one group is behind what the other does from here on."""
        if cgroup.actors_in(membership, self._directory) is not None:
            actors = dict.fromkeys(each.actor for each in self.of_group(of))
            self._took(membership, [PartIn(actor, Part.INPUT) for actor in actors])

    def _took(self, membership: str, parts: Iterable[PartIn]) -> None:
        own = {each.actor for each in self.of_group(membership)}
        _, last = self._commands_in(membership) or (0, 0)
        for part in parts:
            if part.actor not in own:
                self._read.setdefault(membership, {})[last, part] = None
                self._provenance.command_read(last, part)
        while len(self._read) > _READERS_MAX:
            del self._read[next(iter(self._read))]

    def files(self) -> Iterable[tuple[str, int, int]]:
        return self._provenance.files.places()

    def everybody(self) -> tuple[Contributor, ...]:
        """That ever had a part in the session."""
        found = [self._created_by, *self._provenance.everybody()]
        found += [actor for actor, _ in cgroup.parts(self._directory)]
        return self._contributors(found)

    def close(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            self._keep()

    def _keep(self) -> None:
        self._keeping = None
        self._provenance.keep_files()

    def _contributors(self, actors: Iterable[str]) -> tuple[Contributor, ...]:
        known = dict.fromkeys(actor for actor in actors if actor)
        parts = [Part.TRIGGER, *[Part.TYPED] * len(known)]
        return tuple(
            self._provenance.contributor(PartIn(actor, part))
            for actor, part in zip(known, parts, strict=False)
        )
