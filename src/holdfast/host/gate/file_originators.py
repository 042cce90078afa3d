"""Who wrote which file, as far as the kernel said: by device and inode, so that a file keeps its
originators when it is renamed.

At level contained the exec gate reports writes. At level plain nobody does, and the book is empty:
"no entry" says nothing there. The oldest entries are forgotten; from then on a file without an
entry is *unknown* and counts as written by those whose entries are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.core.gate.originators import Origin
from holdfast.model.record import Record

FILES_MAX = 20_000  # inodes with an originator: a build writes some thousands


class WrittenFile(Record):
    """What is known of one file."""

    path: str  # as it was named when it was written last
    origin: Origin


class KeptFiles(Record):
    """The book, to be kept for another daemon."""

    files: dict[str, WrittenFile] = {}  # noqa: RUF012 - `DEVICE:INODE`, the oldest first
    forgotten: tuple[str, ...] = ()


class FileOriginators:
    """The files that one session's commands wrote."""

    def __init__(self, kept: KeptFiles | None = None) -> None:
        kept = kept or KeptFiles()
        self._files = dict(kept.files)
        self.forgotten = kept.forgotten

    def kept(self) -> KeptFiles:
        return KeptFiles(self._files, self.forgotten)

    def __len__(self) -> int:
        return len(self._files)

    def wrote(self, dev: int, inode: int, path: str, origin: Origin, *, adds: bool = False) -> None:
        """A command wrote this file: everybody behind the command is behind the file. `adds`: what
        was in it before may still be there, so its originators stay."""
        key = f"{dev}:{inode}"
        before = self._files.pop(key, None)
        actors: Iterable[str] = origin.actors
        if adds and before is not None:
            actors = dict.fromkeys((*origin.actors, *before.origin.actors))
        self._files[key] = WrittenFile(path, Origin(origin.command, tuple(actors)))
        self._bound()

    def find(self, dev: int, inode: int) -> WrittenFile | None:
        """Who wrote it; None: nobody that was seen."""
        found = self._files.get(f"{dev}:{inode}")
        if found is not None or not self.forgotten:
            return found
        return WrittenFile("", Origin(0, self.forgotten))

    def find_name(self, dev: int, inode: int) -> WrittenFile | None:
        """Who gave this link or directory its name. Most were named before the session began: what
        is forgotten does not count."""
        return self._files.get(f"{dev}:{inode}")

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Path, device and inode of each."""
        for key, file in self._files.items():
            device, _, inode = key.partition(":")
            yield file.path, int(device), int(inode)

    def adopt(self, dev: int, inode: int, path: str, actor: str) -> None:
        """This actor answers for it from now on."""
        before = self._files.pop(f"{dev}:{inode}", None)
        command = before.origin.command if before else 0
        self._files[f"{dev}:{inode}"] = WrittenFile(path, Origin(command, (actor,), adopted=True))
        self._bound()

    def _bound(self) -> None:
        while len(self._files) > FILES_MAX:
            oldest = self._files.pop(next(iter(self._files)))
            self.forgotten = tuple(dict.fromkeys((*self.forgotten, *oldest.origin.actors)))
