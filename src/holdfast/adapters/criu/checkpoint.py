"""Checkpoint and restore of a contained session with CRIU.

Which CRIU: the distribution's own if its check passes here, else the one `criu_install` unpacked
into a prefix, run with its own loader. Always with our preload shim (see native/criu_shim.c) and
with a timeout around every call: a failed `criu restore` may hang.

Every call blocks for tens of milliseconds and more: the daemon runs it in a thread.

Deliberately does not yet carry unread terminal input across, migrate, or share memory between
branches: those need CRIU's notifications, which the command line does not give.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

from holdfast.adapters import compiled, pty
from holdfast.adapters.criu.stage import STAGE
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import syscalls
from holdfast.model.errors import LaunchFailed, LevelUnavailable
from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.spec import Place
from holdfast.ports.launch import Launched

CHECK_TIMEOUT_S = 20.0
DUMP_TIMEOUT_S = 120.0  # grows with memory: about 0.8 s per GB into the page cache
RESTORE_TIMEOUT_S = 120.0
SEIZE_TIMEOUT_S = 5  # how long CRIU tries to stop every task before it gives up
GHOST_LIMIT = "64M"  # largest deleted but open file that is taken into the image
REASONS_SHOWN = 3  # lines of CRIU's log in an error

_MANIFEST = "holdfast.json"
_LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
_TIOCGDEV = 0x8004_5432
_OUTER_TTY = os.makedev(136, 0)  # /dev/pts/0 of the session's own devpts
_CTTY = os.makedev(5, 0)


class DumpError(Exception):
    """CRIU could not take the session. It runs on as before; the text is CRIU's reason."""


class Manifest(Record):
    """What must be known beside CRIU's own images to restore them; kept with them."""

    tty: str  # CRIU's key for the terminal as it was
    ctty: str  # the same for an open /dev/tty; "" if some mean another terminal
    mounts: tuple[str, ...]
    size: Size
    uid: int  # owner of the terminal
    program_pid: int  # main process, in the session's own numbering


class Criu(Record):
    """A CRIU that passed its own check here."""

    program: str
    command: tuple[str, ...]
    shim: str
    preload_by_environment: bool

    def version(self) -> str:
        done = _run(self, ("--version",), timeout_s=CHECK_TIMEOUT_S)
        words = done.stdout.split()
        return words[words.index("Version:") + 1] if "Version:" in words else "of unknown version"


def prefix() -> Path:
    """Where `criu_install` unpacks."""
    return Path("/var/cache/holdfast/criu")


@functools.cache
def find() -> Criu | str:
    """A CRIU that works here, or why there is none. Asked once per process."""
    if os.geteuid() != 0:
        return "CRIU needs root"
    shim = compiled.build(compiled.SHIM)
    if isinstance(shim, str):
        return f"the shim for CRIU cannot be had: {shim}"
    reasons = []
    for candidate in (_distributions_own(str(shim)), _from_prefix(str(shim))):
        if candidate is None:
            continue
        why = _unfit(candidate)
        if not why:
            return candidate
        reasons.append(f"{candidate.program} does not work here: {why}")
    return "; ".join(reasons) or "there is no CRIU"


