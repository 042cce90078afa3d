"""Requests about actors, envelopes, invites and devices. What each needs is in
core.access.host_rules; the request table has seen to it before a handler runs."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.adapters import signing
from holdfast.core.access import inside_rules
from holdfast.dial.address import relay_address
from holdfast.host.access import device_book
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.admission import Admission
from holdfast.host.access.revocation import Revocation
from holdfast.host.access.rights_notices import RightsNotices
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.session_registry import FindSession, Specified
from holdfast.host.session_store import Stored
from holdfast.model.actor import Actor
from holdfast.model.admission import InviteInfo
from holdfast.model.envelope import ALL, Envelope, Scope, rights_of
from holdfast.model.errors import BadSignature, GrantInvalid, InvalidArgument, NotPermitted
from holdfast.model.grant import Reach
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.invite import Invite
from holdfast.wire.grants import decode_chain
from holdfast.wire.invites import InviteLink
from holdfast.wire.messages import access
from holdfast.wire.messages import admission as ad
from holdfast.wire.messages import session as m
from holdfast.wire.messages.access import claim_text

_SESSION = "session:"


class AccessRequests:
    """Handlers of one host."""

    def __init__(
        self,
        actors: ActorBook,
        admission: Admission,
        revocation: Revocation,
        notices: RightsNotices,
        sessions: FindSession,
        host_key: bytes,
    ) -> None:
        self._actors, self._admission, self._revocation = actors, admission, revocation
        self._notices, self._sessions, self._host_key = notices, sessions, host_key

    # -- actors -------------------------------------------------------------------------------

    def claim(self, operator: OperatorConnection, claim: access.Claim) -> m.Answer:
        assert operator.claimed_id is not None  # it said hello
        text = claim_text(self._host_key, operator.challenge, operator.claimed_id)
        if claim.grant:
            actor = self._admitted(operator, claim, text)
        else:
            actor = self._actors.find(operator.local_actor, claim.actor)
            self._actors.check_claim(actor, text, claim.signature)
        operator.act_as(actor)
        return access.ActorShown(claim.id, actor)

    def _admitted(self, operator: OperatorConnection, claim: access.Claim, text: bytes) -> Actor:
        """An actor that presents a grant need not be known: the grant names its key, and whose
        sessions it is about, whatever unix user asks."""
        operator.act_as(operator.actor)  # raises when it is too late: nothing has changed then
        key = decode_chain(claim.grant).last.holder
        if claim.actor != ActorId.of_key(key):
            raise GrantInvalid("the grant is for another actor than the one claimed")
        if not signing.check(key, text, claim.signature):
            raise BadSignature("the claim is not signed with the key the grant is for")
        return self._admission.admit(operator.connection, key, claim.grant, now())

    def add_actor(self, operator: OperatorConnection, request: access.AddActor) -> m.Answer:
        actor = self._actors.add(
            operator.actor.uid,
            request.name,
            request.kind,
            request.key,
            request.display,
            request.colour,
        )
        return access.ActorShown(request.id, actor)

    def list_actors(self, operator: OperatorConnection, request: access.ListActors) -> m.Answer:
        return access.Actors(request.id, tuple(self._actors.seen_by(operator.actor)))

    def show_actor(self, operator: OperatorConnection, request: access.ShowActor) -> m.Answer:
        actor = operator.actor
        if request.actor:
            actor = self._actors.find(actor, request.actor)
        return access.ActorShown(request.id, actor, self._actors.envelopes_of(actor))

    def revoke_actor(self, operator: OperatorConnection, request: access.RevokeActor) -> m.Answer:
        actor = self._actors.find(operator.actor, request.actor)
        live = self._admission.live_sessions()
        revoked = self._actors.revoke(operator.actor.id, actor, live)
        self._notices.authority_changed(operator.actor, revoked, None)
        return access.ActorShown(request.id, revoked, unrecorded=self._unrecorded())

    # -- envelopes ----------------------------------------------------------------------------

    def grant(self, operator: OperatorConnection, request: access.GrantEnvelope) -> m.Answer:
        actors = self._actors
        subject = actors.find(operator.actor, request.actor)
        at = now()
        envelope = Envelope(
            ActorId(subject.id),
            self._scope(operator, request.scope),
            rights_of(request.rights),
            request.expires_at if request.lasts_s is None else at + request.lasts_s,
            request.inputs_per_s,
            request.bytes_per_s,
            operator.actor.id,
            at,
        ).checked()
        self._check_others(operator, "grant", envelope, Reach.of_scope(envelope.scope))
        actors.grant(envelope, self._admission.live_sessions())
        self._notices.authority_changed(operator.actor, subject, envelope)
        return self._envelopes(request.id, operator, [envelope])

    def revoke(self, operator: OperatorConnection, request: access.RevokeEnvelope) -> m.Answer:
        actors = self._actors
        subject = actors.find(operator.actor, request.actor)
        scope = self._scope(operator, request.scope)
        nothing = Envelope(ActorId(subject.id), scope, ())
        self._check_others(operator, "revoke", nothing, Reach.of_scope(scope))
        left = actors.narrow_to_nothing(
            operator.actor, subject, scope, self._admission.live_sessions()
        )
        self._notices.authority_changed(operator.actor, subject, left)
        return self._envelopes(request.id, operator, [left])

    def list_envelopes(
        self,
        operator: OperatorConnection,
        request: access.ListEnvelopes,
        session: Specified | Stored | None,
    ) -> m.Answer:
        actors = self._actors
        found = [
            envelope
            for actor in actors.seen_by(operator.actor)
            for envelope in actors.envelopes_of(actor)
        ]
        if session is not None:
            known = session.info if isinstance(session, Stored) else session.spec
            scopes = {ALL, Scope.session(known.id), *(Scope.label(name) for name in known.labels)}
            found = [envelope for envelope in found if envelope.scope in scopes]
        return self._envelopes(request.id, operator, found)

    def _check_others(
        self, operator: OperatorConnection, tag: str, envelope: Envelope, reach: Reach
    ) -> None:
        """From inside a session: each actor that wrote there could do it too."""
        live = self._admission.live_sessions()
        actor = operator.actor.id
        for each in inside_rules.others_behind(operator.inside, actor, sensitive=True):
            given = envelope.replace(granted_by=each)
            try:
                self._actors.authority.check_may_give(given, reach, now=now(), live=live)
            except NotPermitted as refusal:
                raise inside_rules.from_inside(tag, refusal) from refusal

    def _envelopes(
        self, request: int, operator: OperatorConnection, found: list[Envelope]
    ) -> m.Answer:
        names = self._names(operator)
        return access.Envelopes(request, tuple(found), names, self._unrecorded(), now())

    def _scope(self, operator: OperatorConnection, text: str) -> Scope:
        if text == "all" or text.startswith("label:"):
            return Scope.parse(text)
        return Scope.session(self._session_id(operator, text.removeprefix(_SESSION)))

    def _session_id(self, operator: OperatorConnection, name: str) -> SessionId:
        found = self._sessions.find(operator.actor, name)
        return found.info.id if isinstance(found, Stored) else found.spec.id

    # -- invites ------------------------------------------------------------------------------

    def make_invite(self, operator: OperatorConnection, request: ad.MakeInvite) -> m.Answer:
        relays = self._admission.relays()
        if not relays and not request.code_only:
            raise InvalidArgument(
                "this host has no relay, so nobody could follow a link to it",
                hint="`hold host --relay https://relay.example`",
            )
        reach = Reach(tuple(self._step(operator, step) for step in request.reach))
        admission = self._admission
        given = Envelope(
            operator.actor.id,
            ALL,
            rights_of(request.rights),
            now() + request.expires_s + request.lasts_s,
            request.inputs_per_s,
            request.bytes_per_s,
        )
        self._check_others(operator, "make_invite", given, reach)
        invite, code = admission.make_invite(operator.actor, request, reach, now())
        link = ""
        if relays:
            relay, host_key = relay_address(relays[0]), self._host_key
            pin = bytes.fromhex(relay.pin if relay.scheme == "https" else "")
            link = InviteLink(relay.url, invite.id, code, host_key, pin).text()
        return ad.InviteMade(request.id, _info(invite), code, link)

    def _step(self, operator: OperatorConnection, step: str) -> str:
        """A session by its id, however it was named."""
        if not step.startswith(_SESSION):
            return step
        return _SESSION + self._session_id(operator, step.removeprefix(_SESSION))

    def list_invites(self, operator: OperatorConnection, request: ad.ListInvites) -> m.Answer:
        seen = self._revocation.seen_invites(operator.actor, now())
        return self._invites(request.id, operator, seen)

    def revoke_invite(self, operator: OperatorConnection, request: ad.RevokeInvite) -> m.Answer:
        revoked = self._revocation.revoke_invite(
            operator.actor, request.invite, request.devices, now()
        )
        return self._invites(request.id, operator, [revoked])

    def _invites(self, request: int, operator: OperatorConnection, found: list[Invite]) -> m.Answer:
        names, infos = self._names(operator), tuple(_info(each) for each in found)
        return ad.Invites(request, infos, names, self._unrecorded())

    # -- devices ------------------------------------------------------------------------------

    def list_devices(self, operator: OperatorConnection, request: ad.ListDevices) -> m.Answer:
        entries = self._admission.devices.entries()
        seen = [each for each in entries if operator.actor.may_touch(each.uid)]
        return self._devices(request.id, operator, seen)

    def revoke_device(self, operator: OperatorConnection, request: ad.RevokeDevice) -> m.Answer:
        ended = self._revocation.revoke_device(operator.actor, request.actor, now())
        return self._devices(request.id, operator, ended)

    def _devices(
        self, request: int, operator: OperatorConnection, found: Iterable[device_book.Admitted]
    ) -> m.Answer:
        names = self._names(operator)
        shown = self._admission.shown.links()
        infos = device_book.describe(found, names, shown, now())
        return ad.Devices(request, infos, names, self._unrecorded())

    def preview_invite(self, operator: OperatorConnection, request: ad.PreviewInvite) -> m.Answer:
        raise NotPermitted("only a device that uses the link of an invite can look at it")

    def join(self, operator: OperatorConnection, request: ad.Join) -> m.Answer:
        raise NotPermitted(
            "only a device that uses the link of an invite can join", hint="`hold join LINK`"
        )

    def _unrecorded(self) -> str:
        """Why rights that were taken away are not recorded yet, or ""."""
        return self._actors.file.unrecorded() or self._admission.file.unrecorded()

    def _names(self, operator: OperatorConnection) -> dict[str, str]:
        return {each.id: each.name for each in self._actors.seen_by(operator.actor)}


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
