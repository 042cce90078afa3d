"""Where a session's program gives its own state, and finds it again (docs/snapshots.md).

One directory for each session, its user's own, at the same path inside a contained one:

    offer     process id of the program that can be asked, in the session's own numbering
    state     what it gave last; renamed there when it is whole
    failed    in place of it: why it could not
    restore   what it is to go on with; there from before it is started

All of it was written by the session's user: it is read as data, with a bound, and the process that
is asked must be one of the session's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
from typing import TYPE_CHECKING

from holdfast.adapters.proc import procfs
from holdfast.host.session_store import storage_failed
from holdfast.model.errors import CheckpointFailed
from holdfast.model.home import Home
from holdfast.model.ids import SessionId
from holdfast.model.limits import SNAPSHOT_MAX_BYTES, SNAPSHOT_WAIT_S

if TYPE_CHECKING:
    from holdfast.model.spec import Place

SIGNAL = signal.SIGUSR2
_OFFER, _STATE, _FAILED, _RESTORE = "offer", "state", "failed", "restore"
_OFFER_MAX_BYTES = 32
_REASON_MAX_BYTES = 500
_LOOK_S = 0.02
_PROCESSES_MAX = 1024


class SnapshotPlace:
    """Of one session."""

    def __init__(self, home: Home, tag: SessionId, uid: int) -> None:
        self._directory, self._uid = f"{home.run}/snapshots/{tag}", uid

    def environment(self) -> dict[str, str]:
        """For the session's programs."""
        return {
            "HOLDFAST_SNAPSHOT_DIR": self._directory,
            "HOLDFAST_SNAPSHOT_SIGNAL": str(int(SIGNAL)),
        }

    def make(self, gid: int, state: bytes | None = None) -> None:
        """Before the program is started; `state`: what it is to go on with."""
        try:
            os.makedirs(os.path.dirname(self._directory), mode=0o711, exist_ok=True)
            os.chmod(os.path.dirname(self._directory), 0o711)
            self.remove()
            os.mkdir(self._directory, 0o700)
            if state is not None:
                path = f"{self._directory}/{_RESTORE}"
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(fd, "wb") as file:
                    file.write(state)
                self._give(path, gid)
            self._give(self._directory, gid)
        except OSError as error:
            raise storage_failed(error) from error

    def _give(self, path: str, gid: int) -> None:
        if os.geteuid() == 0:
            os.chown(path, self._uid, gid)

    def remove(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def offered_by(self, place: Place) -> int | None:
        """The process that can be asked, in the host's numbering; None: the session offers none."""
        text = self._read(_OFFER, _OFFER_MAX_BYTES)
        if text is None or not text.strip().isdigit():
            return None
        inside = int(text)
        for pid in procfs.members(place, _PROCESSES_MAX):
            with contextlib.suppress(OSError, ValueError):
                if procfs.pid_inside(pid) == inside:
                    return pid
        return None

    async def ask(self, place: Place) -> bytes:
        """The program's state, as it gives it now. Raises CheckpointFailed."""
        pid = self.offered_by(place)
        if pid is None:
            raise CheckpointFailed("no program of it offers its own state any longer")
        for name in (_STATE, _FAILED):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._directory}/{name}")
        try:
            handle = os.pidfd_open(pid)
        except OSError as error:
            raise CheckpointFailed("its program is gone") from error
        try:
            if self.offered_by(place) != pid:  # the number could be another's by now
                raise CheckpointFailed("its program is gone")
            signal.pidfd_send_signal(handle, SIGNAL)
            return await self._answer(handle)
        except OSError as error:
            raise CheckpointFailed(f"its program cannot be asked: {error.strerror}") from error
        finally:
            os.close(handle)

    async def _answer(self, handle: int) -> bytes:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SNAPSHOT_WAIT_S
        while loop.time() < deadline:
            state = await asyncio.to_thread(self._read, _STATE, SNAPSHOT_MAX_BYTES)
            if state is not None:
                return state
            why = self._read(_FAILED, _REASON_MAX_BYTES)
            if why is not None:
                text = why.decode(errors="replace")
                raise CheckpointFailed(f"its program could not give its state: {text}")
            try:
                signal.pidfd_send_signal(handle, 0)
            except ProcessLookupError:
                raise CheckpointFailed("its program ended over it") from None
            await asyncio.sleep(_LOOK_S)
        raise CheckpointFailed(
            f"its program did not give its state within {SNAPSHOT_WAIT_S:g} s",
            hint="its own output may say why: `hold tail`",
        )

    def _read(self, name: str, most: int) -> bytes | None:
        """What the session's user put there; None: nothing that may be read."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(f"{self._directory}/{name}", flags)
        except OSError:
            return None
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != self._uid:
                return None
            data = file.read(most + 1)
        if len(data) > most:
            raise CheckpointFailed(f"what its program gave is over {most} bytes")
        return data
