"""Acting on files with the rights of a unix user, in a daemon that is root.

Paths below directories of a user lead where that user wants, at the moment they are used. So the
kernel itself judges each step: a thread of its own takes on the user's ids for files, does the
work, and ends. These ids belong to a thread; the C library leaves those of the others alone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import pwd
import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_SETGROUPS = {"x86_64": 116, "aarch64": 159}  # the system call: the C library's is of all threads
_UNCHANGED = 0xFFFFFFFF


def run_as(uid: int, work: Callable[[], _T]) -> _T:
    """What the work gives or raises; waits for it."""
    if uid == os.geteuid():
        return work()
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        raise OSError(0, f"there is no unix user {uid} on this host") from None
    groups = os.getgrouplist(user.pw_name, user.pw_gid)
    done: list[_T] = []
    failed: list[BaseException] = []

    def act() -> None:
        try:
            _become(uid, user.pw_gid, groups)
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=act, name=f"files of uid {uid}")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _become(uid: int, gid: int, groups: list[int]) -> None:
    """The calling thread, for good."""
    number = _SETGROUPS.get(platform.machine())
    if number is None:
        raise OSError(0, f"not possible on a machine of kind {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    listed = (ctypes.c_uint * len(groups))(*groups)
    if libc.syscall(ctypes.c_long(number), ctypes.c_long(len(groups)), listed) != 0:
        raise OSError(ctypes.get_errno(), "the user's groups could not be taken on")
    # Both give what was before and no error: asked again, they say whether it happened.
    libc.setfsgid(ctypes.c_uint(gid))
    libc.setfsuid(ctypes.c_uint(uid))
    if (libc.setfsgid(_UNCHANGED), libc.setfsuid(_UNCHANGED)) != (gid, uid):
        raise PermissionError(0, "the user's rights could not be taken on")
