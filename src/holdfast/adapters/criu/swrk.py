"""The conversation with `criu swrk FD`: one request, notifications in between, one answer.

CRIU asks at certain moments whether it may go on, with everything it works on standing still: at
`post-dump` all is written and the tasks are frozen; at `pre-resume` all is restored and has not run
yet. Refused, it undoes what it did: after a dump the tasks run on.

Only bytes: who starts CRIU, waits and gives up in time is the caller's matter.
"""

from __future__ import annotations

import errno
import os
from enum import IntEnum
from typing import NamedTuple

from holdfast.adapters.criu.protobuf import Field, decode, encode, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MESSAGE_MAX_BYTES = 64 << 10


class Kind(IntEnum):
    """Of a message: `criu_req_type`."""

    DUMP = 1
    RESTORE = 2
    NOTIFY = 6


# Fields of `criu_opts` that we use.
_OPTIONS = {
    "images_dir_fd": 1,
    "pid": 2,
    "leave_running": 3,
    "tcp_established": 5,
    "file_locks": 8,
    "log_level": 9,
    "log_file": 10,
    "notify_scripts": 12,
    "root": 13,
    "work_dir_fd": 17,
    "link_remap": 18,
    "force_irmap": 21,
    "rst_sibling": 26,
    "inherit_fd": 27,
    "manage_cgroups_mode": 34,
    "ghost_limit": 35,
    "irmap_scan_paths": 36,
    "external": 37,
    "timeout": 45,
    "tcp_skip_in_flight": 46,
    "network_lock": 64,
}
CGROUPS_IGNORED = 0  # criu_cg_mode IGNORE
LOCK_NFTABLES, LOCK_SKIP = 2, 3  # criu_network_lock_method

_TYPE, _OPTS, _NOTIFY_SUCCESS = 1, 2, 3  # of a request
_SUCCESS, _RESTORED, _NOTIFIED, _ERRNO, _MESSAGE = 2, 4, 5, 7, 9  # of a response
_SCRIPT, _PID = 1, 2  # of criu_notify
_RESTORED_PID = 1  # of criu_restore_resp


class Inherited(NamedTuple):
    """A descriptor of CRIU's own, under the name that the images have for it."""

    key: str
    fd: int


Option = bool | int | str | tuple[str, ...] | tuple[Inherited, ...]


class Notification(NamedTuple):
    """CRIU waits for `answer`."""

    script: str
    pid: int  # of the first process, in our numbering; 0 if it says none


class CriuDone(NamedTuple):
    """The last message of a conversation."""

    success: bool
    pid: int  # of the restored first process
    message: str


def request(kind: Kind, options: dict[str, Option]) -> bytes:
    fields: list[Field] = []
    for name, value in options.items():
        number = _OPTIONS[name]
        several = value if isinstance(value, tuple) else (value,)
        fields += (field(number, _plain(each)) for each in several)
    return encode((field(_TYPE, kind), field(_OPTS, encode(fields))))


def _plain(value: bool | int | str | Inherited) -> bool | int | str | bytes:
    if isinstance(value, Inherited):
        return encode((field(1, value.key), field(2, value.fd)))
    return value


def answer(go_on: bool) -> bytes:
    return encode((field(_TYPE, Kind.NOTIFY), field(_NOTIFY_SUCCESS, go_on)))


def parse(data: bytes) -> Notification | CriuDone:
    """Raises ValueError for what makes no sense."""
    found = dict(_pairs(decode(data)))
    if found.get(_TYPE) == Kind.NOTIFY:
        said = dict(_pairs(decode(_bytes(found.get(_NOTIFIED)))))
        return Notification(_bytes(said.get(_SCRIPT)).decode(), _number(said.get(_PID)))
    restored = dict(_pairs(decode(_bytes(found.get(_RESTORED)))))
    why = _bytes(found.get(_MESSAGE)).decode(errors="replace")
    number = _number(found.get(_ERRNO))
    if not why and number:
        why = errno.errorcode.get(number, str(number))
    return CriuDone(bool(found.get(_SUCCESS)), _number(restored.get(_RESTORED_PID)), why)


def _pairs(fields: Iterable[Field]) -> Iterable[tuple[int, int | bytes]]:
    return ((each.number, each.value) for each in fields)


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _number(value: int | bytes | None) -> int:
    return value if isinstance(value, int) else 0


def errors_in(log: str) -> str:
    """The first error in CRIU's log, without its clock and source position; "" if there is none."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            for line in file:
                said = line.partition("Error (")[2].partition("): ")[2].strip()
                if said and not any(harmless in said for harmless in _HARMLESS):
                    return said
    except OSError:
        pass
    return ""


# It says so of its own limits in a machine without CAP_SYS_RESOURCE, and goes on.
_HARMLESS = ("rlimit: Can't setup RLIMIT_NOFILE for self",)


def log_in(images: int, name: str) -> str:
    """The path of a log in a directory that is open as this descriptor."""
    return f"/proc/{os.getpid()}/fd/{images}/{name}"
