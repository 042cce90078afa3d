"""What this host can do, found out once and shown by `hold doctor`; and the tidying after hosts
that died."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import resource
import shutil

from holdfast.adapters import compiled
from holdfast.adapters.criu import find as criu
from holdfast.adapters.halt import cgroup
from holdfast.adapters.shell import integration
from holdfast.model.home import Home
from holdfast.model.ids import SessionId
from holdfast.model.info import Finding
from holdfast.model.state import Level


@functools.cache
def highest() -> Level:
    """The best level a session can be started at here. Asking CRIU takes a moment, so the daemon
    asks once, off its loop, when it starts."""
    if os.geteuid() != 0 or cgroup.unavailable():
        return Level.PLAIN
    return Level.CONTAINED if isinstance(criu.find(), str) else Level.MOVABLE


@functools.cache
def criu_version() -> str:
    """Of the CRIU that works here; empty when there is none. Not on the loop, as `highest`."""
    found = criu.find() if os.geteuid() == 0 else ""
    return "" if isinstance(found, str) else found.version()


def findings(home: Home) -> list[Finding]:
    """Every line of the doctor."""
    return [
        Finding("python", True, platform.python_version()),
        Finding("kernel", True, platform.release()),
        _init_finding(),
        _cgroup_finding(),
        _root_finding(),
        _criu_finding(),
        _storage_finding(home),
        _descriptors_finding(),
        *(_shell_finding(name) for name in ("bash", "zsh", "fish")),
    ]


def bell_path(home: Home, session: SessionId) -> str:
    """The FIFO on which a session's shell reports its commands."""
    return f"{home.run}/bells/{session}"


def remove_bell(home: Home, session: SessionId) -> None:
    for path in (bell_path(home, session), integration.state_path(bell_path(home, session))):
        with contextlib.suppress(OSError):
            os.unlink(path)


def remove_cgroup_home(instance: str) -> None:
    """Our cgroup directory, empty now that no session is left."""
    directory = cgroup.home(instance)
    if directory is not None and os.path.isdir(directory):
        cgroup.remove(directory)


def make_places(home: Home) -> None:
    """The directories of FIFOs and tokens."""
    for directory in _places(home):
        os.makedirs(directory, mode=0o711, exist_ok=True)
        os.chmod(directory, 0o711)  # whatever the umask; users reach their own, list nothing


def _places(home: Home) -> tuple[str, str]:
    return f"{home.run}/bells", f"{home.run}/tokens"


def clear_leftovers(instance: str, home: Home, living: set[SessionId]) -> list[str]:
    """What dead hosts left behind: FIFOs, tokens, and trees in our cgroup that nobody holds. Gives
    the names of trees that could not be ended, as something in them waits in the kernel."""
    for directory in _places(home):
        for name in os.listdir(directory):
            if name.partition(".")[0] not in living:
                with contextlib.suppress(OSError):
                    os.unlink(f"{directory}/{name}")
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(f"{home.run}/snapshots"):
            if name not in living:
                shutil.rmtree(f"{home.run}/snapshots/{name}", ignore_errors=True)
    own = cgroup.home(instance)
    if os.getuid() != 0 or own is None or not os.path.isdir(own):
        return []
    dead = [name for name in cgroup.leftovers(own) if name not in living]
    return end_trees(instance, dead, cgroup.KILL_TIMEOUT_S)


def end_trees(instance: str, names: list[str], timeout_s: float) -> list[str]:
    """Of sessions that nobody holds. Gives those that are left."""
    own = cgroup.home(instance)
    return [
        name
        for name in names
        if not (cgroup.kill(f"{own}/{name}", timeout_s) and cgroup.remove(f"{own}/{name}"))
    ]


def _init_finding() -> Finding:
    for name in (compiled.INIT, compiled.KEEPER):
        built = compiled.build(name)
        if isinstance(built, str):
            return Finding("init", False, built, "apt-get install gcc, or pip install ziglang")
    return Finding("init", True, "our own init and keeper, exact statuses")


def _cgroup_finding() -> Finding:
    missing = cgroup.unavailable()
    return Finding(
        "cgroup v2",
        not missing,
        missing or "usable",
        "mount it, or run the host as root" if missing else "",
    )


def _root_finding() -> Finding:
    root = os.getuid() == 0
    return Finding(
        "contained sessions",
        highest().reaches(Level.CONTAINED),
        "own namespaces and cgroup" if root else "this host does not run as root",
        "" if root else "start the host with sudo hold up -d",
    )


def _criu_finding() -> Finding:
    found = criu.find() if os.getuid() == 0 else "needs root"
    if isinstance(found, str):
        return Finding("movable sessions", False, found, "python -m holdfast.adapters.criu.install")
    return Finding("movable sessions", True, f"CRIU {criu_version()}")


def _storage_finding(home: Home) -> Finding:
    try:
        free = shutil.disk_usage(home.state).free
        writable = os.access(home.state, os.W_OK)
    except OSError as error:
        return Finding("state", False, str(error), "make the directory writable")
    detail = f"{home.state}, {free >> 20} MiB free"
    ok = writable and free > 16 << 20
    return Finding("state", ok, detail, "" if ok else "free some space")


def _descriptors_finding() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    sessions = max(0, soft - 200) // 8
    return Finding(
        "descriptors",
        soft >= 1024,
        f"limit {soft}, enough for about {sessions} sessions",
        "" if soft >= 1024 else "raise ulimit -n before `hold up`",
    )


def _shell_finding(name: str) -> Finding:
    path = shutil.which(name)
    detail = f"{path}, `hold exec` works" if path else "not installed"
    return Finding(f"shell {name}", True, detail)
