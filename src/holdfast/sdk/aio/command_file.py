"""A command line that is longer than one input may be goes by a file, which the session's shell
sources: as one line, in the shell itself, with its variables and its directory.

Only where the host is on this machine: elsewhere there is no place that both can reach. The name
follows from the text, so the same command under the same key is the same line again. The file
removes itself first of all; whoever wrote it removes it too, for a line that was never read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shlex
import tempfile

from holdfast.model.errors import InvalidArgument, StorageFailed
from holdfast.model.limits import ACTION_COMMAND_MAX_CHARS, INPUT_MAX_BYTES

_AROUND_BYTES = 64  # what the host types around a line


class CommandFile:
    """The file of one command line, and the line that sources it."""

    def __init__(self, command: str, user: str, *, fish: bool) -> None:
        """`user`: whom the session runs as, who must be able to read it."""
        digest = hashlib.sha256(command.encode()).hexdigest()[:32]
        self._path = f"{tempfile.gettempdir()}/holdfast-{os.getuid()}-{digest}"
        quoted = shlex.quote(self._path)
        self.line = f"{'source' if fish else '.'} {quoted}"
        self._write(f"command rm -f -- {quoted}\n{command}\n".encode(), user)

    def _write(self, text: bytes, user: str) -> None:
        try:
            fd, beside = tempfile.mkstemp(prefix="holdfast-")
            with open(fd, "wb") as file:
                file.write(text)
            if os.getuid() == 0:
                entry = pwd.getpwnam(user)
                os.chown(beside, entry.pw_uid, entry.pw_gid)
            os.replace(beside, self._path)
        except (OSError, KeyError) as error:
            raise StorageFailed(f"a long command line needs a file: {error}") from error

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def needs_file(command: str, *, is_here: bool, of_action: bool = False) -> bool:
    """`of_action`: the line of a structured action, of which a record keeps less."""
    size, most = len(command.encode(errors="surrogatepass")), INPUT_MAX_BYTES - _AROUND_BYTES
    if of_action:
        size, most = len(command), ACTION_COMMAND_MAX_CHARS
    if size <= most:
        return False
    if not is_here:
        raise InvalidArgument(
            f"a command line of {size} {'characters' if of_action else 'bytes'} is over the limit "
            f"of {most}, and the session is on another machine",
            hint="put it into a file there, and run that",
        )
    return True
