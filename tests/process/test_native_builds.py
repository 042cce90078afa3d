"""The native programs, built on this machine: by its own compiler, or by the wheel `ziglang`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters import compiled
from process import custody
from process.waiting import PATIENCE_S

NATIVE = Path(compiled.__file__).parent.parent / "native"


def test_without_a_compiler_of_the_machine_ziglang_builds_programs_that_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ZIG_LOCAL_CACHE_DIR", str(tmp_path / "cache"))
    built = {name: compiled.build(name, tmp_path) for name in (compiled.INIT, compiled.KEEPER)}
    assert all(isinstance(path, Path) for path in built.values()), built
    monkeypatch.undo()
    monkeypatch.setattr(compiled, "program", lambda name: str(built[name]))
    with custody.kept("exit 137") as session:
        session.deposit()
        news = session.news()
        assert news is not None and news.status == {"code": 137}
        assert session.collect().blob == b"state"


@pytest.mark.parametrize("source", ["hold_init.c", "hold_keeper.c"])
def test_they_can_be_built_for_the_other_architecture(source: str, tmp_path: Path) -> None:
    flags = [
        "-target",
        "aarch64-linux-musl",
        "-Os",
        "-static",
        "-nostdlib",
        "-ffreestanding",
        "-Werror",
    ]
    words = [*flags, str(NATIVE / source), "-o", str(tmp_path / "built")]
    cache = {f"ZIG_{kind}_CACHE_DIR": str(tmp_path / "cache") for kind in ("GLOBAL", "LOCAL")}
    done = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *words],
        env={**os.environ, **cache},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="the machine has no compiler of its own")
def test_a_changed_header_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "native"
    shutil.copytree(NATIVE, sources)
    monkeypatch.setattr(compiled, "_SOURCES", sources)
    first = compiled.build(compiled.KEEPER, tmp_path)
    with open(sources / "freestanding.h", "a", encoding="ascii") as file:
        file.write("/* changed */\n")
    second = compiled.build(compiled.KEEPER, tmp_path)
    assert isinstance(first, Path) and isinstance(second, Path) and first != second
