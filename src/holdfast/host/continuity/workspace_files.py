"""The files of a session in its checkpoints: captured while it stands still, shown beforehand, and
put back when it is restored.

    files/      in a checkpoint: the bytes, one file each
    captured    which files, as they were (`FileCapture`)

How they are copied is in adapters/captured_files; which are put back, in
core/continuity/changed_files.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import NamedTuple

import msgpack

from holdfast.adapters.captured_files.as_user import run_as
from holdfast.adapters.captured_files.capture import Capture
from holdfast.adapters.captured_files.put_back import PuttingBack, differences
from holdfast.core.continuity.changed_files import FilesDecision, decide
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.captured_files import (
    CapturePlan,
    FileCapture,
    FileDifference,
    RestoreFiles,
)
from holdfast.model.errors import CheckpointInvalid, RestoreFailed, why_not
from holdfast.model.home import Home
from holdfast.model.limits import CAPTURE_NAMED
from holdfast.model.record import Malformed
from holdfast.model.restore import RestoredFiles
from holdfast.model.spec import Place

CAPTURED, FILES = "captured", "files"


class FileTaking:
    """Of one checkpoint, into its directory."""

    def __init__(self, spec: SessionSpec, home: Home, most: int, directory: str) -> None:
        self._directory = directory
        os.makedirs(f"{directory}/{FILES}", mode=0o700)
        self._capture = Capture(
            spec.place, spec.capture, _ours(home), most, into=f"{directory}/{FILES}"
        )
        self.taken = FileCapture()

    async def ahead(self) -> None:
        """While the session runs: most of it will stay as it is."""
        await asyncio.to_thread(self._capture.take)

    async def finish(self) -> None:
        """While it stands still."""
        self.taken = await asyncio.to_thread(self._capture.take)

    def write(self) -> None:
        with open(f"{self._directory}/{CAPTURED}", "wb") as file:
            file.write(msgpack.packb(self.taken.pack()))

    @property
    def summary(self) -> CapturePlan:
        return _summary(self.taken)


def plan(place: Place, roots: Sequence[str], home: Home, most: int) -> CapturePlan:
    """What a checkpoint would have now. Blocking."""
    try:
        return _summary(Capture(place, roots, _ours(home), most).take())
    except OSError:  # the session ends
        return CapturePlan()


def _summary(found: FileCapture) -> CapturePlan:
    """What is left out: the first of it, and how much there is."""
    left = found.left_out[:CAPTURE_NAMED]
    return CapturePlan(len(found.files), found.bytes, found.roots, left, len(found.left_out))


class FilesToPutBack(NamedTuple):
    """Of one restore: what was captured, and what is to become of it."""

    captured: FileCapture
    decision: FilesDecision


async def compare(
    directory: str, home: Home, uid: int, choice: RestoreFiles, stopped_at: float
) -> FilesToPutBack:
    """With the rights of this user: it says where the paths lead. Raises FilesChanged when somebody
    has to decide, and OSError. `directory`: of the checkpoint, laid out."""
    captured = _captured(directory)
    if not (captured.files or captured.roots):
        return FilesToPutBack(captured, decide((), choice, stopped_at))

    def work() -> tuple[FileDifference, ...]:
        data = _open_data(directory)
        try:
            for name in (".", *(each.data for each in captured.files if each.data)):
                os.chown(name, uid, -1, dir_fd=data, follow_symlinks=False)
            return run_as(uid, lambda: differences(captured, data, _ours(home)))
        finally:
            os.close(data)

    found = await asyncio.to_thread(work)
    return FilesToPutBack(captured, decide(found, choice, stopped_at))


async def put_back(
    wanted: FilesToPutBack, directory: str, uid: int, mark: str, undo: contextlib.ExitStack
) -> RestoredFiles:
    """With the rights of this user, to whom `compare` gave the bytes. `mark`: in the names of what
    is moved out of the way."""
    these, left = wanted.decision
    report = RestoredFiles(len(these), left=_named(left), left_count=len(left))
    if not these:
        return report
    data = _open_data(directory)
    putting = PuttingBack(wanted.captured, data, mark)
    try:
        await asyncio.to_thread(run_as, uid, lambda: putting.put_back(these))
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise RestoreFailed(f"its files cannot be put back: {why_not(error)}{where}") from error
    finally:
        os.close(data)
    undo.callback(run_as, uid, putting.undo)
    return report.replace(kept_in=putting.kept_in)


def _captured(directory: str) -> FileCapture:
    try:
        with open(f"{directory}/{CAPTURED}", "rb") as file:
            captured = FileCapture.unpack(msgpack.unpackb(file.read()))
    except FileNotFoundError:  # an earlier version made it
        return FileCapture()
    except (Malformed, ValueError, msgpack.UnpackException) as error:
        raise CheckpointInvalid("what is known about its files makes no sense") from error
    for each in captured.files:
        if each.data and not (each.data.isascii() and each.data.isdecimal()):
            raise CheckpointInvalid(f"{each.data[:40]!r} names no file of a checkpoint")
    return captured


def _open_data(directory: str) -> int:
    path = f"{directory}/{FILES}"
    os.makedirs(path, mode=0o700, exist_ok=True)  # none of the files has any bytes
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _ours(home: Home) -> tuple[str, ...]:
    return home.state, home.run


def _named(found: Sequence[FileDifference]) -> tuple[str, ...]:
    return tuple(each.path for each in found[:CAPTURE_NAMED])
