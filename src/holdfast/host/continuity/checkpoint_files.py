"""Checkpoints on disk, one directory each:

    STATE/checkpoints/<id>/manifest.json  what it is, with the SHA-256 of every other file; signed
    STATE/checkpoints/<id>/manifest.sig   by the host's key
    STATE/checkpoints/<id>/parcel         the session's state blob, as its keeper had it
    STATE/checkpoints/<id>/memory         its shared memory: output, ledger, screen
    STATE/checkpoints/<id>/untyped        input in custody that the terminal had not taken
    STATE/checkpoints/<id>/shell-state    what its shell had reported about itself
    STATE/checkpoints/<id>/images/        CRIU's images

One that is being made has a name that begins with a dot, and is removed by the next daemon.
Deliberately knows nothing of sessions: what the files mean is the matter of those who write them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import shutil

from holdfast.adapters import atomic_file, signing
from holdfast.model.checkpoint import CheckpointInfo, DumpedTree
from holdfast.model.errors import CheckpointInvalid, NoSuchCheckpoint
from holdfast.model.ids import SessionId
from holdfast.model.record import Malformed, Record
from holdfast.model.size import Size
from holdfast.model.spec import Place

FORMAT = 1  # of the manifest
_ID_BYTES = 6
_PREFIX = "ck-"  # of ids: they are told from names of sessions by it
_READ_BYTES = 1 << 20
_MANIFEST, _SIGNATURE = "manifest.json", "manifest.sig"
IMAGES = "images"
# What CRIU writes for people, at the end of a dump or restore: no part of a checkpoint.
_NOT_PART = {
    f"{IMAGES}/{name}" for name in ("dump.log", "stats-dump", "restore.log", "stats-restore")
}


class FileDigest(Record):
    """One file of a checkpoint."""

    size: int
    sha256: str


class Manifest(Record):
    """What a checkpoint is."""

    format: int
    info: CheckpointInfo
    tree: DumpedTree
    place: Place
    uid: int
    size: Size
    unread: str  # typed and read by no program, in hexadecimal
    machine: str  # of the kernel it was made on
    kernel: str
    files: dict[str, FileDigest]

    def text(self) -> bytes:
        return json.dumps(self.pack(), indent=1).encode()

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.text()).digest()


class CheckpointFiles:
    """All of one host."""

    def __init__(self, state: str, key: signing.SigningKey) -> None:
        self._root, self._key = f"{state}/checkpoints", key

    def directory(self, checkpoint: str) -> str:
        return f"{self._root}/{checkpoint}"

    # -- making ---------------------------------------------------------------------------------

    def begin(self) -> tuple[str, str]:
        """A new id, and the directory to fill."""
        checkpoint = f"{_PREFIX}{secrets.token_hex(_ID_BYTES)}"
        making = f"{self._root}/.{checkpoint}"
        os.makedirs(f"{making}/{IMAGES}", mode=0o700)
        return checkpoint, making

    def finish(self, making: str, manifest: Manifest) -> Manifest:
        """The digests of all files are added; from here on it exists, also after a power loss.
        Slow: in a thread."""
        files = {name: _digest(f"{making}/{name}") for name in _names(making)}
        size = sum(os.stat(f"{making}/{name}").st_blocks * 512 for name in files)
        whole = manifest.replace(files=files, info=manifest.info.replace(bytes=size))
        text = whole.text()
        atomic_file.replace(f"{making}/{_MANIFEST}", text)
        signature = self._key.sign(_signed(text))
        atomic_file.replace(f"{making}/{_SIGNATURE}", signature.hex().encode())
        for directory in (f"{making}/{IMAGES}", making):
            atomic_file.sync_directory(directory)
        os.rename(making, self.directory(whole.info.id))
        atomic_file.sync_directory(self._root)
        return whole

    def discard(self, making: str) -> None:
        """What could not be finished."""
        shutil.rmtree(making, ignore_errors=True)

    def clear_unfinished(self) -> None:
        """A daemon died over them."""
        for name in self._listed():
            if name.startswith("."):
                self.discard(f"{self._root}/{name}")

    def remove(self, checkpoint: str) -> None:
        shutil.rmtree(self.directory(checkpoint), ignore_errors=True)

    # -- finding --------------------------------------------------------------------------------

    def all(self) -> list[Manifest]:
        """Newest first. What cannot be read is left out."""
        found = []
        for name in self._listed():
            if name.startswith(_PREFIX):
                with contextlib.suppress(CheckpointInvalid, NoSuchCheckpoint):
                    found.append(self.manifest(name))
        return sorted(found, key=lambda each: each.info.at, reverse=True)

    def latest(self, session: SessionId) -> Manifest | None:
        return next((each for each in self.all() if each.info.session == session), None)

    def manifest(self, checkpoint: str) -> Manifest:
        """Checked: the host's own words about this very checkpoint."""
        try:
            text = _read(f"{self.directory(checkpoint)}/{_MANIFEST}")
            signature = bytes.fromhex(_read(f"{self.directory(checkpoint)}/{_SIGNATURE}").decode())
        except FileNotFoundError:
            if not checkpoint.startswith(_PREFIX) or not os.path.isdir(self.directory(checkpoint)):
                raise no_such(checkpoint) from None
            raise CheckpointInvalid(f"{checkpoint} has no manifest") from None
        except (OSError, ValueError) as error:
            raise CheckpointInvalid(f"{checkpoint} cannot be read: {error}") from error
        if not signing.check(self._key.public, _signed(text), signature):
            raise CheckpointInvalid(f"the manifest of {checkpoint} was not signed by this host")
        try:
            manifest = Manifest.unpack(json.loads(text))
        except (Malformed, ValueError) as error:
            raise CheckpointInvalid(f"the manifest of {checkpoint} makes no sense") from error
        if manifest.info.id != checkpoint:
            raise CheckpointInvalid(f"{checkpoint} has the manifest of {manifest.info.id}")
        return manifest

    def check(self, manifest: Manifest) -> None:
        """Every byte of it, and that this machine can run what is in it. Slow: in a thread. Raises
        CheckpointInvalid."""
        checkpoint = manifest.info.id
        if manifest.machine != platform.machine():
            raise CheckpointInvalid(
                f"{checkpoint} is of a machine of kind {manifest.machine}; this is "
                f"{platform.machine()}"
            )
        if _version(platform.release()) < _version(manifest.kernel):
            raise CheckpointInvalid(
                f"{checkpoint} is of kernel {manifest.kernel}; this one, {platform.release()}, is "
                "older"
            )
        directory = self.directory(checkpoint)
        present = set(_names(directory))
        for name, wanted in manifest.files.items():
            if name not in present:
                raise CheckpointInvalid(f"{checkpoint} is damaged: {name} is missing")
            found = _digest(f"{directory}/{name}")
            if found.size != wanted.size:
                raise CheckpointInvalid(
                    f"{checkpoint} is damaged: {name} has {found.size} bytes, not {wanted.size}"
                )
            if found.sha256 != wanted.sha256:
                raise CheckpointInvalid(f"{checkpoint} is damaged: {name} was changed")
        if extra := sorted(present - manifest.files.keys()):
            raise CheckpointInvalid(f"{checkpoint} is damaged: {extra[0]} does not belong to it")

    def read(self, checkpoint: str, name: str) -> bytes:
        return _read(f"{self.directory(checkpoint)}/{name}")

    def _listed(self) -> list[str]:
        try:
            return os.listdir(self._root)
        except FileNotFoundError:
            return []


