"""Who is let in, from this machine and from others: by a chain of grants, by an invite, or as an
actor that is known. No sockets here: channels and connections ask.

    STATE/admission.json   invites, devices, what was revoked, and the latest time of all that

What lets somebody in is on disk before it is answered: an invite that was used up stays so, also
when the daemon is killed between the two. What is revoked counts at once, whatever the disk does;
it stays revoked once it is recorded (rights_file.py). A chain counts for its holder
while the connection that presented it lasts (core.access.presented_grants). All is judged by core.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from holdfast.adapters import signing
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.grant_verifier import VerifiedGrant, Verifier
from holdfast.core.access.invites import InviteBook
from holdfast.core.access.presented_grants import PresentedGrants
from holdfast.host import clock, json_file
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.device_book import Admitted, DeviceBook
from holdfast.host.access.revocation import Revoked
from holdfast.host.access.rights_file import RightsFile
from holdfast.model.actor import Actor, ActorKind, check_name
from holdfast.model.envelope import ALL, Envelope, Right, rights_of
from holdfast.model.errors import (
    ActorRevoked,
    GrantExpired,
    GrantInvalid,
    InvalidArgument,
    InviteExpired,
    InviteInvalid,
    NoSuchActor,
    NotPermitted,
    StorageFailed,
)
from holdfast.model.grant import GrantChain, GrantLink, Reach, StepKind
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.invite import INVITE_CODE_BYTES, INVITE_ID_BYTES, Invite, Redemption
from holdfast.model.limits import (
    DEVICE_SEEN_S,
    INVITE_KEPT_S,
    INVITE_WRONG_MAX,
    NAME_MAX_CHARS,
)
from holdfast.model.record import Record
from holdfast.wire.grants import decode_chain, encode_chain, sign_grant
from holdfast.wire.invites import proof_of, psk_of
from holdfast.wire.messages import admission as ad

log = logging.getLogger(__name__)

_NAME_ROOM = NAME_MAX_CHARS - 5  # of a name that is taken, with a number behind it


class _Kept(Record):
    latest: float = 0.0  # time does not go back behind this
    invites: tuple[Invite, ...] = ()
    devices: tuple[Admitted, ...] = ()
    revoked: Revoked = Revoked()


class Admission:
    """Of one host."""

    def __init__(
        self,
        actors: ActorBook,
        host_key: signing.SigningKey,
        state: str,
        live_sessions: Callable[[], list[Live]],
        relays: Callable[[], tuple[str, ...]],
    ) -> None:
        """`relays`: the addresses at which others dial this host."""
        self._actors, self._key = actors, host_key
        self.live_sessions, self.relays = live_sessions, relays
        path = f"{state}/admission.json"
        without = "nobody is let in from another machine, and what was revoked is not known"
        kept = json_file.read(path, _Kept, without=without) or _Kept()
        self._latest = kept.latest
        clock.not_before(kept.latest)
        self.invites = InviteBook(kept.invites)
        self.devices = DeviceBook(kept.devices)
        self._revoked = kept.revoked
        self._verifier = Verifier(self._key.public, signing.check, barred=self._is_barred)
        if kept.revoked.version:
            self._verifier.take(kept.revoked.signed(self._key), kept.latest)
        self.shown = PresentedGrants(self._verifier, self._earlier_chains)
        self._actors.authority.shown = self.shown
        self.file = RightsFile(path, self._kept)

    # -- coming in ------------------------------------------------------------------------------

    def admit(self, connection: str, device_key: bytes, grant: bytes, now: float) -> Actor:
        """The actor of this key, which was proven on this connection. A chain counts from now on
        until `withdraw`; without one, the actor must be known here."""
        now = max(now, self._latest)
        if not grant:
            return self._known(device_key)
        chain = decode_chain(grant)
        held = self._judged(chain, device_key, now)
        actor = self._actor_of(chain, held)
        self._came(chain, grant, held, actor, now)
        self.shown.show(connection, chain, device_key, now)
        return actor

    def withdraw(self, connection: str) -> ActorId | None:
        """The connection ended; what it alone presented no longer counts. The actor that has fewer
        rights by that; None: a device has many connections, and another presents the same."""
        held = self.shown.withdraw(connection)
        return None if held is None else held.actor

    def review(self, now: float) -> None:
        """An actor was revoked: what is presented is judged again."""
        self.shown.review(max(now, self._latest))

    def _known(self, key: bytes) -> Actor:
        actor = self._actors.get(ActorId.of_key(key))
        if actor is None:
            raise NoSuchActor(
                "this device is not known here", hint="come in by an invite: `hold join LINK`"
            )
        if actor.revoked_at is not None:
            raise ActorRevoked(f"actor {actor.name} was revoked")
        return actor

    def _judged(self, chain: GrantChain, key: bytes, now: float) -> VerifiedGrant:
        try:
            return self._verifier.verify(chain, key, now)
        except GrantExpired:
            self._saw_end(min(link.grant.expires for link in chain.links), now)
            raise

    def _actor_of(self, chain: GrantChain, held: VerifiedGrant) -> Actor:
        """The holder, made if it is not known. It belongs to the unix user whose sessions the grant
        is about: that of the device which had it from the host."""
        first, actor = self._actors.get(held.first), self._actors.get(held.actor)
        uid = first.uid if first is not None else self.devices.uid_of(held.first)
        if uid is None:
            raise GrantInvalid(
                "the host does not know the device that the grant was first given to",
                hint="was its state lost? ask for a new invite",
            )
        if actor is None:
            if held.actor != held.first:
                self.devices.check_room_for_delegate(held.first)
            entry = self.devices.get(chain.links[-1].id)
            return self._make(chain.last.holder, entry.name if entry else "", uid)
        _check_same_user(actor, uid)
        return actor

    def _came(
        self, chain: GrantChain, grant: bytes, held: VerifiedGrant, actor: Actor, now: float
    ) -> None:
        link = chain.links[-1].id
        entry = self.devices.get(link)
        if entry is None:
            with self._changing(now):
                made = Admitted(
                    *(link, grant, held.actor, held.first, actor.uid, actor.name, b""),
                    *(held.granted_by, now, now),
                )
                self.devices.put(made, now)
        elif self.devices.seen(link, now).seen_at - entry.seen_at > DEVICE_SEEN_S:
            self._write_if_possible(now)

    def _make(self, key: bytes, name: str, uid: int) -> Actor:
        """An actor that the host did not know."""
        stem = name or f"device-{ActorId.of_key(key)[:6]}"
        taken = {
            each.name
            for each in self._actors.authority.actors()
            if each.uid == uid and each.revoked_at is None
        }
        free, count = stem, 1
        while free in taken:
            count += 1
            free = f"{stem[:_NAME_ROOM]}-{count}"
        return self._actors.add(uid, free, ActorKind.DEVICE, key, "", "")

    def _earlier_chains(self, actor: ActorId) -> list[GrantChain]:
        standing = (each for each in self.devices.of(actor) if each.revoked_at is None)
        return [decode_chain(each.chain) for each in standing]

    def _is_barred(self, key: bytes) -> bool:
        """Also of a link: what this host took back is more than fits its signed list."""
        if key in self._revoked:
            return True
        actor = self._actors.get(ActorId.of_key(key))
        return actor is not None and actor.revoked_at is not None

    # -- invites --------------------------------------------------------------------------------

    def make_invite(
        self, asker: Actor, asked: ad.MakeInvite, reach: Reach, now: float
    ) -> tuple[Invite, bytes]:
        """A new one, and its code, which is kept nowhere. `reach`: with the ids of sessions."""
        now = max(now, self._latest)
        name, code = os.urandom(INVITE_ID_BYTES), os.urandom(INVITE_CODE_BYTES)
        invite = Invite(
            name,
            proof_of(name, code),
            reach.checked(),
            tuple(str.__str__(right) for right in rights_of(asked.rights)),
            now + asked.expires_s,
            asked.lasts_s,
            now,
            asker.id,
            asker.uid,
            asked.uses,
            asked.delegations,
            asked.inputs_per_s,
            asked.bytes_per_s,
        ).checked()
        self._check_may_give(asker, invite, now)
        with self._changing(now):
            self.invites.forget(now - INVITE_KEPT_S)
            self.invites.add(invite, now)
        return invite, code

    def _check_may_give(self, asker: Actor, invite: Invite, now: float) -> None:
        """Nobody invites to more than it has itself: in rights, in time, in rates."""
        own = f"{StepKind.HOST}:{self._key.public.hex()}"
        if any(step.startswith("host:") and step != own for step in invite.reach.steps):
            raise InvalidArgument("an invite of this host cannot reach another host")
        envelope = Envelope(
            asker.id,
            ALL,
            tuple(Right(right) for right in invite.rights),
            invite.expires_at + invite.lasts_s,  # of a device that joins at the last moment
            invite.inputs_per_s,
            invite.bytes_per_s,
            asker.id,
        ).checked()
        live = self.live_sessions()
        self._actors.authority.check_may_give(envelope, invite.reach, now=now, live=live)

    def psk(self, invite: bytes, now: float) -> bytes:
        """The secret of a handshake by this invite. A handshake that fails is `guessed`."""
        now = max(now, self._latest)
        try:
            proof = self.invites.proof(invite, now)
        except InviteExpired:  # `redeem` says so, and only to a device that has the code
            self._saw_end(self._invite(invite).expires_at, now)
            proof = self._invite(invite).proof
        self._check_maker(self._invite(invite))
        return psk_of(proof, self._key.public)

    def guessed(self, invite: bytes, now: float) -> None:
        """A wrong code. It is counted whether or not that can be written down."""
        self.invites.guessed(invite, max(now, self._latest))
        with suppress(InviteInvalid):
            if self._invite(invite).wrong_codes <= INVITE_WRONG_MAX:
                self._write_if_possible(now)

    def see(
        self, request: int, invite: bytes, key: bytes, names: Mapping[SessionId, str], now: float
    ) -> ad.InviteSeen:
        """What the holder of this key would get by `redeem`. `names` of the running sessions."""
        known = self._invite(invite)
        self._check_maker(known)
        known = self.invites.look(invite, known.proof, key, max(now, self._latest))
        named = {step.partition(":")[2] for step in known.reach.steps}
        return ad.InviteSeen(
            request,
            self._actors.authority.name(known.created_by),
            socket.gethostname(),
            known.reach.steps,
            {str(session): name for session, name in names.items() if session in named},
            known.rights,
            known.expires_at,
            known.lasts_s,
            known.uses - len(known.joined),
        )

    def redeem(self, invite: bytes, key: bytes, name: str, now: float) -> bytes:
        """Let in the holder of this key, which has made the handshake of this invite. Returns the
        chain that it may present from now on; the same key gets the same chain again."""
        now = max(now, self._latest)
        if name:
            check_name(name, "device")
        known = self._invite(invite)
        self._check_maker(known)
        actor = self._actors.get(ActorId.of_key(key))
        if actor is not None:
            self._known(key)  # or it was revoked
            _check_same_user(actor, known.uid)
        with self._changing(now):
            redeemed = self.invites.redeem(invite, known.proof, key, now)
            chain, link = self._chain(redeemed.invite, redeemed.joined)
            if actor is None:
                actor = self._make(key, name, known.uid)
            if self.devices.get(link) is None:
                entry = Admitted(
                    *(link, chain, actor.id, actor.id, actor.uid, name, invite),
                    *(known.created_by, now, now),
                )
                self.devices.put(entry, now)
        return chain

    def join(self, request: int, invite: bytes, key: bytes, name: str, now: float) -> ad.Joined:
        """`redeem`, with all that a device needs to connect again."""
        chain = self.redeem(invite, key, name, now)
        actor = self._actors.get(ActorId.of_key(key))
        assert actor is not None
        return ad.Joined(request, chain, actor.name, socket.gethostname(), self.relays())

    def _chain(self, invite: Invite, joined: Redemption) -> tuple[bytes, bytes]:
        link = sign_grant(invite.grant_for(joined, self._key.public), self._key.sign)
        return encode_chain(GrantChain((link,))), link.id

    def _invite(self, invite: bytes) -> Invite:
        found = (each for each in self.invites.invites() if each.id == invite)
        known = next(found, None)
        if known is None:
            raise InviteInvalid("there is no invite with this id and code")
        return known

    def _check_maker(self, invite: Invite) -> None:
        """An invite is worth no more than the actor that made it: it ends with that actor."""
        maker = self._actors.get(invite.created_by)
        if maker is None or maker.revoked_at is not None:
            raise InviteInvalid(
                "the actor that made this invite was revoked", hint="ask for a new one"
            )

    # -- taking back ----------------------------------------------------------------------------

    def revoke(
        self,
        links: Collection[GrantLink],
        keys: Collection[bytes],
        invites: Collection[Invite],
        now: float,
    ) -> None:
        """From now on these links and keys do not count, nor does anything that hangs on them, and
        nobody joins by these invites. The caller notifies sessions."""
        self._latest = now = max(now, self._latest)
        revoked = self._revoked.with_(links, keys, now) if links or keys else self._revoked
        for invite in invites:
            self.invites.revoke(invite.id, now)
        if links or keys:
            self._revoked = revoked
            self.devices.revoked({link.id for link in links}, keys, now)
            self._verifier.take(self._revoked.signed(self._key), now)
            self.review(now)
        self.file.write_when_possible()

    # -- disk -----------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, now: float) -> Iterator[None]:
        """What is changed inside is on disk afterwards, or is what it was."""
        invites, devices = self.invites.invites(), self.devices.entries()
        revoked = self._revoked
        try:
            yield
            self._write(now)
        except BaseException:
            self.invites.take_back(invites)
            self.devices.take_back(devices)
            self._revoked = revoked
            raise

    def _write(self, now: float) -> None:
        latest = max(now, self._latest)
        self.file.write(self._kept().replace(latest=latest))
        self._latest = latest

    def _kept(self) -> _Kept:
        devices = self.devices.entries()
        return _Kept(self._latest, self.invites.invites(), devices, self._revoked)

    def _write_if_possible(self, now: float) -> None:
        try:
            self._write(now)
        except StorageFailed as error:
            log.error("%s", error.message)

    def _saw_end(self, at: float, now: float) -> None:
        """Something has expired: a clock set back must not bring it to life, not even after a
        restart. Once for each moment, however often somebody tries."""
        if self._latest < at:
            self._write_if_possible(now)


def _check_same_user(actor: Actor, uid: int) -> None:
    if actor.uid != uid:
        raise NotPermitted(
            f"the key is known here as {actor.name}, an actor of another unix user",
            hint="use another key for this",
        )
