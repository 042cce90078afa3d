"""Version 2 control groups: one per session, to hold, freeze and end its whole tree.

They lie at `<where this process is>/holdfast-<instance>/<session>`. No controller is enabled, so
the rule against processes in inner groups does not apply, whatever group the daemon runs in.

Below a session's group there may be a leaf for each actor. What a process starts is born in its
own group: with the shell in an actor's leaf, a command and all it leaves behind are found, frozen
and killed as that actor's, until the end of their days. The init stays in the session's group.
A command line that another wrote a part of is in `actor-ID/with-OTHER`: so the kernel remembers all
the actors behind a process, for a daemon that comes later too. Below these are groups of single
commands, `run-N`.

Deliberately does not use controllers (no limits on memory or CPU) nor version 1 hierarchies.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from functools import lru_cache
from itertools import takewhile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

FREEZE_TIMEOUT_S = 2.0  # a tree freezes within milliseconds; a task in the kernel's D state later
KILL_TIMEOUT_S = 5.0
PREFIX = "holdfast-"
_LEAF_PREFIX = "actor-"
_RUN_PREFIX = "run-"  # of a group in a leaf, for a command or several that left nothing
_SHARED_PREFIX = "with-"  # of a group in a leaf, for what another actor wrote a part of
_LEAF_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
LEAF_ID_MAX_CHARS = 128  # the kernel takes 255 bytes for a name


def locate(
    mountinfo: str, membership: str, reachable: Callable[[str], bool] = lambda _: True
) -> str | None:
    """The directory of the caller's own v2 group, from the texts of /proc/self/mountinfo and
    /proc/self/cgroup. None when this host has no v2 hierarchy mounted, or all that it has are
    hidden under other mounts."""
    own = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    if own is None:
        return None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] != "cgroup2":
            continue
        root, point = (unescaped(field) for field in before.split(" ")[3:5])
        found = _below(point, root, own)
        if reachable(found):
            return found
    return None


def _below(point: str, root: str, own: str) -> str:
    if root != "/" and (own + "/").startswith(root + "/"):
        own = own[len(root) :]
    if own.startswith("/.."):  # outside of what is mounted here: the mount itself must do
        own = ""
    return point.rstrip("/") + own.rstrip("/")


def unescaped(field: str) -> str:
    """A path of mountinfo, where blanks and backslashes are written in octal."""
    if "\\" not in field:
        return field
    first, *rest = os.fsencode(field).split(b"\\")
    return os.fsdecode(first + b"".join(bytes([int(r[:3], 8)]) + r[3:] for r in rest))


def home(instance: str) -> str | None:
    """The directory that holds this instance's sessions; it need not exist yet."""
    own = _own()
    return None if own is None else f"{own}/{PREFIX}{instance}"


