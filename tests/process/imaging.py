"""Directories of images as checkpoints have them, and places for blobs that fail when told to."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.adapters import key_file
from holdfast.adapters.blobs.directory import DirectoryBlobs
from holdfast.adapters.signing import SigningKey
from holdfast.host.continuity.checkpoint_book import CheckpointBook
from holdfast.host.continuity.image_store import ImageStore
from holdfast.model.checkpoint import CheckpointDescription, CheckpointKind, MachineNeeds
from holdfast.model.ids import SessionId
from holdfast.model.state import Level
from holdfast.ports.blob_store import Blob, BlobStore

SESSION, OTHER = SessionId("0" * 26), SessionId("1" * 26)
PAGE = 4096


def described(seq: int = 7, session: SessionId = SESSION) -> CheckpointDescription:
    return CheckpointDescription(
        session=session,
        session_name="work",
        epoch=2,
        kind=CheckpointKind.MEMORY,
        created_at=1_000_000.0 + seq,
        created_by="",
        level=Level.MOVABLE,
        machine=MachineNeeds("x86_64", "6.1.0", "4.1"),
        journal_seq=seq,
        journal_head=bytes(32),
        note="before the upgrade",
        frozen_ms=12.5,
        total_ms=30.0,
    )


def pages(seed: int, count: int) -> bytes:
    """Memory that cannot be compressed, and is the same for the same seed."""
    return random.Random(seed).randbytes(count * PAGE)


def images(directory: Path, memory: bytes = b"") -> Path:
    """What CRIU leaves: small files, one large, and what was captured beside them."""
    (directory / "upper" / "src").mkdir(parents=True)
    for number in range(20):
        (directory / f"core-{number}.img").write_bytes(pages(number, 1)[: 100 + number])
    (directory / "pages-1.img").write_bytes(memory or pages(1, 600))
    (directory / "empty").touch()
    (directory / "upper" / "src" / "main.c").write_text("int main;\n")
    (directory / "upper" / "src" / "main.c").chmod(0o640)
    (directory / "upper" / "link").symlink_to("src/main.c")
    with (directory / "sparse").open("wb") as sparse:
        sparse.truncate(3 << 20)
    return directory


def contents(directory: Path) -> dict[str, tuple[int, bytes | str]]:
    """Every path with its mode and what it holds."""
    found: dict[str, tuple[int, bytes | str]] = {}
    for path in directory.rglob("*"):
        kept: bytes | str = b""
        if path.is_symlink():
            kept = os.readlink(path)
        elif path.is_file():
            kept = path.read_bytes()
        found[str(path.relative_to(directory))] = (path.lstat().st_mode, kept)
    return found


class Host:
    """One host with its store, which can be started again."""

    def __init__(self, directory: Path, blobs: Callable[[], BlobStore] | None = None) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self._blobs = blobs or (lambda: DirectoryBlobs(str(self.place)))
        self.key = SigningKey.load_or_create(f"{directory}/host.key")
        self.secret = key_file.load_or_create(f"{directory}/checkpoint.key")

    @property
    def place(self) -> Path:
        return self.directory / "checkpoints"

    def open(self, quota: int = 0, blobs: BlobStore | None = None) -> ImageStore:
        book = CheckpointBook(str(self.directory / "checkpoints.json"))
        return ImageStore(blobs or self._blobs(), self.key, self.secret, book, quota)

    def blobs(self) -> dict[str, Path]:
        """What is in the directory, by its name in there."""
        files = (path for path in self.place.rglob("*") if path.is_file())
        return {str(path.relative_to(self.place)): path for path in files}

    def manifests(self) -> list[Path]:
        return [path for name, path in self.blobs().items() if "/checkpoints/" in name]

    def chunks(self) -> list[Path]:
        return [path for name, path in self.blobs().items() if "/chunks/" in name]


class Died(BaseException):
    """The process is no more: nothing is tidied up."""


class DyingBlobs:
    """A place whose user dies at the nth change, before or after it happened."""

    def __init__(self, place: BlobStore, dies_at: int, *, after: bool = False) -> None:
        self._place, self._left, self._after = place, dies_at, after
        self.changes = 0

    def put(self, name: str, data: bytes, *, new: bool = False) -> bool:
        with_it = self._step()
        done = self._place.put(name, data, new=new) if with_it else False
        self._die_if_due()
        return done

    def delete(self, name: str) -> None:
        if self._step():
            self._place.delete(name)
        self._die_if_due()

    def flush(self) -> None:
        self._place.flush()

    def get(self, name: str) -> bytes | None:
        return self._place.get(name)

    def list(self, prefix: str) -> Iterator[Blob]:
        return self._place.list(prefix)

    def close(self) -> None:
        self._place.close()

    def _step(self) -> bool:
        """Whether this change still happens."""
        self.changes += 1
        if self.changes > self._left:
            raise Died
        return self.changes < self._left or self._after

    def _die_if_due(self) -> None:
        if self.changes >= self._left:
            raise Died
