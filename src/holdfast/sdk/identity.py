"""Which actor this program acts as: the unix user's own, or another one whose key it can read.

    HOLDFAST_AS=NAME            a key made by `hold actor add NAME`
    HOLDFAST_AS=/path/to.key    a key file from anywhere
    HOLDFAST_GRANT=CHAIN        what that actor was given (`hold delegate`), as text, or the path
                                of a file that has it

A key file is one line of JSON, 0600. The library that signs takes 20 ms to import, so only who acts
as somebody else pays for it.
"""

from __future__ import annotations

import json
import os

from holdfast.model.errors import InvalidArgument, NoSuchActor, StorageFailed
from holdfast.model.home import keys_of
from holdfast.model.ids import ActorId, OperatorId
from holdfast.model.record import Malformed, Record
from holdfast.wire.messages.access import claim_text

VARIABLE = "HOLDFAST_AS"
GRANT_VARIABLE = "HOLDFAST_GRANT"
DEVICE = "device"  # the key that other machines know this user by, unless it chose another
_GRANT_FILE_MAX_BYTES = 16 << 10
_FORM = "actor key v1"
_KEY_BYTES = 32


class Identity(Record):
    """An actor this program can prove to be."""

    actor: str
    name: str
    private: str  # hexadecimal

    @property
    def public(self) -> bytes:
        return _public(bytes.fromhex(self.private))

    def claim(self, host_key: bytes, challenge: bytes, operator: OperatorId) -> bytes:
        """The proof, for one connection."""
        return self.sign(claim_text(host_key, challenge, operator))

    def sign(self, text: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(self.private)).sign(text)


def chosen() -> Identity | None:
    """Whom the environment asks to act as; None: the unix user's own actor."""
    name = os.environ.get(VARIABLE, "")
    return load(name) if name else None


def grant(text: str = "") -> bytes:
    """The chain to show: as it is given here, or by the environment; empty when there is none."""
    text = text or os.environ.get(GRANT_VARIABLE, "")
    if not text:
        return b""
    from holdfast.wire.grants import chain_of_text, encode_chain

    if "/" in text:  # which no chain has
        try:
            with open(text, encoding="ascii") as file:
                text = file.read(_GRANT_FILE_MAX_BYTES)
        except (OSError, ValueError) as error:
            raise InvalidArgument(f"cannot read the grant {text[:80]}: {error}") from error
    return encode_chain(chain_of_text(text.strip()))


def make(name: str) -> Identity:
    """A new key; nothing is written yet."""
    private = os.urandom(_KEY_BYTES)
    return Identity(ActorId.of_key(_public(private)), name, private.hex())


def keep(identity: Identity) -> str:
    """Write it where `load` finds it by name; gives the path. An existing key is never replaced."""
    path = key_path(identity.name)
    fields = {"holdfast": _FORM, **identity.pack()}
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"cannot keep the key {path}: {error.strerror}") from error
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise InvalidArgument(
            f"there is a key for {identity.name} already: {path}",
            hint="move it away, or choose another name",
        ) from None
    except OSError as error:
        raise StorageFailed(f"cannot keep the key {path}: {error.strerror}") from error
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")
    except OSError as error:
        os.unlink(path)  # half a key is none
        raise StorageFailed(f"cannot keep the key {path}: {error.strerror}") from error
    return path


def load(name: str) -> Identity:
    """By name, or by the path of a key file."""
    path = name if "/" in name else key_path(name)
    try:
        with open(path, encoding="utf-8") as file:
            fields = json.loads(file.read(4096))
        if type(fields) is not dict or fields.pop("holdfast", "") != _FORM:
            raise Malformed("not an actor's key")
        identity = Identity.unpack(fields, path)
        if ActorId.of_key(identity.public) != identity.actor:
            raise Malformed("the id in it is not derived from the key in it")
        return identity
    except FileNotFoundError:
        hint = "`hold actor add NAME` makes one"
        if os.environ.get("HOLDFAST_SESSION"):
            hint = "keys are hidden in a contained session; `hold run --with-keys` shows them"
        raise NoSuchActor(f"no key to act as {name[:80]!r}", hint=hint) from None
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"cannot use the key {path}: {error}") from error


def set_aside(name: str) -> None:
    """A key that is revoked is replaced by a new one of that name."""
    path = key_path(name)
    try:
        os.rename(path, f"{path}.revoked")
    except OSError as error:
        raise StorageFailed(f"cannot set aside {path}: {error.strerror}") from error


def key_path(name: str) -> str:
    return f"{keys_of(os.environ)}/{name}.key"


def _public(private: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
