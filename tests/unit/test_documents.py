"""The documents refer to things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)[^)]*\)")
_PATH = re.compile(
    r"`((?:src|tests|docs|scripts|bench|core|host|adapters|keeper|model|wire|cli|sdk)/[\w./-]+)`"
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_named_exists(document: Path) -> None:
    """Paths are written from the root, or from src/holdfast."""
    named = _PATH.findall(document.read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "src" / "holdfast")
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_the_index_lists_every_document() -> None:
    linked = set(_LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert documents - linked == set()


ROOMS = [
    *(f"core{room}" for room in ("", "/access", "/turn", "/lease")),
    *(f"host{room}" for room in ("", "/session", "/connection", "/access", "/reach")),
    *("journal", "keeper"),
]


@pytest.mark.parametrize("package", ROOMS)
def test_a_package_says_what_each_of_its_files_is_for(package: str) -> None:
    directory = ROOT / "src" / "holdfast" / package
    said = (directory / "__init__.py").read_text(encoding="utf-8")
    files = {path.name for path in directory.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"\w+\.py", said)) == files
