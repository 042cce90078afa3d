"""Which ssh key acts as which actor: one file in the client's config directory, read at each login,
so that a change takes effect at once.

An entry binds a key to an actor's id, not just to its name: if the name later belongs to another
actor, the key is refused. The actor's own key stays where `hold actor add` put it; this file
contains no secrets. This module does not know the ssh protocol.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator

from holdfast.model.errors import InvalidArgument, LimitReached, NotPermitted, StorageFailed
from holdfast.model.home import keys_of
from holdfast.model.limits import SSH_AUTHORIZED_MAX
from holdfast.model.record import Malformed, Record
from holdfast.sdk import identity

_FORM = "ssh authorized v1"
_FILE_MAX_BYTES = 4 << 20  # far more than that many keys need
_KEY_FILE_MAX_BYTES = 64 << 10
_COMMENT_MAX_CHARS = 80
_RSA_MIN_BITS = 2048
_RSA = "ssh-rsa"
_KINDS = (
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    _RSA,
)


class SshKey(Record):
    """A public key as ssh writes it."""

    kind: str
    blob: str  # base64, padded: the canonical form to compare
    comment: str

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` shows it."""
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


class Authorized(SshKey):
    """One authorized key, and the actor it acts as."""

    acting: str  # as for HOLDFAST_AS: a name, or the path of a key file
    actor: str  # the actor's id when the key was authorized
    since: float


def config_directory() -> str:
    """Where a user's commands keep their own files, whatever host they use."""
    return os.path.dirname(keys_of(os.environ))


def path() -> str:
    return f"{config_directory()}/ssh_authorized"


# -- the file -----------------------------------------------------------------------------------


def load() -> tuple[Authorized, ...]:
    """All entries; none without a file. A file that others can write is refused."""
    try:
        with open(path(), "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o022:
                raise NotPermitted(
                    f"{path()} is ignored, because others than its owner can write it",
                    hint=f"check its content, then chmod 600 {path()}",
                )
            text = file.read(_FILE_MAX_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StorageFailed(f"cannot read {path()}: {error.strerror}") from error
    try:
        fields = json.loads(text)
        if type(fields) is not dict or fields.get("holdfast") != _FORM:
            raise Malformed("not a list of ssh keys")
        entries = fields.get("keys")
        if type(entries) is not list:
            raise Malformed("it has no keys")
        return tuple(Authorized.unpack(entry, path()) for entry in entries)
    except ValueError as error:
        raise InvalidArgument(f"cannot use {path()}: {error}") from error


def find(entries: tuple[Authorized, ...], blob: str) -> Authorized | None:
    return next((entry for entry in entries if entry.blob == blob), None)


def authorize(key: SshKey, acting: str, now: float) -> Authorized:
    """Authorize a key to act as an actor whose own key is here."""
    acting = os.path.abspath(acting) if "/" in acting else acting
    actor = identity.load(acting).actor
    entry = Authorized(key.kind, key.blob, key.comment, acting, actor, now)
    with _locked():
        entries = load()
        known = find(entries, key.blob)
        if known is not None and (known.acting, known.actor) != (acting, actor):
            raise InvalidArgument(
                f"this key already acts as {known.acting} ({known.actor[:8]})",
                hint=f"`hold sshd remove {known.fingerprint}` first: a key acts as one actor",
            )
        if known is not None:
            return known
        if len(entries) >= SSH_AUTHORIZED_MAX:
            raise LimitReached(f"the limit of {SSH_AUTHORIZED_MAX} authorized keys is reached")
        _save((*entries, entry))
    return entry


def remove(fingerprint: str) -> Authorized:
    with _locked():
        entries = load()
        gone = [entry for entry in entries if entry.fingerprint == fingerprint]
        if not gone:
            raise InvalidArgument(
                f"no authorized key has the fingerprint {fingerprint[:80]!r}",
                hint="`hold sshd ls` lists them",
            )
        _save(tuple(entry for entry in entries if entry not in gone))
    return gone[0]


def check_actor(entry: Authorized) -> None:
    """Raises unless this machine still holds the key of that actor."""
    found = identity.load(entry.acting)
    if found.actor != entry.actor:
        raise NotPermitted(
            f"this ssh key was authorized for another actor than the one now called "
            f"{entry.acting!r}",
            hint="on the gateway, remove the key and authorize it again",
        )


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Two commands at once must not lose each other's key. The directory is locked and not the
    file, because the file is replaced."""
    import fcntl

    directory = config_directory()
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StorageFailed(f"cannot use {directory}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
        os.fsync(fd)
    finally:
        os.close(fd)


def _save(entries: tuple[Authorized, ...]) -> None:
    """Write a new file and rename it: a gateway that reads meanwhile sees the old list or the
    new."""
    fields = {"holdfast": _FORM, "keys": [entry.pack() for entry in entries]}
    new = f"{path()}.new"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(json.dumps(fields, indent=1) + "\n")
            file.flush()
            os.fsync(fd)
        os.rename(new, path())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise StorageFailed(f"cannot write {path()}: {error.strerror}") from error


# -- public keys --------------------------------------------------------------------------------


def read_key(file: str) -> SshKey:
    """The one key in a public key file; `-` is standard input."""
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            text = opened.read(_KEY_FILE_MAX_BYTES).decode()
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"cannot read the key {file[:200]!r}: {error}") from error
    if "PRIVATE KEY" in text:
        raise InvalidArgument(
            f"{file} is a private key: it must stay with its owner",
            hint=f"give the public half: {file}.pub",
        )
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) != 1:
        raise InvalidArgument(f"{file} has {len(lines)} keys", hint="one at a time")
    return parse_key(lines[0])


def parse_key(line: str) -> SshKey:
    """`TYPE BASE64 COMMENT`, as in a .pub file, without options before it."""
    kind, _, rest = line.strip().partition(" ")
    if kind not in _KINDS:
        raise InvalidArgument(
            f"not a supported public key: {kind[:60]!r}",
            hint=f"it must begin with one of {', '.join(_KINDS)}",
        )
    text, _, comment = rest.strip().partition(" ")
    try:
        blob = base64.b64decode(text, validate=True)
        fields = _fields(blob)
    except (binascii.Error, ValueError):
        raise InvalidArgument(f"the {kind} key is incomplete") from None
    if not fields or fields[0] != kind.encode() or len(fields) < 2:
        raise InvalidArgument(f"not a valid {kind} key")
    if kind == _RSA and int.from_bytes(fields[-1], "big").bit_length() < _RSA_MIN_BITS:
        raise InvalidArgument(f"an RSA key of less than {_RSA_MIN_BITS} bits is too weak")
    shown = "".join(c if c.isprintable() else "?" for c in comment.strip())
    return SshKey(kind, base64.b64encode(blob).decode(), shown[:_COMMENT_MAX_CHARS])


def _fields(blob: bytes) -> list[bytes]:
    """The strings in a key, each with four bytes of length before it."""
    fields, at = [], 0
    while at < len(blob):
        end = at + 4 + int.from_bytes(blob[at : at + 4], "big")
        if len(blob) < at + 4 or end > len(blob):
            raise ValueError("cut off")
        fields.append(blob[at + 4 : end])
        at = end
    return fields
