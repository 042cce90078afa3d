"""Which captured files a restore puts back, and how that is undone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgpack
import pytest

from holdfast.adapters.captured_files.put_back import PuttingBack, differences
from holdfast.core.continuity.changed_files import decide
from holdfast.host.continuity.workspace_files import CAPTURED, FILES, compare
from holdfast.model.captured_files import (
    CapturedDirectory,
    CapturedFile,
    FileCapture,
    FileDifference,
    RestoreFiles,
)
from holdfast.model.errors import CheckpointInvalid, FilesChanged
from holdfast.model.home import Home

STOPPED = 1000.0
BEFORE, AFTER = int(999e9), int(1001e9)


def of_file(path: str, *, is_open: bool = False, size: int = 3) -> CapturedFile:
    return CapturedFile(path, 0o600, 0, 0, size, open=is_open)


OWN = FileDifference("/own", BEFORE, of_file("/own", is_open=True), size=9)
OTHERS = FileDifference("/others", AFTER, of_file("/others"), size=3)
MADE = FileDifference("/made", BEFORE)
OPEN = FileDifference("/open", AFTER, of_file("/open", is_open=True), size=3)


@pytest.mark.requirement("M2")
def test_what_the_session_wrote_goes_back_and_what_others_wrote_stays() -> None:
    decided = decide((OWN, OTHERS, MADE), RestoreFiles.ASK, STOPPED)
    assert decided == ((OWN, MADE), (OTHERS,))
    with pytest.raises(FilesChanged, match="/open"):
        decide((OWN, OPEN), RestoreFiles.ASK, STOPPED)


@pytest.mark.requirement("M2")
def test_what_was_asked_for_is_done_with_all() -> None:
    every = (OWN, OTHERS, MADE, OPEN)
    assert decide(every, RestoreFiles.RESTORE, STOPPED) == (every, ())
    assert decide((OTHERS, MADE, OPEN), RestoreFiles.KEEP, STOPPED) == ((), (OTHERS, MADE, OPEN))
    with pytest.raises(FilesChanged, match="/own"):  # CRIU would refuse it
        decide(every, RestoreFiles.KEEP, STOPPED)


class Tree:
    """A captured directory, changed since."""

    def __init__(self, at: Path) -> None:
        self.root, self.data = at / "root", at / "data"
        for path in (self.root / "deep", self.data):
            path.mkdir(parents=True)
        (self.root / "same").write_text("same")
        (self.data / "1").write_text("edited then")
        (self.data / "2").write_text("gone then")
        (self.data / "3").write_text("same")
        self.capture = FileCapture(
            (str(self.root),),
            (
                CapturedFile(f"{self.root}/deep/gone", 0o640, *ids(), 9, 5, data="2"),
                CapturedFile(f"{self.root}/edited", 0o644, *ids(), 11, 7, data="1"),
                CapturedFile(f"{self.root}/same", 0o600, *ids(), 4, data="3"),
            ),
            (
                CapturedDirectory(str(self.root), 0o755),
                CapturedDirectory(f"{self.root}/deep", 0o750),
            ),
        )
        (self.root / "edited").write_text("edited since")
        (self.root / "deep").rmdir()
        (self.root / "made").write_text("made since")

    def content(self) -> dict[str, str]:
        found = (each for each in self.root.rglob("*") if each.is_file())
        return {str(each.relative_to(self.root)): each.read_text() for each in found}

    def find(self) -> tuple[FileDifference, ...]:
        data = os.open(self.data, os.O_RDONLY)
        try:
            return differences(self.capture, data, ())
        finally:
            os.close(data)


def ids() -> tuple[int, int]:
    return os.getuid(), os.getgid()


@pytest.mark.requirement("M2")
def test_a_directory_becomes_what_it_was_and_nothing_is_lost(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    found = tree.find()
    assert sorted(Path(each.path).name for each in found) == ["edited", "gone", "made"]
    data = os.open(tree.data, os.O_RDONLY)
    try:
        for number in ("", ".2"):
            putting = PuttingBack(tree.capture, data, "ck-x")
            putting.put_back(tree.find())
            kept = f".holdfast-kept/ck-x{number}"
            assert putting.kept_in == (f"{tree.root}/{kept}",)
            now = tree.content()
            assert now["edited"] == "edited then" and now["deep/gone"] == "gone then"
            assert now[f"{kept}/edited"] == "edited since" and "made" not in now
            assert (tree.root / "edited").stat().st_mtime_ns == 7
            assert (tree.root / "deep").stat().st_mode & 0o777 == 0o750
            assert tree.find() == ()
            (tree.root / "edited").write_text("edited since")
    finally:
        os.close(data)


@pytest.mark.requirement("M2")
def test_undone_it_is_as_if_nothing_had_been_put_back(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    before, found = tree.content(), tree.find()
    data = os.open(tree.data, os.O_RDONLY)
    try:
        putting = PuttingBack(tree.capture, data, "ck-x")
        putting.put_back(found)
        putting.undo()
        assert tree.content() == before
        known = [each for each in found if each.file is not None]
        assert [each for each in tree.find() if each.file is not None] == known
        (tree.data / "1").unlink()  # it fails in the middle
        with pytest.raises(FileNotFoundError):
            PuttingBack(tree.capture, data, "ck-x").put_back(found)
        assert tree.content() == before
    finally:
        os.close(data)


def test_a_link_in_place_of_a_declared_directory_is_not_followed(tmp_path: Path) -> None:
    tree, other = Tree(tmp_path), tmp_path / "other"
    tree.root.rename(other)
    tree.root.symlink_to(other)
    (other / "secret").write_text("not the session's")
    named = {Path(each.path).name for each in tree.find()}
    assert named == {"edited", "gone"}


@pytest.mark.parametrize("data", ["../1", "/etc/passwd", "..", "x", "\u0661"])
def test_a_checkpoint_cannot_name_bytes_that_are_not_its_own(tmp_path: Path, data: str) -> None:
    """As one that came from another host might."""
    (tmp_path / FILES).mkdir()
    file = of_file(str(tmp_path / "file"), size=1).replace(data=data)
    (tmp_path / CAPTURED).write_bytes(msgpack.packb(FileCapture(files=(file,)).pack()))
    home = Home(str(tmp_path / "state"), "", str(tmp_path / "run"))
    comparing = compare(str(tmp_path), home, os.getuid(), RestoreFiles.RESTORE, STOPPED)
    with pytest.raises(CheckpointInvalid, match="names no file"):
        asyncio.run(comparing)
