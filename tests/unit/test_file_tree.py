"""Looking at files on behalf of a session: bounded, complete or said not to be, and no further than
the session's user may look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.adapters.file_tree import ScanReader, ScanRoot, scan
from holdfast.model.file_marks import TreeScan

ME = os.getpid()


def reader(uid: int = 0, *groups: int) -> ScanReader:
    return ScanReader(ME, uid, frozenset(groups))


def looked(
    *roots: ScanRoot | Path,
    skip: tuple[str, ...] = (),
    most: int = 1000,
    by: ScanReader | None = None,
) -> TreeScan:
    wanted = [root if isinstance(root, ScanRoot) else ScanRoot(str(root)) for root in roots]
    return scan(wanted, by or reader(), skip, most=most, seconds=10)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    os.chmod(tmp_path, 0o755)
    (tmp_path / "a").write_text("1")
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "x").write_text("22")
    return tmp_path


def test_all_of_a_tree(tree: Path) -> None:
    found = looked(tree)
    assert {path: set(names) for path, names in found.directories.items()} == {
        f"{tree}": {"a", "d"},
        f"{tree}/d": {"e"},
        f"{tree}/d/e": {"x"},
    }
    mark = found.directories[f"{tree}/d/e"]["x"]
    assert (mark.size, mark.is_directory) == (2, False)
    assert mark.inode == (tree / "d/e/x").stat().st_ino
    assert found.partial == ()


def test_content_mode_and_a_replaced_file_change_its_mark(tree: Path) -> None:
    path = tree / "a"
    marks = [looked(tree).directories[f"{tree}"]["a"]]
    stamp = path.stat()
    path.write_text("2")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as if nothing had happened
    marks.append(looked(tree).directories[f"{tree}"]["a"])
    path.chmod(0o600)
    marks.append(looked(tree).directories[f"{tree}"]["a"])
    (tree / "new").write_text("2")
    os.replace(tree / "new", path)
    marks.append(looked(tree).directories[f"{tree}"]["a"])
    assert len(set(marks)) == 4


def test_more_files_than_the_bound_are_said_and_only_whole_directories_are_given(
    tree: Path,
) -> None:
    for number in range(20):
        (tree / "d" / f"f{number}").write_text("")
    found = looked(tree, most=10)
    assert set(found.directories) == {f"{tree}"}
    assert found.partial == ("more than 10 files",)


def test_a_directory_that_is_not_there_has_nothing_in_it(tree: Path) -> None:
    found = looked(tree / "no")
    assert found == TreeScan({f"{tree}/no": {}}, ())


def test_one_that_is_not_deep_is_listed_alone(tree: Path) -> None:
    assert set(looked(ScanRoot(str(tree), deep=False)).directories) == {f"{tree}"}


def test_links_are_not_followed_and_what_is_skipped_is_not_looked_into(tree: Path) -> None:
    (tree / "link").symlink_to("/etc")
    found = looked(tree, skip=(f"{tree}/d",))
    assert set(found.directories) == {f"{tree}"}
    assert not found.directories[f"{tree}"]["link"].is_directory


def test_the_working_directory_of_a_process(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "d")
    found = looked(ScanRoot("/shown/so", is_cwd=True))
    assert set(found.directories) == {"/shown/so", "/shown/so/e"}


@pytest.mark.parametrize(
    ("mode", "by", "listed"),
    [
        (0o700, reader(4711), False),
        (0o711, reader(4711), False),
        (0o755, reader(4711), True),
        (0o750, reader(4711), False),
        (0o750, reader(4711, os.getegid()), True),
        (0o705, reader(4711, os.getegid()), False),
        (0o500, reader(os.geteuid(), 4711), True),
    ],
)
def test_a_directory_that_the_user_may_not_list_is_left_out_and_said(
    tree: Path, mode: int, by: ScanReader, listed: bool
) -> None:
    (tree / "d").chmod(mode)
    found = _below(tree, by)
    assert (f"{tree}/d" in found.directories) is listed
    assert (found.partial == ()) is listed
    if not listed:
        assert found.partial == (f"{tree}/d: the session's user may not list it",)


def _below(tree: Path, by: ScanReader) -> TreeScan:
    """By its descriptor: pytest's own directories above it are closed to others."""
    before = os.getcwd()
    os.chdir(tree)
    try:
        return looked(ScanRoot(str(tree), is_cwd=True), by=by)
    finally:
        os.chdir(before)


def test_a_path_through_a_closed_directory_leads_nowhere(tree: Path) -> None:
    (tree / "d").chmod(0o700)
    (tree / "d" / "e").chmod(0o755)
    found = looked(tree / "d" / "e", by=reader(4711))
    assert found.directories == {}
    assert found.partial == (f"{tree}/d/e: the session's user may not go there",)
