"""Messages about who is let in: invites, devices that came by them, and joining."""

from __future__ import annotations

from holdfast.model.admission import DeviceInfo, InviteInfo
from holdfast.wire.messages.base import Answer, Request


class MakeInvite(Request, tag="make_invite"):
    """Make a link by which devices join; see grants.md. It cannot give more, nor for longer, than
    the asker has, counted from when the link expires. Without a relay the host refuses with
    `invalid_argument`. Answered by InviteMade."""

    # steps that a session must all match; none: every session. `session:` may be followed by a name
    # or a beginning of an id
    reach: tuple[str, ...]
    rights: tuple[str, ...]  # rights and roles, mixed
    expires_s: float  # how long the link can be used
    lasts_s: float  # how long a device keeps these rights, from when it joins
    uses: int = 1  # how many devices it is for, at most 256
    delegations: int = 0  # how often a device may delegate its grant
    inputs_per_s: float | None = None  # inputs a second, above 0; null is no limit
    bytes_per_s: float | None = None  # bytes of input a second, above 0; null is no limit
    code_only: bool = False  # make the invite even if the host has no relay; there is no link then


class InviteMade(Answer, tag="invite_made"):
    """The new invite. No other message has its code."""

    invite: InviteInfo  # the invite
    code: bytes  # the secret of the link, 16 bytes. The host keeps no copy
    link: str  # the link; empty when the host has no relay


class ListInvites(Request, tag="list_invites"):
    """Invites of this host, also ended ones for as long as they are kept. Answered by Invites."""


class RevokeInvite(Request, tag="revoke_invite"):
    """Nobody can join by this invite from now on. Answered by Invites with this one."""

    invite: str  # its id in hexadecimal, or a unique beginning of it
    devices: bool = False  # also revoke what the devices that joined by it were given


class Invites(Answer, tag="invites"):
    invites: tuple[InviteInfo, ...]  # the invites
    names: dict[str, str]  # names of the actors the asker sees, by id
    unrecorded: str = ""  # as in `actor_shown`


class ListDevices(Request, tag="list_devices"):
    """Devices that joined by an invite, or presented a delegated grant. Answered by Devices."""


class RevokeDevice(Request, tag="revoke_device"):
    """Shut out a device that joined by an invite or a grant, at once and forever: its actor is
    revoked, with the grants it delegated, the invites it made, and what others got by those. If the
    asker only delegated a grant to it, only that grant is revoked. Answered by Devices with
    everything that ended."""

    actor: str  # name or id


class Devices(Answer, tag="devices"):
    devices: tuple[DeviceInfo, ...]  # one for each grant that was presented
    names: dict[str, str]  # names of the actors the asker sees, by id
    unrecorded: str = ""  # as in `actor_shown`


class SeeInvite(Request, tag="see_invite"):
    """Who invites to what. Uses nothing up. Only on the channel of an invite, as its only request;
    elsewhere `not_permitted`. Answered by InviteSeen."""


class InviteSeen(Answer, tag="invite_seen"):
    """What a device gets that joins by this invite."""

    inviter: str  # name of the actor that made it
    host_name: str  # the host's own name
    reach: tuple[str, ...]  # steps that a session must all match; none: every session
    names: dict[str, str]  # names of the running sessions in `reach`, by id
    rights: tuple[str, ...]  # rights
    expires_at: float  # when the link can be used no more
    lasts_s: float  # how long a device keeps these rights, from when it joins
    uses_left: int  # how many more devices can join by it


class Join(Request, tag="join"):
    """Admit this device. Only on the channel of an invite, as its only request; elsewhere
    `not_permitted`. The same device may ask again and gets the same answer. Answered by Joined."""

    name: str = ""  # the name it asks for; if that is taken, a number is added


class Joined(Answer, tag="joined"):
    chain: bytes  # its grant, to be presented at each connection
    actor: str  # its name on this host
    host_name: str  # the host's own name
    relays: tuple[str, ...]  # where the host can be reached
