"""The file tree a contained session sees: the host's, with a /proc, /sys and /dev of its own.

The root is a bind of the host's / without what is mounted below it; every real mount of the host
(/home, /tmp, ...) is then bound at its own path, one by one. So the session's mount table is
short and known, which a checkpoint needs: each of those binds is declared external to CRIU.

Of the host's files only holdfast's own are hidden, keys above all (`hide`): a program in a session
has the authority of the actors behind it, and not that of the keys its unix user can read. For the
rest the session sees and writes what its user can: containment here is for identity, freezing and
checkpoints, not a sandbox. Mounts made on the host later are not seen inside, and an unmount there
does not reach inside.
"""

from __future__ import annotations

import contextlib
import os
import stat

from holdfast.adapters.halt.cgroup import unescaped
from holdfast.adapters.launch import syscalls
from holdfast.model.home import is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SESSION_NAMESPACES = (
    syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS
)

# Kernel interfaces, not places to keep files; the session gets its own of those it needs.
_NOT_REAL = frozenset(
    (
        "proc",
        "sysfs",
        "devpts",
        "devtmpfs",
        "cgroup",
        "cgroup2",
        "mqueue",
        "debugfs",
        "securityfs",
        "bpf",
        "tracefs",
        "autofs",
        "configfs",
        "fusectl",
        "pstore",
        "efivarfs",
        "hugetlbfs",
        "binfmt_misc",
        "nsfs",
        "rpc_pipefs",
        "selinuxfs",
    )
)
_OWN = ("/proc", "/sys", "/dev")

# The new root is assembled over /proc in the private namespace: a directory every host has, below
# which nothing is ever bound from, and that leaves nothing on disk to clean up.
_ASSEMBLY = "/proc"

_SAFE = syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC
_COVER_OPTIONS = "mode=755,size=64k"

_NODES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_HOST_NODES = ("fuse", "kvm", "net/tun")  # harmless where the host has them, sorely missed if not


