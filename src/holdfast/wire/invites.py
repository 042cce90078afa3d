"""The link of an invite, and the secrets made from its code.

    https://relay.example/i#ID.CODE.HOSTKEY
    https://192.168.1.5:7420/i#ID.CODE.HOSTKEY.CERTIFICATE

Everything secret is after the `#`, which neither browsers nor our clients send anywhere. The caller
makes the code from random bytes. The host's key makes the link valid for this host only: what a
relay says about the host is checked against it. The fourth part is the fingerprint of the relay's
certificate if it is self-signed. Parsing raises only `InviteInvalid`.
"""

from __future__ import annotations

import hmac

from holdfast.model.device import KEY_BYTES
from holdfast.model.errors import InviteInvalid
from holdfast.model.invite import INVITE_CODE_BYTES, INVITE_ID_BYTES
from holdfast.model.limits import INVITE_LINK_MAX_CHARS
from holdfast.model.record import Record
from holdfast.wire.base64url import decoded, encoded

PROOF_DOMAIN = b"holdfast invite proof v1\0"
PSK_DOMAIN = b"holdfast invite psk v1\0"
PROLOGUE_DOMAIN = b"holdfast invite channel v1\0"
PIN_BYTES = 32
_SECURE = "https://"
_SCHEMES = (_SECURE, "http://")
_PATH = "/i"


class InviteLink(Record):
    """What a link says. Its repr, which may end up in logs, leaves out the code; `text` has it."""

    relay: str  # the relay's address, without the path of invites
    id: bytes
    code: bytes
    host_key: bytes  # Ed25519
    pin: bytes = (
        b""  # SHA-256 of the relay's certificate; empty: checked against certificate authorities
    )

    def __repr__(self) -> str:
        return f"InviteLink({self.relay!r}, {self.id.hex()})"

    def text(self) -> str:
        self.checked()
        parts = (self.id, self.code, self.host_key, *([self.pin] if self.pin else []))
        return f"{self.relay}{_PATH}#{'.'.join(encoded(part) for part in parts)}"

    @property
    def address(self) -> str:
        """The relay's address with its fingerprint, as it is dialled."""
        return f"{self.relay}#sha256:{self.pin.hex()}" if self.pin else self.relay

    def checked(self) -> InviteLink:
        sizes = (len(self.id), len(self.code), len(self.host_key))
        if sizes != (INVITE_ID_BYTES, INVITE_CODE_BYTES, KEY_BYTES):
            raise InviteInvalid("a part of the link is missing or cut off", hint=_WHOLE)
        if self.pin and (len(self.pin) != PIN_BYTES or not self.relay.startswith(_SECURE)):
            raise InviteInvalid(
                "the link's fingerprint is cut off, or the address is not https", hint=_WHOLE
            )
        scheme = next((each for each in _SCHEMES if self.relay.startswith(each)), "")
        where = self.relay[len(scheme) :]
        # No user name, password or query: the part before the '#' reaches the relay, and must not
        # look as if it could hold a secret.
        if not scheme or not where or not set(where) <= _ADDRESS or where[0] in "/:":
            raise InviteInvalid("the link has no relay address before '/i#'", hint=_WHOLE)
        if where.endswith("/"):
            raise InviteInvalid("the relay's address ends with a '/'", hint=_WHOLE)
        return self


_WHOLE = "copy the whole link, from http to its last character"
_ADDRESS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_~:/[]")


def parse_link(text: str) -> InviteLink:
    """Parse a link; it must be complete."""
    if len(text) > INVITE_LINK_MAX_CHARS:
        raise InviteInvalid(f"a link has at most {INVITE_LINK_MAX_CHARS} characters")
    front, _, secret = text.strip().partition("#")
    parts = [decoded(part) for part in secret.split(".")]
    if not front.endswith(_PATH) or len(parts) not in (3, 4):
        raise InviteInvalid("this is not an invite link", hint=_WHOLE)
    if len(parts) == 4 and not parts[3]:
        raise InviteInvalid("the link's fingerprint is missing", hint=_WHOLE)
    name, code, host_key, *pin = (part or b"" for part in parts)
    return InviteLink(front[: -len(_PATH)], name, code, host_key, *pin).checked()


def proof_of(invite: bytes, code: bytes) -> bytes:
    """All that the host stores of a code."""
    return hmac.digest(code, PROOF_DOMAIN + invite, "sha256")


def psk_of(proof: bytes, host_key: bytes) -> bytes:
    """The secret of the IKpsk1 handshake. The device computes it from the code, the host from the
    stored proof."""
    return hmac.digest(proof, PSK_DOMAIN + host_key, "sha256")


def invite_prologue(invite: bytes, host_key: bytes) -> bytes:
    """The prologue of that handshake, which is not about one session: it fits no other invite."""
    return PROLOGUE_DOMAIN + invite + host_key
