"""A mount namespace in which an unprivileged user can read the relay's program files.

Root often keeps an interpreter in its home, which is closed to others. A relay that is to drop root
would then have to stay root, because it loads modules and web files later. In a mount namespace of
its own, the closed directory is covered by an empty one that all may enter, and in it only the
directories are mounted that the relay needs. The rest of root's home is then out of its sight.

It must be done before the first thread starts: a thread keeps the namespace it was started in.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable

import aiohttp

_CLONE_NEWNS = 0x20000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_OTHERS_ENTER = 0o001
_COVER = b"mode=755,size=1m"  # it holds empty directories only


def open_to_others(needed: Iterable[str]) -> str:
    """Let every user reach the program's directories, as this process sees them. `needed`: other
    directories that it uses. Returns why not; "" on success, or if there was nothing to do."""
    program = _with_real_paths((sys.base_prefix, sys.prefix, *_package_directories()))
    covers = sorted({top for place in program if (top := _closed_above(place))})
    if not covers:
        return ""
    places = sorted(program | _with_real_paths(needed))
    below = [each for each in places if any(_is_below(each, cover) for cover in covers)]
    covered: list[str] = []
    with contextlib.ExitStack() as opened:
        opened.callback(os.umask, os.umask(0o022))  # for the directories made below
        try:
            _call("unshare", _CLONE_NEWNS)
            _call("mount", b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
            # Only now: what is opened in one namespace cannot be mounted in another.
            sources = {each: os.open(each, os.O_PATH | os.O_CLOEXEC) for each in below}
            for source in sources.values():
                opened.callback(os.close, source)
            for cover in covers:
                _call("mount", b"none", _path(cover), b"tmpfs", _MS_NOSUID | _MS_NODEV, _COVER)
                covered.append(cover)
            for place, source in sources.items():
                os.makedirs(place, exist_ok=True)
                origin = f"/proc/self/fd/{source}".encode()
                _call("mount", origin, _path(place), None, _MS_BIND | _MS_REC, None)
        except OSError as error:
            for cover in covered:
                _call("umount2", _path(cover), _MNT_DETACH)
            return f"it cannot have a mount namespace: {error.strerror or error}"
    return ""


def _package_directories() -> tuple[str, str]:
    """Where our package and others' are, which need not be below the interpreter."""
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return ours, os.path.dirname(os.path.dirname(aiohttp.__file__))


def _with_real_paths(places: Iterable[str]) -> set[str]:
    """These directories by the paths they are used by, and by those that have no links in them."""
    found = [os.path.abspath(each) for each in places if os.path.isdir(each)]
    return {*found, *(os.path.realpath(each) for each in found)}


def _closed_above(place: str) -> str:
    """The topmost directory on the way to this one that others cannot enter; "" if there is none.
    Only the permission bits count here; `privileges` tries it as the user."""
    parts = place.split("/")
    ways = ("/".join(parts[: count + 1]) or "/" for count in range(len(parts)))
    return next((way for way in ways if not os.stat(way).st_mode & _OTHERS_ENTER), "")


def _is_below(place: str, cover: str) -> bool:
    return place == cover or place.startswith(f"{cover}/")


def _path(path: str) -> bytes:
    return os.fsencode(path)


def _call(name: str, *given: bytes | int | None) -> None:
    if getattr(_libc, name)(*given) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (
    *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p),
)