def _distributions_own(shim: str) -> Criu | None:
    program = shutil.which("criu", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    return Criu(program, (program,), shim, True) if program else None


def _from_prefix(shim: str) -> Criu | None:
    program = prefix() / "usr/sbin/criu"
    for libraries in sorted((prefix() / "usr/lib").glob("*-linux-gnu")):
        for loader in (libraries / name for name in _LOADERS):
            if loader.exists() and program.exists():
                command = (str(loader), "--preload", shim, "--library-path", str(libraries))
                return Criu(str(program), (*command, str(program)), shim, False)
    return None


def _unfit(candidate: Criu) -> str:
    try:
        done = _run(candidate, ("check",), timeout_s=CHECK_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return next(iter(_reasons(done.stdout)), f"its check failed with {done.returncode}")


def _run(
    found: Criu,
    words: tuple[str, ...],
    *,
    timeout_s: float,
    pass_fds: tuple[int, ...] = (),
    environment: dict[str, str] | None = None,
    **staging: object,
) -> subprocess.CompletedProcess[str]:
    """Run CRIU through `criu_stage`; `staging` are further fields of its Setting."""
    setting = {"command": [*found.command, *words], **staging}
    preload = {"LD_PRELOAD": found.shim} if found.preload_by_environment else {}
    return subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.adapters.criu.stage", json.dumps(setting)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout_s,
        pass_fds=pass_fds,
        cwd="/",
        env={**os.environ, **preload, **(environment or {})},
        start_new_session=True,
    )


def _usable() -> Criu:
    found = find()
    if isinstance(found, str):
        raise LevelUnavailable(
            f"level movable is not available: {found}",
            hint="run: python -m holdfast.adapters.criu.install",
        )
    return found


# -- dump -------------------------------------------------------------------------------------


def dump(place: Place, master: int, directory: str, *, leave_running: bool = False) -> None:
    """Write an image of the session into `directory`, which is made if need be.

    Without `leave_running` the session's processes are gone afterwards. Raises DumpError with
    the session running on, or LevelUnavailable."""
    found = _usable()
    os.makedirs(directory, mode=0o700, exist_ok=True)
    manifest = _manifest(place, master)
    words = [
        *("dump", "-t", str(place.pid), "-D", directory, "-o", "dump.log", "-v2"),
        *("--timeout", str(SEIZE_TIMEOUT_S)),
        *("--external", manifest.tty),
        *("--external", "mnt[/dev/pts]:devpts", "--external", "mnt[/dev]:dev"),
        *_common_options(),
        *("--tcp-established", "--network-lock", "nftables", "--skip-in-flight"),
    ]
    if manifest.ctty:
        words += ["--external", manifest.ctty]
    for index, path in enumerate(manifest.mounts):
        words += ["--external", f"mnt[{path}]:m{index}"]
    if leave_running:
        words.append("--leave-running")
    if place.cgroup and cgroup.frozen(place.cgroup):
        # CRIU would wait for ever for frozen tasks to stop, unless it is told who froze them.
        words += ["--freeze-cgroup", place.cgroup]
    try:
        done = _run(found, tuple(words), timeout_s=DUMP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise DumpError(f"CRIU did not end within {DUMP_TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        raise DumpError(_why(f"{directory}/dump.log", done))
    with open(f"{directory}/{_MANIFEST}", "w", encoding="utf-8") as file:
        json.dump(manifest.pack(), file)


def _common_options() -> list[str]:
    # The session is put where we want it by the process that becomes CRIU, hence `ignore`.
    return ["--manage-cgroups=ignore", "--file-locks", "--link-remap", "--ghost-limit", GHOST_LIMIT]


def _manifest(place: Place, master: int) -> Manifest:
    slave = pty.open_slave(master)
    try:
        facts = os.fstat(slave)
    finally:
        os.close(slave)
    ctty = ""
    if not _holders_of_inner_terminals(place):
        ctty = _tty_key(os.stat(f"/proc/{place.pid}/root/dev/tty"))
    return Manifest(
        tty=_tty_key(facts),
        ctty=ctty,
        mounts=place.mounts,
        size=pty.size(master),
        uid=facts.st_uid,
        program_pid=_inner_pid(place.shell_pid) if place.shell_pid else 0,
    )


def _tty_key(facts: os.stat_result) -> str:
    return f"tty[{facts.st_rdev:x}:{facts.st_dev:x}]"


def _inner_pid(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return next(int(line.split()[-1]) for line in file if line.startswith("NSpid:"))


def _holders_of_inner_terminals(place: Place) -> list[int]:
    """Processes with an open /dev/tty that stands for another terminal than the session's.

    An open /dev/tty stays with the terminal it was opened under. Ours is declared external and
    restored as ours; others must not be, so CRIU is left to refuse them."""
    return [pid for pid in cgroup.processes(place.cgroup) if _holds_inner_terminal(pid)]


def _holds_inner_terminal(pid: int) -> bool:
    import fcntl

    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            if os.stat(f"/proc/{pid}/fd/{name}").st_rdev != _CTTY:
                continue
            pidfd = os.pidfd_open(pid)
            try:
                copy = syscalls.pidfd_getfd(pidfd, int(name))
            finally:
                os.close(pidfd)
            try:
                device: int = struct.unpack("I", fcntl.ioctl(copy, _TIOCGDEV, bytes(4)))[0]
            finally:
                os.close(copy)
            if device != _OUTER_TTY:
                return True
    except OSError:
        return False  # it ended while we looked, or its terminal hung up
    return False


# -- restore ----------------------------------------------------------------------------------


def restore(directory: str, session: SessionId, instance: str) -> Launched:
    """Bring an image back to life in a new cgroup and on a new terminal, with its own pid numbers.

    Its first process becomes a child of the nearest subreaper, as after a launch. Raises
    LaunchFailed with nothing left behind, or LevelUnavailable."""
    found = _usable()
    try:
        manifest = _read_manifest(directory)
        home = cgroup.home(instance)
        if home is None:
            raise LevelUnavailable("no cgroup v2 hierarchy is mounted")
        terminal = pty.open_private(manifest.size, manifest.uid)
        try:
            group = cgroup.create(home, session)
        except OSError:
            terminal.close()
            raise
    except OSError as error:
        raise LaunchFailed(f"the image cannot be restored: {error}") from error
    pid = 0
    try:
        pid = _restore_into(found, directory, manifest, terminal, group)
        pidfd = os.pidfd_open(pid)
    except BaseException:
        # Killing by group also reaches what a stuck CRIU had half restored.
        cgroup.kill(group)
        cgroup.remove(group)
        os.close(terminal.master)
        raise
    finally:
        os.close(terminal.slave)
        os.close(terminal.devpts)
    place = Place(
        pid=pid,
        shell_pid=_child_with_inner_pid(pid, manifest.program_pid),
        tty=terminal.path,
        cgroup=group,
        mounts=manifest.mounts,
    )
    return Launched(place, terminal.master, pidfd)


def _read_manifest(directory: str) -> Manifest:
    with open(f"{directory}/{_MANIFEST}", encoding="utf-8") as file:
        return Manifest.unpack(json.load(file))


def _restore_into(
    found: Criu, directory: str, manifest: Manifest, terminal: pty.PtyPair, group: str
) -> int:
    pidfile = f"{directory}/restored.pid"
    log = "restore.log"
    if os.path.exists(pidfile):
        os.unlink(pidfile)
    # Each needs a descriptor of its own: CRIU closes them one by one.
    second = os.dup(terminal.slave)
    words = [
        *("restore", "-D", directory, "-o", log, "-v2", "-d", "--pidfile", pidfile),
        *("--root", f"{STAGE}/root"),
        *("--inherit-fd", f"fd[{terminal.slave}]:{manifest.tty}"),
        *("--external", f"mnt[devpts]:{STAGE}/devpts", "--external", f"mnt[dev]:{STAGE}/dev"),
        *_common_options(),
        *("--tcp-established", "--skip-in-flight"),
    ]
    if manifest.ctty:
        words += ["--inherit-fd", f"fd[{second}]:{manifest.ctty}"]
    for index in range(len(manifest.mounts)):
        words += ["--external", f"mnt[m{index}]:{STAGE}/m{index}"]
    try:
        done = _run(
            found,
            tuple(words),
            timeout_s=RESTORE_TIMEOUT_S,
            pass_fds=(terminal.slave, second, terminal.devpts),
            environment={"HOLDFAST_CTTY": f"{manifest.program_pid}:{terminal.path}"},
            mounts=list(manifest.mounts),
            devpts=terminal.devpts,
            cgroup=group,
        )
    except subprocess.TimeoutExpired:
        raise LaunchFailed(f"CRIU did not end within {RESTORE_TIMEOUT_S:.0f} s") from None
    finally:
        os.close(second)
    if done.returncode != 0:
        raise LaunchFailed(f"the image cannot be restored: {_why(f'{directory}/{log}', done)}")
    with open(pidfile, encoding="ascii") as file:
        return int(file.read())


def _child_with_inner_pid(pid: int, wanted: int) -> int:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(child) for child in file.read().split()]
        return next((child for child in children if _inner_pid(child) == wanted), 0)
    except (OSError, StopIteration):
        return 0  # it ended at once


def _why(log: str, done: subprocess.CompletedProcess[str]) -> str:
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            reasons = _reasons(file.read())
    except OSError:
        reasons = []
    reasons = reasons or _reasons(done.stdout)
    if done.returncode < 0:
        reasons.append(f"CRIU died of {signal.Signals(-done.returncode).name}")
    return "; ".join(reasons[:REASONS_SHOWN]) or f"CRIU ended with {done.returncode}"


def _reasons(log: str) -> list[str]:
    """The errors in a log, without CRIU's clock and source positions."""
    found = []
    for line in log.splitlines():
        _, error, text = line.partition("Error (")
        if error:
            found.append(text.partition("): ")[2].strip() or text)
    return found