def _own() -> str | None:
    return locate(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"), _is_group)


def _is_group(directory: str) -> bool:
    return os.path.exists(f"{directory}/cgroup.procs")


def unavailable() -> str:
    """Why no group can be made here; "" when one can."""
    own = _own()
    if own is None:
        return "no cgroup v2 hierarchy is mounted"
    if not os.access(own, os.W_OK):
        return f"{own} cannot be written"
    return ""


def create(home: str, session: str) -> str:
    """Make the session's group; gives its directory. Left-over processes in one of the same name
    would be taken for the session's: an existing populated group is refused."""
    directory = f"{home}/{session}"
    os.makedirs(directory, exist_ok=True)
    if processes(directory):
        raise FileExistsError(errno.EEXIST, "cgroup is populated", directory)
    return directory


def processes(directory: str) -> list[int]:
    """Pids in the group and the groups below it, in the caller's numbering."""
    return _listed(directory, "cgroup.procs")


def tasks(directory: str) -> list[int]:
    """Threads in the group and the groups below it."""
    return _listed(directory, "cgroup.threads")


def _listed(directory: str, file: str) -> list[int]:
    found: list[int] = []
    todo = [directory]
    while todo:
        where = todo.pop()
        with contextlib.suppress(OSError):  # removed while we looked
            found += map(int, _read(f"{where}/{file}").split())
            # The link count says whether there are groups inside: a listing costs ten times more.
            if os.stat(where).st_nlink > 2:
                todo += [entry.path for entry in os.scandir(where) if entry.is_dir()]
    return found


def leaf(directory: str, actor: str, others: Iterable[str] = (), run: int = 0) -> str:
    """The group of one actor below a session's, made if it is not there; in it, that for what
    others wrote a part of, and in that the one of a run of commands."""
    path = leaf_path(directory, actor, others, run)
    at = len(directory)
    while at >= 0:
        at = path.find("/", at + 1)
        with contextlib.suppress(FileExistsError):
            # Not makedirs: a session that is gone is not brought back.
            os.mkdir(path if at < 0 else path[:at])
    return path


def leaf_path(directory: str, actor: str, others: Iterable[str] = (), run: int = 0) -> str:
    """Its name."""
    path = directory.rstrip("/")
    for name in (f"{_LEAF_PREFIX}{actor}", *(f"{_SHARED_PREFIX}{other}" for other in others)):
        id = name.partition("-")[2]
        if not id or len(id) > LEAF_ID_MAX_CHARS or not set(id) <= _LEAF_CHARACTERS:
            raise ValueError(f"not an id that can name a group: {id[:40]!r}")
        path = f"{path}/{name}"
    return f"{path}/{_RUN_PREFIX}{run}" if run else path


def is_alone(directory: str, pid: int) -> bool:
    """Whether this process is the only one in a group, and there is none below."""
    only = _read(f"{directory}/cgroup.procs").split() == [str(pid)]
    return only and os.stat(directory).st_nlink <= 2


def enter(directory: str, pid: int) -> None:
    """Move one process, all its threads; what it started before stays where it is.

    In a kernel that is idle this takes as long as an RCU grace period, some 10 ms, within which
    nothing else waits; right after another move, 0.03 ms. Raises ProcessLookupError when it is
    gone. To freeze a leaf without the shell, the shell is moved out first."""
    where = f"{directory}/cgroup.procs"
    if str(pid) not in _read(where).split():  # a move to where it is takes no less
        _write(where, str(pid))


def leaves(directory: str) -> dict[str, str]:
    """The actors that have a leaf here, each with its directory."""
    names = (name for name in leftovers(directory) if name.startswith(_LEAF_PREFIX))
    return {name[len(_LEAF_PREFIX) :]: f"{directory}/{name}" for name in names}


def frozen_leaves(directory: str) -> frozenset[str]:
    """The actors with a group that is to be frozen, whether or not the session's own is."""
    found = set()
    for actor, path in parts(directory):
        with contextlib.suppress(OSError):  # removed while we looked
            if asked_to_freeze(path):
                found.add(actor)
    return frozenset(found)


def actors_of(directory: str, pid: int) -> tuple[str, ...]:
    """The actors of the leaf of this session that a process is in: whoever set its command off,
    then those that wrote a part of it. Empty when it is in none, or gone."""
    try:
        membership = _read(f"/proc/{pid}/cgroup")
    except OSError:
        return ()
    return actors_in(membership, directory) or ()


def actors_in(membership: str, directory: str) -> tuple[str, ...] | None:
    """The same, from the text of /proc/PID/cgroup; None outside of the session's own group.

    By the session's own name, as a program in a session may run another host of ours."""
    names = _below_session(membership, directory)
    if names is None:
        return None
    first, *below = names or ("",)
    if not first.startswith(_LEAF_PREFIX):
        return ()
    others = takewhile(lambda name: name.startswith(_SHARED_PREFIX), below)
    return tuple(name.partition("-")[2] for name in (first, *others))


@lru_cache(maxsize=256)  # the exec gate asks about each process of a build
def _below_session(membership: str, directory: str) -> tuple[str, ...] | None:
    """Names of the groups below the session's own, down to the process's; None outside of it."""
    own = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), "")
    session = "/".join(["", *directory.rstrip("/").split("/")[-2:], ""])
    # A zombie may outlive its group; the kernel then marks the path as deleted.
    _, found, rest = (own.removesuffix(" (deleted)") + "/").partition(session)
    return tuple(rest.rstrip("/").split("/")) if found else None


def run_of(directory: str, pid: int) -> int:
    """The number of the run of commands in whose group of this session a process is; 0 when it is
    in none, or gone."""
    try:
        membership = _read(f"/proc/{pid}/cgroup")
    except OSError:
        return 0
    return run_in(membership, directory)


