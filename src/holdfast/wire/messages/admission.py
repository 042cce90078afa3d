"""Messages about who is let in: invites, devices that came by them, and joining."""

from __future__ import annotations

from holdfast.model.admission import DeviceInfo, InviteInfo
from holdfast.wire.messages.base import Answer, Request


class MakeInvite(Request):
    """Make a link by which devices come in. Answered by InviteMade.

    `reach` has steps as in docs/grants.md; a session may be named there as anywhere else."""

    tag = "make_invite"
    reach: tuple[str, ...]
    rights: tuple[str, ...]
    expires_s: float  # of the link
    lasts_s: float  # of what a device is granted, from when it comes in
    uses: int = 1
    delegations: int = 0
    inputs_per_s: float | None = None
    bytes_per_s: float | None = None
    code_only: bool = False  # also when the host has no relay to name in a link


class InviteMade(Answer):
    """The only message that ever has the code."""

    tag = "invite_made"
    invite: InviteInfo
    code: bytes
    link: str  # "" when the host has no relay


class ListInvites(Request):
    """Those the asker made, or could take back. Answered by Invites."""

    tag = "list_invites"


class RevokeInvite(Request):
    """Nobody comes in by it any more; `devices`: and who did may do nothing by it any more.
    Answered by Invites with this one."""

    tag = "revoke_invite"
    invite: str  # its id in hexadecimal, or a beginning of it that only one has
    devices: bool = False


class Invites(Answer):
    tag = "invites"
    invites: tuple[InviteInfo, ...]
    names: dict[str, str]  # of the actors in them, by id


class ListDevices(Request):
    """Who came in by an invite, or with what was handed on. Answered by Devices."""

    tag = "list_devices"


class RevokeDevice(Request):
    """What this actor came in with counts no more, at once, nor does what hangs on it. Answered by
    Devices with what was revoked."""

    tag = "revoke_device"
    actor: str


class Devices(Answer):
    tag = "devices"
    devices: tuple[DeviceInfo, ...]
    names: dict[str, str]  # of the actors in them, by id


class Join(Request):
    """On the channel of an invite, and only there: let this device in. Answered by Joined."""

    tag = "join"
    name: str = ""  # what it wants to be called


class Joined(Answer):
    tag = "joined"
    chain: bytes  # the grant
    actor: str  # what it is called here
    host_name: str
    relays: tuple[str, ...]  # where this host can be reached
