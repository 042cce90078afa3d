"""System calls that Python does not offer, as thin functions. A failure is an OSError naming the
call and its object.

Deliberately knows nothing of sessions, and wraps only what this project uses.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

# Calls younger than 2019 have one number on every architecture; pivot_root is older.
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_PIDFD_GETFD = 438
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _CLONE3 = 428, 429, 430, 431, 432, 435

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
_CLONE_PIDFD = 0x1000
_CLONE_INTO_CGROUP = 0x2_0000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
MNT_DETACH = 2

_PR_SET_CHILD_SUBREAPER = 36
_AT_FDCWD = -100
_MOVE_MOUNT_F_EMPTY_PATH = 4
_FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 1, 6
_CLOEXEC = 1  # FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC alike
_OPEN_TREE_CLONE = 1


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(what: str, number: int, *arguments: int | bytes | None) -> int:
    words = [
        ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word)
        for word in arguments
    ]
    return _checked(_libc.syscall(ctypes.c_long(number), *words), what)


def _text(value: str | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


def mount(
    source: str | None,
    target: str,
    kind: str | None = None,
    flags: int = 0,
    data: str | None = None,
) -> None:
    _checked(
        _libc.mount(_text(source), _text(target), _text(kind), ctypes.c_ulong(flags), _text(data)),
        f"mount {kind or source or ''} on {target}",
    )


def unmount(target: str, flags: int = 0) -> None:
    _checked(_libc.umount2(_text(target), flags), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, f"pivot_root: unknown on {platform.machine()}")
    _syscall(f"pivot_root {new}", number, _text(new), _text(old))


def unshare(kinds: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(kinds)), f"unshare {kinds:#x}")


def setns(fd: int, kind: int) -> None:
    _checked(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), f"setns {kind:#x}")


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    _checked(
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, one, zero, zero, zero), "prctl PR_SET_CHILD_SUBREAPER"
    )


def mount_by_descriptor(kind: str, options: dict[str, str]) -> int:
    """A new file system of `kind`, mounted nowhere yet: a descriptor that holds it."""
    opened = _syscall(f"fsopen {kind}", _FSOPEN, _text(kind), _CLOEXEC)
    try:
        for key, value in options.items():
            _syscall(
                f"fsconfig {kind} {key}={value}",
                *(_FSCONFIG, opened, _FSCONFIG_SET_STRING, _text(key), _text(value), 0),
            )
        _syscall(f"fsconfig {kind}", _FSCONFIG, opened, _FSCONFIG_CMD_CREATE, None, None, 0)
        return _syscall(f"fsmount {kind}", _FSMOUNT, opened, _CLOEXEC, 0)
    finally:
        os.close(opened)


def bind_by_descriptor(path: str) -> int:
    """A bind of what is at this path, without what is mounted below it, mounted nowhere yet."""
    return _syscall(
        f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, _text(path), _OPEN_TREE_CLONE | os.O_CLOEXEC
    )


def pidfd_getfd(process: int, fd: int) -> int:
    """A copy of a descriptor of that process."""
    return _syscall(f"pidfd_getfd {fd}", _PIDFD_GETFD, process, fd, 0)


def move_mount(mounted: int, target: str) -> None:
    """Attach what one of the two above gave at a path of this mount namespace."""
    _syscall(
        f"move_mount to {target}",
        *(_MOVE_MOUNT, mounted, b"", _AT_FDCWD, _text(target), _MOVE_MOUNT_F_EMPTY_PATH),
    )


def clone3(flags: int, cgroup: int | None = None) -> tuple[int, int]:
    """Fork with namespaces, right into a cgroup. (pid, pidfd) in the parent, (0, -1) in the child.

    Only in a process with one thread: Python's own work around a fork is not done. So the child
    must end in exec or os._exit."""
    pidfd = ctypes.c_int(-1)
    flags |= _CLONE_PIDFD | (_CLONE_INTO_CGROUP if cgroup is not None else 0)
    fields = [flags, ctypes.addressof(pidfd), 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, cgroup or 0]
    packed = struct.pack("11Q", *fields)
    pid = _syscall("clone3", _CLONE3, packed, len(packed))
    return pid, (pidfd.value if pid else -1)