def host_mounts(mountinfo: str) -> dict[str, set[int]]:
    """Paths where the host has a real file system mounted, parents first, without / itself; with
    the kernel's ids of the mounts stacked there."""
    found: dict[str, set[int]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        path = unescaped(fields[4])
        if path == "/" or after.split(" ", 1)[0] in _NOT_REAL:
            continue
        if not any(path == own or path.startswith(own + "/") for own in _OWN):
            found.setdefault(path, set()).add(int(fields[0]))
    return {path: found[path] for path in sorted(found, key=lambda path: path.split("/"))}


def current_mounts() -> tuple[str, ...]:
    """The host's real mounts that can be reached: one mounted over their parent hides others."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        candidates = host_mounts(file.read())
    return tuple(path for path, ids in candidates.items() if _mount_at(path) in ids)


def _mount_at(path: str) -> int | None:
    """Id of the mount the path leads to. (`os.path.ismount` misses binds within one device.)"""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
            return next(int(line[7:]) for line in file if line.startswith("mnt_id:"))
    finally:
        os.close(fd)


def build_root(devpts: int, mounts: Iterable[str], skipped: Callable[[str, OSError], None]) -> None:
    """In a fresh mount namespace: make the session's tree and enter it. `skipped` hears of each
    host mount that could not be bound; the session runs without it."""
    nodes = host_nodes()
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    root = _ASSEMBLY
    # The host's root file system, and nothing mounted below it.
    syscalls.mount("/", root, None, syscalls.MS_BIND)
    syscalls.mount(None, root, None, syscalls.MS_PRIVATE)
    for path in mounts:
        try:
            syscalls.mount(path, root + path, None, syscalls.MS_BIND)
        except OSError as error:
            skipped(path, error)
    syscalls.mount("proc", root + "/proc", "proc", _SAFE)
    syscalls.mount("sysfs", root + "/sys", "sysfs", _SAFE | syscalls.MS_RDONLY)
    make_dev(root + "/dev", nodes)
    syscalls.move_mount(devpts, root + "/dev/pts")
    make_shm(root + "/dev/shm")
    os.chdir(root)
    # Old and new root stacked on one place: no directory for the old one is needed.
    syscalls.pivot_root(".", ".")
    syscalls.unmount(".", syscalls.MNT_DETACH)
    os.chdir("/")


def hide(directories: Iterable[str], kept: Iterable[str], uid: int, gid: int) -> None:
    """Inside the session's tree: cover each of these directories, parents first, with an empty one
    that cannot be written. `kept` directories below them stay as they are. One that is not there
    yet is made: keys may be put there while the session runs.

    A user chooses where its own are. So nothing is covered but a directory of that user, or one
    that nobody but its owner can look into: a link must not lead to hiding /etc."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    stay = {path: os.open(path, flags) for path in kept}
    _make_missing(directories, uid, gid)
    for path in directories:
        try:
            # Past the last link, and no further: what is opened is what is looked at and covered.
            fd = os.open(os.path.realpath(path), flags | os.O_NOFOLLOW)
        except OSError:
            continue  # not there, and its user cannot make it either
        facts = os.fstat(fd)
        if facts.st_uid == uid or not facts.st_mode & 0o077:
            _cover(fd, path, {name: at for name, at in stay.items() if is_within(name, path)})
        os.close(fd)
    for fd in stay.values():
        os.close(fd)


def _make_missing(directories: Iterable[str], uid: int, gid: int) -> None:
    """By the rights of their user, who may name any place."""
    umask, own_uid, own_gid = os.umask(0o077), os.geteuid(), os.getegid()
    if own_uid == 0:
        os.setgroups(())  # its own come when it becomes this user for good
    os.setegid(gid)
    os.seteuid(uid)
    try:
        for path in directories:
            with contextlib.suppress(OSError):
                os.makedirs(path, exist_ok=True)
    finally:
        os.seteuid(own_uid)
        os.setegid(own_gid)
        os.umask(umask)


def _cover(fd: int, path: str, kept: dict[str, int]) -> None:
    # By descriptor, as the path may lead elsewhere by now.
    syscalls.mount("tmpfs", f"/proc/self/fd/{fd}", "tmpfs", _SAFE, _COVER_OPTIONS)
    for name, source in kept.items():
        os.makedirs(name, mode=0o755)
        syscalls.mount(f"/proc/self/fd/{source}", name, None, syscalls.MS_BIND)
    _close_cover(path)


def make_cover(path: str, places: Iterable[str]) -> None:
    """The same over a directory of ours, with these empty directories for what stays visible."""
    syscalls.mount("tmpfs", path, "tmpfs", _SAFE, _COVER_OPTIONS)
    for place in places:
        os.makedirs(f"{path}/{place}", mode=0o755, exist_ok=True)
    _close_cover(path)


def _close_cover(path: str) -> None:
    syscalls.mount(None, path, None, _SAFE | syscalls.MS_REMOUNT | syscalls.MS_RDONLY)


def make_shm(path: str) -> None:
    safe = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("tmpfs", path, "tmpfs", safe, "mode=1777")


def host_nodes() -> dict[str, os.stat_result]:
    found = {}
    for name in _HOST_NODES:
        try:
            facts = os.stat(f"/dev/{name}")
        except OSError:
            continue
        if stat.S_ISCHR(facts.st_mode):
            found[name] = facts
    return found


def make_dev(dev: str, nodes: dict[str, os.stat_result]) -> None:
    """A small /dev on a tmpfs, with empty pts and shm to mount on."""
    syscalls.mount("tmpfs", dev, "tmpfs", syscalls.MS_NOSUID, "mode=755,size=1m")
    umask = os.umask(0)
    try:
        for name, (major, minor) in _NODES.items():
            os.mknod(f"{dev}/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
        for name, facts in nodes.items():
            os.makedirs(os.path.dirname(f"{dev}/{name}"), mode=0o755, exist_ok=True)
            os.mknod(f"{dev}/{name}", facts.st_mode, facts.st_rdev)
            os.chown(f"{dev}/{name}", facts.st_uid, facts.st_gid)
    finally:
        os.umask(umask)
    for name, target in _LINKS.items():
        os.symlink(target, f"{dev}/{name}")
    os.mkdir(f"{dev}/pts", 0o755)
    os.mkdir(f"{dev}/shm", 0o755)
