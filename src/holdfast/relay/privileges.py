"""Giving up root once everything is open that needs it: the port, the certificate, the registry.

A relay reads what strangers send, so it had better not be root while it does. It becomes the given
user in its own process, because neither the state directory nor, often, the interpreter is readable
for that user. It stays what it is where its own program files are not: what is imported, or read
for a browser, later on would be missing.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 2, 38


def become(name: str) -> str:
    """Be this user from now on, for good. Gives why not; "": it was done."""
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return f"there is no user {name[:40]!r} on this machine"
    if os.getuid() != 0:
        return "only root can become somebody else"
    with _dying_as_before():
        if unreadable := _unreadable(user):
            return f"{unreadable} is not readable for {name}"
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    return ""


def _unreadable(user: pwd.struct_passwd) -> str:
    """The first of our own files, one for each place they are in, that this user cannot read. The
    kernel is asked as that user: it knows of more than permission bits."""
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
def _dying_as_before() -> Iterator[None]:
    """Any change of user makes the kernel forget by which signal we are to die with our parent."""
    parent, wished = os.getppid(), ctypes.c_int()
    _prctl(_PR_GET_PDEATHSIG, ctypes.byref(wished))
    try:
        yield
    finally:
        if wished.value:
            _prctl(_PR_SET_PDEATHSIG, wished.value)
            if os.getppid() != parent:  # it died meanwhile
                os._exit(1)


def _prctl(option: int, value: object) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
