"""Requests about invites and devices. One method per message; who may is judged in admission.py and
revoking.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from holdfast.dial.address import relay_address
from holdfast.host.access import device_book, revocation
from holdfast.host.clock import now
from holdfast.host.session_store import Stored
from holdfast.model.admission import InviteInfo
from holdfast.model.errors import InvalidArgument, NotPermitted
from holdfast.model.grant import Reach
from holdfast.model.ids import ActorId
from holdfast.model.invite import Invite
from holdfast.wire.invites import InviteLink
from holdfast.wire.messages import admission as ad
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.connection.operator_connection import OperatorConnection
    from holdfast.host.daemon import Daemon

_SESSION = "session:"


class AdmissionRequests:
    """Answers for one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.by_tag: dict[str, Callable[[OperatorConnection, Any], Any]] = {
            "make_invite": self._make_invite,
            "list_invites": self._list_invites,
            "revoke_invite": self._revoke_invite,
            "list_devices": self._list_devices,
            "revoke_device": self._revoke_device,
            "join": self._join,
        }

    # -- invites ------------------------------------------------------------------------------

    def _make_invite(self, operator: OperatorConnection, request: ad.MakeInvite) -> m.Answer:
        relays = self._daemon.relays
        if not relays and not request.code_only:
            raise InvalidArgument(
                "this host has no relay, so nobody could follow a link to it",
                hint="`hold host --relay https://relay.example`",
            )
        reach = Reach(tuple(self._step(operator, step) for step in request.reach))
        admission = self._daemon.admission
        invite, code = admission.make_invite(operator.actor, request, reach, now())
        link = ""
        if relays:
            relay, host_key = relay_address(relays[0]), self._daemon.store.host_key.public
            pin = bytes.fromhex(relay.pin if relay.scheme == "https" else "")
            link = InviteLink(relay.url, invite.id, code, host_key, pin).text()
        return ad.InviteMade(request.id, _info(invite), code, link)

    def _step(self, operator: OperatorConnection, step: str) -> str:
        """A session by its id, however it was named."""
        if not step.startswith(_SESSION):
            return step
        found = self._daemon.registry.find(operator.actor, step.removeprefix(_SESSION))
        return _SESSION + (found.info.id if isinstance(found, Stored) else found.spec.id)

    def _list_invites(self, operator: OperatorConnection, request: ad.ListInvites) -> m.Answer:
        seen = revocation.seen_invites(self._daemon, operator.actor, now())
        return self._invites(request.id, operator, seen)

    def _revoke_invite(self, operator: OperatorConnection, request: ad.RevokeInvite) -> m.Answer:
        revoked = revocation.revoke_invite(
            self._daemon, operator.actor, request.invite, request.devices, now()
        )
        return self._invites(request.id, operator, [revoked])

    def _invites(self, request: int, operator: OperatorConnection, found: list[Invite]) -> m.Answer:
        return ad.Invites(request, tuple(_info(each) for each in found), self._names(operator))

    # -- devices ------------------------------------------------------------------------------

    def _list_devices(self, operator: OperatorConnection, request: ad.ListDevices) -> m.Answer:
        entries = self._daemon.admission.devices.entries()
        seen = [each for each in entries if operator.actor.may_touch(each.uid)]
        return self._devices(request.id, operator, seen)

    def _revoke_device(self, operator: OperatorConnection, request: ad.RevokeDevice) -> m.Answer:
        ended = revocation.revoke_device(self._daemon, operator.actor, request.actor, now())
        return self._devices(request.id, operator, ended)

    def _devices(
        self, request: int, operator: OperatorConnection, found: Iterable[device_book.Admitted]
    ) -> m.Answer:
        names = self._names(operator)
        shown = self._daemon.admission.shown.links()
        return ad.Devices(request, device_book.describe(found, names, shown, now()), names)

    def _join(self, operator: OperatorConnection, request: ad.Join) -> m.Answer:
        raise NotPermitted(
            "only a device that comes by the link of an invite joins", hint="`hold join LINK`"
        )

    def _names(self, operator: OperatorConnection) -> dict[str, str]:
        return {each.id: each.name for each in self._daemon.actors.seen_by(operator.actor)}


def _info(invite: Invite) -> InviteInfo:
    return InviteInfo(
        invite=invite.id.hex(),
        reach=str(invite.reach),
        rights=invite.rights,
        created_by=invite.created_by,
        created_at=invite.created_at,
        expires_at=invite.expires_at,
        lasts_s=invite.lasts_s,
        uses=invite.uses,
        joined=tuple(ActorId.of_key(each.key) for each in invite.joined),
        delegations=invite.delegations,
        inputs_per_s=invite.inputs_per_s,
        bytes_per_s=invite.bytes_per_s,
        wrong_codes=invite.wrong_codes,
        revoked_at=invite.revoked_at,
    )
