"""Dropping root once everything that needs it is open: the port, the certificate, the registry.

A relay parses data from strangers, so it should not run as root. It switches to the given user in
its own process, because that user often cannot read the state directory. It does not switch if that
user cannot read the program files, also not after `program_mounts`: later imports and web files
would fail.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 2, 38


def switch_user(name: str) -> str:
    """Switch to this user for good. Returns why not; "" on success."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return f"there is no user {name[:40]!r} on this machine"
    if os.getuid() != 0:
        return "only root can switch to another user"
    with _keep_death_signal():
        if unreadable := _unreadable(user):
            return f"{unreadable} cannot be read by {name}"
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    return ""


def _unreadable(user: pwd.struct_passwd) -> str:
    """The first of our program directories that this user cannot read. The check runs as that user,
    because access depends on more than permission bits."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(user.pw_gid)
    os.seteuid(user.pw_uid)
    try:
        for path in (os.__file__, aiohttp.__file__, __file__):
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return path
        return ""
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@contextmanager
def _keep_death_signal() -> Iterator[None]:
    """Restore the parent-death signal, which the kernel clears at every change of user."""
    parent, wished = os.getppid(), ctypes.c_int()
    _prctl(_PR_GET_PDEATHSIG, ctypes.byref(wished))
    try:
        yield
    finally:
        if wished.value:
            _prctl(_PR_SET_PDEATHSIG, wished.value)
            if os.getppid() != parent:  # it has died meanwhile
                os._exit(1)


def _prctl(option: int, value: object) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
