"""The process that becomes CRIU: `python -m holdfast.adapters.criu.stage SETTING`.

CRIU is to run in a mount namespace of its own, where its caches and the mounts a restore needs do
not show on the host, and in the cgroup of the session it restores. The daemon has threads, so none
of this can happen between its fork and exec; this program does it and then executes CRIU.

Deliberately knows nothing of CRIU's options: it executes the words it is given.
"""

from __future__ import annotations

import json
import os
import sys

from holdfast.adapters.launch import mounts as namespaces
from holdfast.adapters.launch import syscalls
from holdfast.model.record import Record

# On /dev/shm because CRIU caches what it learnt about the kernel in /run only if that is a tmpfs
# (30-40 ms per call), and on many hosts it is not.
CACHE = "/dev/shm/holdfast-criu"
STAGE = f"{CACHE}/stage"  # where a restore finds the parts of the session's tree
_RUN = f"{CACHE}/run"


class Setting(Record):
    """What to prepare, and what to execute then."""

    command: tuple[str, ...]
    mounts: tuple[str, ...] = ()  # host mounts to offer at STAGE/m0, m1, ...
    devpts: int = -1  # an instance to offer at STAGE/devpts; -1: nothing is restored
    cgroup: str = ""  # group to enter; "" to stay


def prepare(setting: Setting) -> None:
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    for directory in (CACHE, STAGE, _RUN):
        os.makedirs(directory, mode=0o700, exist_ok=True)
    owner = os.lstat(CACHE)
    if owner.st_uid != os.geteuid() or owner.st_mode & 0o077 or os.path.islink(CACHE):
        raise PermissionError(1, f"{CACHE} is not only ours")
    if setting.devpts >= 0:
        _offer_parts(setting)
        os.set_inheritable(setting.devpts, False)
    if setting.cgroup:
        with open(f"{setting.cgroup}/cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")
    # Last, since it hides the host's own /run, which may be one of the mounts offered.
    syscalls.mount(_RUN, "/run", None, syscalls.MS_BIND)


def _offer_parts(setting: Setting) -> None:
    syscalls.mount("tmpfs", STAGE, "tmpfs", syscalls.MS_NOSUID, "mode=700")
    for name in ("root", "dev", "devpts"):
        os.mkdir(f"{STAGE}/{name}")
    namespaces.bind_root(f"{STAGE}/root")
    namespaces.make_dev(f"{STAGE}/dev")
    syscalls.move_mount(setting.devpts, f"{STAGE}/devpts")
    for index, path in enumerate(setting.mounts):
        target = f"{STAGE}/m{index}"
        if os.path.isdir(path):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o600))
        syscalls.mount(path, target, None, syscalls.MS_BIND)


def main(arguments: list[str]) -> int:
    setting = Setting.unpack(json.loads(arguments[0]))
    try:
        prepare(setting)
    except OSError as error:
        print(f"Error (holdfast): {error.strerror or error}", file=sys.stderr)
        return 71
    os.execv(setting.command[0], setting.command)
    return 71


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
