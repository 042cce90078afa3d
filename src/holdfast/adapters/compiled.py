"""The compiled programs: where they are stored and how they are built.

The C sources are part of the package; they are compiled on the machine they run on, once, into a
cache whose file names carry a hash of source and flags: an upgrade builds beside the old file, a
second run builds nothing. `python -m holdfast.adapters.compiled` builds all and says what it did.

The compiler is the machine's own, or else the one of the `ziglang` wheel (`pip install
holdfast[native]`). Without either no session can be started: `program` says what is missing. An
attached client without its key loop does the same work in Python.

Deliberately does not ship binaries.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast.model.errors import LaunchFailed
from holdfast.model.native_builds import KEY_LOOP, Program, kept_in

COMPILE_TIMEOUT_S = 60.0

INIT = "hold-init"
KEEPER = "hold-keeper"
SHIM = "criu-shim.so"
GHOSTS = "hold-ghosts"

_SOURCES = Path(__file__).resolve().parent.parent / "native"
_ZIG_LACKS = "-Wl,-z,noseparate-code"  # it costs a page or two
# -nostdlib and no separate code pages keep them at a few kB on disk and a few pages resident.
_FREESTANDING = (
    "-Os -static -nostdlib -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables "
    "-fno-pie -no-pie -Wl,-z,noseparate-code -Wl,--build-id=none -s"
)
_HEADERS = ("freestanding.h",)
_PROGRAMS = {
    INIT: Program(INIT, "hold_init.c", tuple(_FREESTANDING.split()), headers=_HEADERS),
    KEEPER: Program(KEEPER, "hold_keeper.c", tuple(_FREESTANDING.split()), headers=_HEADERS),
    SHIM: Program(
        SHIM,
        "criu_shim.c",
        ("-O2", "-fPIC", "-shared"),
        ("-ldl",),
        headers=("tracee.h",),
        more_sources=("criu_ghost.c",),
    ),
    GHOSTS: Program(GHOSTS, "hold_ghosts.c", ("-O2",), ("-pthread",)),
    KEY_LOOP.name: KEY_LOOP,
}


def directory() -> Path:
    """Where compiled programs are kept: with the installation if it can be written, else the
    user's cache."""
    beside, cache = kept_in(sys.prefix, os.environ, os.path.expanduser("~"))
    return Path(beside if os.access(os.path.dirname(beside), os.W_OK) else cache)


def build(name: str, into: Path | None = None) -> Path | str:
    """The compiled program, built now if it was not yet; or the reason why there is none."""
    program = _PROGRAMS[name]
    sources = [str(_SOURCES / name) for name in (program.source, *program.more_sources)]
    try:
        text = b"".join((_SOURCES / name).read_bytes() for name in program.texts)
    except OSError as error:
        return f"the source {program.source} is missing from the installation: {error.strerror}"
    target = (into or directory()) / program.file_name(text, os.uname().machine)
    if os.access(target, os.X_OK):
        return target
    compiler = _compiler()
    if compiler is None:
        return (
            "there is no C compiler: install gcc or clang, or `pip install ziglang` beside holdfast"
        )
    flags = [flag for flag in program.flags if "ziglang" not in compiler or flag != _ZIG_LACKS]
    return _compile([*compiler, *flags, *sources, *program.libraries], target)


def _compiler() -> list[str] | None:
    """The machine's own, else that of the wheel `ziglang`."""
    own = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if own is not None:
        return [own]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    return None


def _compile(command: list[str], target: Path) -> Path | str:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Built beside and renamed: another process never sees half a program.
        handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        os.close(handle)
    except OSError as error:
        return f"{target.parent} cannot be written: {error.strerror}"
    try:
        done = subprocess.run(
            [*command[:-1], command[-1], "-o", made],
            capture_output=True,
            text=True,
            timeout=COMPILE_TIMEOUT_S,
        )
        if done.returncode != 0:
            first = next(iter(done.stderr.splitlines()), "no message")
            return f"the C compiler refused it: {first}"
        os.chmod(made, 0o755)
        os.rename(made, target)
        return target
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the C compiler could not be run: {error}"
    finally:
        if os.path.exists(made):
            os.unlink(made)


def program(name: str) -> str:
    """The path of a program that sessions need. Raises LaunchFailed."""
    built = build(name)
    if isinstance(built, str):
        raise LaunchFailed(f"{name} cannot be built: {built}")
    return str(built)


def main() -> int:
    missing = 0
    for name in _PROGRAMS:
        result = build(name)
        if isinstance(result, Path):
            print(f"{name}: {result}")
        else:
            missing += 1
            print(f"{name}: not built: {result}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