def is_id(text: str) -> bool:
    """Whether this is the form of a checkpoint's id."""
    digits = text.removeprefix(_PREFIX)
    return digits != text and len(digits) == 2 * _ID_BYTES and digits.isalnum()


def no_such(text: str) -> NoSuchCheckpoint:
    return NoSuchCheckpoint(
        f"there is no checkpoint {text[:80]!r}", hint="`hold checkpoints` lists them"
    )


def _signed(text: bytes) -> bytes:
    return b"holdfast checkpoint\0" + text


def _version(release: str) -> tuple[int, ...]:
    """The first two numbers of a kernel's release."""
    numbers = release.split("-")[0].split(".")[:2]
    return tuple(int(each) for each in numbers if each.isdecimal())


def _names(directory: str) -> list[str]:
    """Every file of it but the manifest itself and its signature."""
    found = []
    for where, _, files in os.walk(directory):
        below = os.path.relpath(where, directory)
        found += [name if below == "." else f"{below}/{name}" for name in files]
    return sorted(set(found) - {_MANIFEST, _SIGNATURE} - _NOT_PART)


def _digest(path: str) -> FileDigest:
    """On disk when this returns."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        while data := file.read(_READ_BYTES):
            digest.update(data)
            size += len(data)
    return FileDigest(size, digest.hexdigest())


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