def run_in(membership: str, directory: str) -> int:
    """The same, from the text of /proc/PID/cgroup."""
    for name in _below_session(membership, directory) or ():
        number = name.removeprefix(_RUN_PREFIX)
        if name.startswith(_RUN_PREFIX) and number.isdecimal():
            return int(number)
    return 0


def parts(directory: str) -> list[tuple[str, str]]:
    """Every group below the session's that is one actor's, or is for what that one wrote a part of:
    the actor and the directory."""
    found: list[tuple[str, str]] = []
    todo = [directory]
    while todo:
        with contextlib.suppress(OSError):  # removed while we looked
            for entry in os.scandir(todo.pop()):
                if entry.name.startswith((_LEAF_PREFIX, _SHARED_PREFIX)) and entry.is_dir():
                    found.append((entry.name.partition("-")[2], entry.path))
                    todo.append(entry.path)
    return found


def frozen(directory: str) -> bool:
    return _event(_read(f"{directory}/cgroup.events"), "frozen")


def freeze(directory: str, timeout_s: float = FREEZE_TIMEOUT_S) -> bool:
    """Stop every task of the tree. False: not all had stopped in time; the wish stays in force."""
    _write(f"{directory}/cgroup.freeze", "1")
    return _wait(directory, "frozen", True, timeout_s)


def ask_to_freeze(directory: str) -> None:
    """The wish alone: what the kernel makes of it is not waited for."""
    _write(f"{directory}/cgroup.freeze", "1")


def asked_to_freeze(directory: str) -> bool:
    """Whether that is its wish, fulfilled or not."""
    return _read(f"{directory}/cgroup.freeze").strip() == "1"


def thaw(directory: str, timeout_s: float = FREEZE_TIMEOUT_S) -> bool:
    _write(f"{directory}/cgroup.freeze", "0")
    return _wait(directory, "frozen", False, timeout_s)


def kill(directory: str, timeout_s: float = KILL_TIMEOUT_S) -> bool:
    """SIGKILL to the whole tree, frozen or not; True when no process is left running."""
    try:
        _write(f"{directory}/cgroup.kill", "1")
    except FileNotFoundError:  # a kernel before 5.14, or the group is gone
        if not os.path.exists(directory):
            return True
        return _kill_one_by_one(directory, timeout_s)
    return _wait(directory, "populated", False, timeout_s)


def _kill_one_by_one(directory: str, timeout_s: float) -> bool:
    """Freezing first, so that nothing forks away; a fatal signal reaches frozen tasks."""
    deadline = time.monotonic() + timeout_s
    freeze(directory, timeout_s / 2)
    for pid in processes(directory):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _write(f"{directory}/cgroup.freeze", "0")
    return _wait(directory, "populated", False, deadline - time.monotonic())


def remove(directory: str) -> bool:
    """Remove an empty group and those below it; False when tasks are left in one of them."""
    gone = True
    for where, _, _ in os.walk(directory, topdown=False):
        try:
            os.rmdir(where)
        except FileNotFoundError:
            continue
        except OSError:
            gone = False
    return gone


def leftovers(home: str) -> list[str]:
    """Names of the sessions that have a group under `home`."""
    try:
        return sorted(entry.name for entry in os.scandir(home) if entry.is_dir())
    except FileNotFoundError:
        return []


def _wait(directory: str, what: str, wanted: bool, timeout_s: float) -> bool:
    """Wait for a line of cgroup.events; the kernel reports a change as POLLPRI."""
    deadline = time.monotonic() + timeout_s
    try:
        fd = os.open(f"{directory}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return what == "populated" and not wanted  # removed: nothing runs in it
    try:
        poll = select.poll()
        poll.register(fd, select.POLLPRI)
        while True:
            # Read before each wait: a change between writing and polling must not be missed.
            if _event(os.pread(fd, 4096, 0).decode(), what) == wanted:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            poll.poll(left * 1000)
    except OSError as error:
        if error.errno == errno.ENODEV:  # removed while we waited
            return what == "populated" and not wanted
        raise
    finally:
        os.close(fd)


def _event(text: str, name: str) -> bool:
    return f"{name} 1" in text.splitlines()


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
