"""Invites and devices as people are told of them. What a host keeps of an invite is in `invite.py`;
what a device may do is in its grant."""

from __future__ import annotations

from holdfast.model.ids import ActorId
from holdfast.model.record import Record


class InviteInfo(Record):
    """One invite; never its code."""

    invite: str  # its id, in hexadecimal
    reach: str  # where what it gives counts: `all`, or steps with `/` between them
    rights: tuple[str, ...]
    created_by: str  # the actor who made it, by id
    created_at: float
    expires_at: float  # of the link
    lasts_s: float  # of what a device is granted, from when it came in
    uses: int  # devices it is for
    joined: tuple[str, ...]  # the actors that came in by it, by id
    delegations: int = 0
    inputs_per_s: float | None = None
    bytes_per_s: float | None = None
    wrong_codes: int = 0
    revoked_at: float | None = None


class DeviceInfo(Record):
    """One grant by which somebody came in: by an invite, or handed on by another."""

    actor: ActorId
    name: str  # of the actor, on this host
    reach: str
    rights: tuple[str, ...]
    invite: str  # the invite it came by, in hexadecimal; "": it was handed on
    given_by: str  # who made the invite or handed it on, by id
    came_at: float  # when it first came
    seen_at: float  # and when last
    until: float  # from then on the grant counts no more
    here: int = 0  # connections that show it now
    delegations: int = 0
    revoked_at: float | None = None
