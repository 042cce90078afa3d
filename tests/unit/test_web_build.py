"""How the web app gets into the package: when it is built again, and what a failure leaves."""

from __future__ import annotations

import gzip
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Stands for Vite: writes a page, or fails if the sources ask for it.
_VITE = """
import pathlib, sys
page = pathlib.Path("index.html").read_text()
if "broken" in page:
    sys.exit("error: no build of something broken")
out = pathlib.Path(sys.argv[sys.argv.index("--outDir") + 1])
(out / "assets").mkdir(parents=True)
(out / "index.html").write_text(page)
(out / "assets" / "app.js").write_text("1;" * 500)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """scripts/web-build in a tree of its own, with Python for Node.js."""
    loader = importlib.machinery.SourceFileLoader("web_build", str(ROOT / "scripts" / "web-build"))
    spec = importlib.util.spec_from_loader("web_build", loader)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    loader.exec_module(made)
    web = tmp_path / "web"
    vite = web / "node_modules" / "vite" / "bin" / "vite.js"
    vite.parent.mkdir(parents=True)
    vite.write_text(_VITE)
    (web / "package.json").write_text("{}")
    (web / "index.html").write_text("first")
    lock = {"packages": {"": {}, "node_modules/vite": {"version": "1.0.0"}}}
    (web / "package-lock.json").write_text(json.dumps(lock))
    (web / "node_modules" / ".package-lock.json").write_text(json.dumps(lock))
    (tmp_path / "relay").mkdir()
    monkeypatch.setattr(made, "SOURCES", web)
    monkeypatch.setattr(made, "BUILT", tmp_path / "relay" / "web")
    monkeypatch.setattr(made, "STAGED", tmp_path / "build" / "web")
    monkeypatch.setattr(made, "find_node", lambda: Path(sys.executable))
    return made


def test_a_build_is_put_in_place_with_its_packed_forms(script: ModuleType) -> None:
    script.build(force=False)
    built: Path = script.BUILT
    assert (built / "index.html").read_text() == "first"
    packed = (built / "assets" / "app.js.gz").read_bytes()
    assert gzip.decompress(packed) == (built / "assets" / "app.js").read_bytes()
    assert not script.STAGED.exists()


def test_it_is_built_again_when_its_sources_changed_and_not_otherwise(script: ModuleType) -> None:
    script.build(force=False)
    (script.BUILT / "mark").touch()
    (script.SOURCES / "node_modules" / "new").touch()  # no source of ours
    script.build(force=False)
    assert (script.BUILT / "mark").exists()
    (script.SOURCES / "index.html").write_text("second")
    script.build(force=False)
    assert not (script.BUILT / "mark").exists()
    assert (script.BUILT / "index.html").read_text() == "second"


def test_a_file_that_moved_is_a_change(script: ModuleType) -> None:
    before = script.hash_of_sources()
    (script.SOURCES / "index.html").rename(script.SOURCES / "other.html")
    assert script.hash_of_sources() != before


def test_a_build_that_fails_says_why_and_leaves_the_last_one(script: ModuleType) -> None:
    script.build(force=False)
    (script.SOURCES / "index.html").write_text("broken")
    with pytest.raises(script.CannotBuild, match="no build of something broken"):
        script.build(force=False)
    assert (script.BUILT / "index.html").read_text() == "first"
    (script.SOURCES / "index.html").write_text("mended")
    script.build(force=False)
    assert (script.BUILT / "index.html").read_text() == "mended"


@pytest.mark.parametrize(
    ("there", "enough"),
    [
        ({"node_modules/vite": {"version": "1.0.0"}}, True),
        ({"node_modules/vite": {"version": "0.9.0"}}, False),
        ({}, False),
    ],
)
def test_packages_are_installed_when_they_are_not_those_of_the_lock_file(
    script: ModuleType, there: dict[str, object], enough: bool
) -> None:
    lock = script.SOURCES / "package-lock.json"
    wanted = json.loads(lock.read_text())
    wanted["packages"]["node_modules/for-another-machine"] = {"version": "1", "optional": True}
    lock.write_text(json.dumps(wanted))
    noted = script.SOURCES / "node_modules" / ".package-lock.json"
    noted.write_text(json.dumps({"packages": there}))
    assert script.installed() is enough


@pytest.mark.parametrize(
    ("said", "enough"),
    [("v20.19.0", True), ("v22.12.1", True), ("v24.0.0", True), ("v18.20.4", False),
     ("v20.18.0", False), ("v21.9.0", False), ("v22.11.0", False), ("strange", False)],
)  # fmt: skip
def test_a_node_that_is_too_old_is_passed_over(
    script: ModuleType, tmp_path: Path, said: str, enough: bool
) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho {said}\n")
    node.chmod(0o755)
    assert script.new_enough(str(node)) is enough


def test_the_lock_file_is_whole_for_every_platform() -> None:
    """`npm ci` refuses one that is not; scripts/web-lock makes it so."""
    done = subprocess.run([ROOT / "scripts" / "web-lock", "--check"], capture_output=True)
    assert done.returncode == 0, "run scripts/web-lock"


def test_the_lock_file_names_no_place_to_download_from() -> None:
    assert '"resolved"' not in (ROOT / "web" / "package-lock.json").read_text()
