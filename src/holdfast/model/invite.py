"""Invites: a link by which a device that the host does not know yet can join.

An invite says what the device will be granted, and until when and how often the link can be used.
The code in the link is the secret. The host stores only a proof of it, from which the code cannot
be computed; somebody who can read the host's disk can still use the invite, but could also make
grants directly. `core/access/invites.py` counts uses; `wire/invites.py` has the link.
"""

from __future__ import annotations

import hashlib

from holdfast.model.device import KEY_BYTES
from holdfast.model.errors import InvalidArgument
from holdfast.model.grant import SERIAL_BYTES, Grant, Reach
from holdfast.model.limits import INVITE_USES_MAX
from holdfast.model.record import Record

INVITE_ID_BYTES = 8
INVITE_CODE_BYTES = 16
PROOF_BYTES = 32
_SERIAL_DOMAIN = b"holdfast invite serial v1\0"


class Redemption(Record):
    """One device that joined."""

    key: bytes  # Ed25519
    at: float


class Invite(Record):
    """One invite as the host stores it."""

    id: bytes
    proof: bytes  # of the code
    reach: Reach
    rights: tuple[str, ...]
    expires_at: float  # of the link
    lasts_s: float  # of a device's grant, from the moment it joined
    created_at: float
    created_by: str  # an actor's id, or HOST_ACTOR
    uid: int  # the unix user whose sessions it covers
    uses: int = 1
    delegations: int = 0
    inputs_per_s: float | None = None
    bytes_per_s: float | None = None
    joined: tuple[Redemption, ...] = ()
    wrong_codes: int = 0
    revoked_at: float | None = None

    def grant_for(self, joined: Redemption, host_key: bytes) -> Grant:
        """The grant of a device that joined: the same however often it asks."""
        serial = hashlib.sha256(_SERIAL_DOMAIN + self.id + joined.key).digest()[:SERIAL_BYTES]
        begins = int(joined.at)
        return Grant(
            host_key,
            joined.key,
            b"",
            self.reach,
            self.rights,
            begins,
            begins + int(self.lasts_s),
            serial,
            self.inputs_per_s,
            self.bytes_per_s,
            self.delegations,
        )

    def checked(self) -> Invite:
        """This invite, if it is valid and gives a valid grant."""
        if len(self.id) != INVITE_ID_BYTES or len(self.proof) != PROOF_BYTES:
            raise InvalidArgument("an invite's id or proof has a wrong size")
        if not 1 <= self.uses <= INVITE_USES_MAX:
            raise InvalidArgument(f"an invite is for 1 to {INVITE_USES_MAX} devices")
        if not self.created_at < self.expires_at < float("inf"):
            raise InvalidArgument("an invite must end after it begins")
        if not 1 <= self.lasts_s < float("inf"):
            raise InvalidArgument("the grant of an invite must last at least a second")
        self.grant_for(Redemption(bytes(KEY_BYTES), self.created_at), bytes(KEY_BYTES)).checked()
        return self
