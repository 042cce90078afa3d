"""The fencing token, for the session's own programs (F4).

`HOLDFAST_EPOCH` in their environment is the epoch the session began with. The file named by
`HOLDFAST_TOKEN_FILE` has the present one, a decimal number and a line feed, and is replaced as a
whole before anything of the session runs in a new epoch. An outside system that keeps the highest
number it saw for a session can refuse whoever comes with a lower one.

Outside the session's own directory, which only the host may enter; inside a contained session it is
seen at the same path.
"""

from __future__ import annotations

import contextlib
import os

from holdfast.host.session_store import storage_failed
from holdfast.model.home import Home


def path_of(home: Home, mark: str) -> str:
    return f"{home.run}/tokens/{mark}"


def environment(home: Home, mark: str, epoch: int) -> dict[str, str]:
    return {"HOLDFAST_EPOCH": str(epoch), "HOLDFAST_TOKEN_FILE": path_of(home, mark)}


def write(home: Home, mark: str, epoch: int) -> None:
    """Not synced: after a loss of the machine there is no session to read it."""
    path = path_of(home, mark)
    new = f"{path}.new"
    try:
        os.makedirs(os.path.dirname(path), mode=0o711, exist_ok=True)
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.fchmod(fd, 0o644)  # whatever the umask: it is no secret
            os.write(fd, b"%d\n" % epoch)
        finally:
            os.close(fd)
        os.rename(new, path)
    except OSError as error:
        raise storage_failed(error) from error


def remove(home: Home, mark: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path_of(home, mark))
