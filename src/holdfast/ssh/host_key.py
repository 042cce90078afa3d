"""The gateway's host key. Made once and kept, because ssh clients refuse a gateway whose key
changed."""

from __future__ import annotations

import contextlib
import os

import asyncssh

from holdfast.model.errors import InvalidArgument, NotPermitted, StorageFailed
from holdfast.ssh.authorized import config_directory

_KIND = "ssh-ed25519"


def path() -> str:
    return f"{config_directory()}/ssh_host_key"


def load_or_make() -> asyncssh.SSHKey:
    try:
        _make()
        if os.stat(path()).st_mode & 0o077:
            raise NotPermitted(
                f"others than its owner can read {path()}",
                hint="with this key anybody can pose as this gateway: remove it to make a new one",
            )
        return asyncssh.read_private_key(path())
    except OSError as error:
        raise StorageFailed(f"cannot store the key {path()}: {error.strerror}") from error
    except asyncssh.KeyImportError as error:
        raise InvalidArgument(f"cannot use the key {path()}: {error}") from error


def _make() -> None:
    """Atomically, and the first of two processes wins: linked, not renamed."""
    if os.path.exists(path()):
        return
    os.makedirs(config_directory(), mode=0o700, exist_ok=True)
    made = asyncssh.generate_private_key(_KIND, comment="holdfast gateway")
    new = f"{path()}.{os.getpid()}"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(made.export_private_key("openssh"))
            file.flush()
            os.fsync(fd)
        with contextlib.suppress(FileExistsError):
            os.link(new, path())
    finally:
        os.unlink(new)
