"""Invites and devices as listed for people. What a host stores of an invite is in `invite.py`; a
device's rights are in its grant."""

from __future__ import annotations

from holdfast.model.ids import ActorId
from holdfast.model.record import Record


class InviteInfo(Record):
    """An invite; never its code."""

    invite: str  # its id, in hexadecimal
    # where what it gives applies: `all`, or steps (`label:NAME`, `session:ID`) with `/` between
    # them, all of which must match
    reach: str
    rights: tuple[str, ...]  # what a device may do there
    created_by: str  # who made it, by id
    created_at: float  # seconds since 1970
    expires_at: float  # from then on nobody can join by it
    lasts_s: float  # how long a device keeps these rights, from when it joins
    uses: int  # how many devices it is for
    joined: tuple[str, ...]  # the actors that joined by it, by id
    delegations: int = 0  # how often a device may delegate its grant
    inputs_per_s: float | None = None  # inputs a second; null is no limit
    bytes_per_s: float | None = None  # bytes of input a second; null is no limit
    wrong_codes: int = 0  # wrong codes tried so far; 16 close the invite
    revoked_at: float | None = None  # seconds since 1970; null when it was not revoked


class DeviceInfo(Record):
    """One grant that a device joined with."""

    actor: ActorId  # id of its actor
    name: str  # its name on this host
    reach: str  # where the grant applies, as in `InviteInfo`
    rights: tuple[str, ...]  # what it allows there
    invite: str  # the invite it joined by, in hexadecimal; empty when the grant was delegated
    given_by: str  # who made the invite or delegated the grant, by id; empty is the host
    came_at: float  # when it first connected, seconds since 1970
    seen_at: float  # when it was last connected, seconds since 1970; now while it is
    until: float  # when the grant expires, seconds since 1970
    here: int = 0  # connections that present it now
    delegations: int = 0  # how often it may be delegated
    revoked_at: float | None = None  # seconds since 1970; null when it was not revoked
