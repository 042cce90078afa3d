"""Taking back what was given: what goes with it, and the signed list of what was taken back.

An invite is revoked by its maker, or by an actor that may grant throughout its reach. A device is
revoked by itself, or by an actor that may grant throughout everything it has; its actor is revoked
with it. An actor that handed a grant on takes back that one link, and the other actor stays: it may
hold something else.

With a link goes what was handed on from it: a chain carries its ancestors. With a device go also
the invites that it made, and what devices have that joined by them.

The list has a number that rises, and the host's signature. What has expired by itself is left out
of the next one. docs/grants.md has the list as others read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.adapters.signing import SigningKey
from holdfast.core.access import host_rules
from holdfast.host.access.actor_book import ActorBook
from holdfast.host.access.device_book import Admitted
from holdfast.host.access.rights_notices import RightsNotices
from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope, Scope
from holdfast.model.errors import (
    AmbiguousName,
    InviteInvalid,
    LimitReached,
    NoSuchActor,
    NotPermitted,
)
from holdfast.model.grant import GrantLink, Reach, Revocations
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.invite import Invite
from holdfast.model.limits import GRANT_LIFE_MAX_S, REVOCATIONS_KEPT_MAX, REVOCATIONS_MAX
from holdfast.model.record import Record
from holdfast.wire.grants import sign_revocations

if TYPE_CHECKING:
    from holdfast.host.access.admission import Admission


class Revoked(Record):
    """Links and keys, in hexadecimal, each with the time after which nothing can rest on it."""

    version: int = 0
    issued_at: int = 0
    links: dict[str, float] = {}  # noqa: RUF012 - Records never mutate a default
    keys: dict[str, float] = {}  # noqa: RUF012

    def with_(self, links: Iterable[GrantLink], keys: Iterable[bytes], now: float) -> Revoked:
        """The list after this one."""
        all_links = self.links | {link.id.hex(): float(link.grant.expires) for link in links}
        # No grant lasts longer, and the host gives none to an actor that is revoked.
        all_keys = self.keys | {key.hex(): now + GRANT_LIFE_MAX_S for key in keys}
        made = Revoked(
            self.version + 1, int(now), _lasting(all_links, now), _lasting(all_keys, now)
        )
        if len(made.links) + len(made.keys) > REVOCATIONS_KEPT_MAX:
            raise LimitReached(
                f"already {REVOCATIONS_KEPT_MAX} grants and devices are revoked here",
                hint="`hold actor revoke` ends an actor, with all it handed on",
            )
        return made

    def __contains__(self, link_or_key: bytes) -> bool:
        name = link_or_key.hex()
        return name in self.links or name in self.keys

    def signed(self, key: SigningKey) -> Revocations:
        """What others go by. What finds no place on it, those that expire first, counts here."""
        listed = sorted((self.links | self.keys).items(), key=lambda item: item[1], reverse=True)
        names = {name for name, _ in listed[:REVOCATIONS_MAX]}
        return sign_revocations(
            key.public,
            self.version,
            self.issued_at,
            [bytes.fromhex(each) for each in self.links if each in names],
            [bytes.fromhex(each) for each in self.keys if each in names],
            key.sign,
        )


def _lasting(items: dict[str, float], now: float) -> dict[str, float]:
    return {item: until for item, until in items.items() if until > now}


class Revocation:
    """Takes back invites and devices of one host."""

    def __init__(
        self, actors: ActorBook, admission: Admission, notices: RightsNotices, host_key: bytes
    ) -> None:
        self._actors, self._admission, self._notices = actors, admission, notices
        self._host_key = host_key

    # -- invites ----------------------------------------------------------------------------------

    def seen_invites(self, asker: Actor, now: float) -> list[Invite]:
        live = self._admission.live_sessions()
        return [
            invite
            for invite in self._admission.invites.invites()
            if host_rules.may_see_invite(self._actors.authority, asker, invite, now, live)
        ]

    def revoke_invite(self, asker: Actor, text: str, devices: bool, now: float) -> Invite:
        """Nobody can join by it from now on; `devices`: those that did lose what they got by it."""
        invite = _find(self.seen_invites(asker, now), text)
        ended = [
            each
            for each in self._admission.devices.entries()
            if devices and each.invite == invite.id and each.revoked_at is None
        ]
        self._admission.revoke([each.last for each in ended], [], [invite], now)
        self._notify(asker, ended, now)
        return next(each for each in self._admission.invites.invites() if each.id == invite.id)

    # -- devices ----------------------------------------------------------------------------------

    def revoke_device(self, asker: Actor, text: str, now: float) -> list[Admitted]:
        """What was taken back, and what went with it."""
        book = self._admission.devices
        subject = self._actors.find(asker, text)
        came = [each for each in book.of(subject.id) if each.revoked_at is None]
        if not came:
            raise NoSuchActor(
                f"{subject.name} has not come in by an invite or a grant that still stands",
                hint="`hold device ls` lists who did; `hold actor revoke` ends any actor",
            )
        before = {each.link for each in book.entries() if each.revoked_at is None}
        if subject.id == asker.id or self._may_shut_out(asker, subject, came, now):
            self._shut_out(asker, subject, now)
        else:
            self._take_back_links(asker, subject, came, now)
        ended = (each for each in book.entries() if each.revoked_at is not None)
        return [each for each in ended if each.link in before]

    def _may_shut_out(self, asker: Actor, subject: Actor, came: list[Admitted], now: float) -> bool:
        given = [Reach.of_scope(each.scope) for each in self._actors.envelopes_of(subject)]
        reaches = [*given, *(each.grant.reach for each in came)]
        authority, live = self._actors.authority, self._admission.live_sessions()
        return all(host_rules.may_take_back(authority, asker, each, now, live) for each in reaches)

    def _shut_out(self, asker: Actor, subject: Actor, now: float) -> None:
        """Its actor first: from then on nothing of it counts, whatever comes between."""
        if subject.revoked_at is None:
            live = self._admission.live_sessions()
            subject = self._actors.revoke(HOST_ACTOR, subject, live, asker.id)
        links, invites = self._resting_on(subject)
        try:
            self._admission.revoke(links, [subject.key], invites, now)
        finally:
            self._notices.authority_changed(asker, subject, None)

    def _resting_on(self, subject: Actor) -> tuple[list[GrantLink], list[Invite]]:
        """What it came in with, the invites it made, and what others have by those, and so on; what
        somebody can do for another reason as well is not followed."""
        entries = [each for each in self._admission.devices.entries() if each.revoked_at is None]
        ended = {each.link: each for each in entries if each.actor == subject.id}
        invites: list[Invite] = []
        makers = [ActorId(subject.id)]
        while makers:
            maker = makers.pop()
            made = [each for each in self._admission.invites.invites() if each.created_by == maker]
            invites += [each for each in made if each.revoked_at is None]
            ids = {each.id for each in made}
            for each in entries:
                if each.invite in ids and each.link not in ended:
                    ended[each.link] = each
                    others = [one for one in entries if one.actor == each.actor]
                    stands = any(one.link not in ended for one in others)
                    if not stands and not self._actors.authority.envelopes(each.actor):
                        makers.append(each.actor)
        return [each.last for each in ended.values()], invites

    def _take_back_links(
        self, asker: Actor, subject: Actor, came: list[Admitted], now: float
    ) -> None:
        """Those links that the asker itself handed on."""
        ended = [each for each in came if each.links_by(asker.key)]
        if not ended:
            raise NotPermitted(
                f"{asker.name} may not revoke {subject.name}",
                hint="an actor that may grant throughout what it has can, or the one that handed "
                "it on",
            )
        links = {link.id: link for each in ended for link in each.links_by(asker.key)}
        self._admission.revoke(list(links.values()), [], [], now)
        self._notify(asker, ended, now)

    def _notify(self, asker: Actor, ended: list[Admitted], now: float) -> None:
        """Record it in the sessions that were reached, with what is left; it holds in all."""
        for each in ended:
            subject = self._actors.get(each.actor)
            for live in list(self._notices.sessions.values()):
                spec = live.spec
                reached = each.grant.reach.is_met(self._host_key, spec.id, spec.labels)
                if subject is None or not reached or not subject.may_touch(spec.uid):
                    continue
                left = self._actors.authority.rights(each.actor, spec.id, spec.labels, now)
                scope, rights = Scope.session(spec.id), tuple(sorted(left))
                rest = Envelope(each.actor, scope, rights, granted_by=asker.id, granted_at=now)
                live.authority_changed(asker, subject, rest)
        if ended:
            self._notices.grants_changed()


def _find(invites: list[Invite], text: str) -> Invite:
    matches = [each for each in invites if text and each.id.hex().startswith(text.lower())]
    if len(matches) > 1:
        raise AmbiguousName(f"{len(matches)} invites start with {text[:80]!r}", hint="give more")
    if not matches:
        raise InviteInvalid(
            f"there is no invite {text[:80]!r}", hint="`hold invite ls` lists those there are"
        )
    return matches[0]
