"""The documents refer to things that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.core.access import inside_rules

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


_SENSITIVE = {
    "end": "end", "seize": "seize", "revoke_turn": "turn revoke", "set_turn_policy": "turn policy",
    "resume": "resume", "add_actor": "actor add", "revoke_actor": "actor revoke", "grant": "grant",
    "revoke": "revoke", "make_invite": "invite", "revoke_invite": "invite", "prune": "prune",
    "revoke_device": "device revoke", "set_relays": "host", "restart_daemon": "daemon restart",
    "shutdown": "down", "policy_set": "policy set", "policy_off": "policy off", "adopt": "adopt",
    "approve": "approve", "deny": "deny", "revive": "revive", "reap": "reap",
    "checkpoint": "checkpoint", "restore": "restore", "delete_checkpoint": "checkpoints rm",
    "move": "move",
}  # fmt: skip


@pytest.mark.requirement("A11")
def test_what_is_refused_from_inside_is_listed_with_its_verbs() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| `grant`, `revoke`, "))
    assert set(_SENSITIVE) == inside_rules.SENSITIVE
    assert set(re.findall("`([a-z ]+)`", row)) == set(_SENSITIVE.values())


def test_the_index_lists_every_document() -> None:
    linked = set(_LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    documents = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert documents - linked == set()


ROOMS = [
    *(f"core{room}" for room in ("", "/access", "/turn", "/lease", "/continuity")),
    *(
        f"host{room}"
        for room in ("", "/session", "/connection", "/access", "/reach", "/continuity")
    ),
    *("journal", "keeper"),
]


@pytest.mark.parametrize("package", ROOMS)
def test_a_package_says_what_each_of_its_files_is_for(package: str) -> None:
    directory = ROOT / "src" / "holdfast" / package
    said = (directory / "__init__.py").read_text(encoding="utf-8")
    files = {path.name for path in directory.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"\w+\.py", said)) == files
