"""Taking back what was given: who may, and what goes with it.

An invite is taken back by who made it, or by who may grant throughout its reach. A device is shut
out by itself, or by who may grant throughout everything it has; then its actor is revoked too. Who
handed a grant on takes that one link back, and the actor stays: it may hold something else.

With a link goes what was handed on from it: a chain carries its ancestors. With a device go also
the invites that it made, and what devices have that came by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.host.access.device_book import Admitted
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Scope
from holdfast.model.errors import (
    ActorRevoked,
    AmbiguousName,
    InviteInvalid,
    NoSuchActor,
    NotPermitted,
)
from holdfast.model.grant import GrantLink, Reach
from holdfast.model.ids import HOST_ACTOR, ActorId
from holdfast.model.invite import Invite

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon


def may_take_back(daemon: Daemon, asker: Actor, reach: Reach, now: float) -> bool:
    """Whether this actor may leave others nothing, throughout that reach."""
    nothing = Envelope(asker.id, ALL, (), granted_by=asker.id)
    try:
        daemon.actors.authority.check_may_give(nothing, reach, now=now, live=daemon.live_sessions())
    except (NotPermitted, ActorRevoked):
        return False
    return True


# -- invites --------------------------------------------------------------------------------------


def seen_invites(daemon: Daemon, asker: Actor, now: float) -> list[Invite]:
    """Those it made, or may take back. To others there are none: who knows an id can close it by
    guessing."""
    return [
        invite
        for invite in daemon.admission.invites.invites()
        if asker.may_touch(invite.uid)
        and (invite.created_by == asker.id or may_take_back(daemon, asker, invite.reach, now))
    ]


def revoke_invite(daemon: Daemon, asker: Actor, text: str, devices: bool, now: float) -> Invite:
    """Nobody comes in by it any more; `devices`: what those have that did is over as well."""
    invite = _find(seen_invites(daemon, asker, now), text)
    ended = [
        each
        for each in daemon.admission.devices.entries()
        if devices and each.invite == invite.id and each.revoked_at is None
    ]
    daemon.admission.revoke([each.last for each in ended], [], [invite], now)
    _tell(daemon, asker, ended, now)
    return next(each for each in daemon.admission.invites.invites() if each.id == invite.id)


def _find(invites: list[Invite], text: str) -> Invite:
    matches = [each for each in invites if text and each.id.hex().startswith(text.lower())]
    if len(matches) > 1:
        raise AmbiguousName(f"{len(matches)} invites start with {text[:80]!r}", hint="give more")
    if not matches:
        raise InviteInvalid(
            f"there is no invite {text[:80]!r}", hint="`hold invite ls` lists those there are"
        )
    return matches[0]


# -- devices --------------------------------------------------------------------------------------


def revoke_device(daemon: Daemon, asker: Actor, text: str, now: float) -> list[Admitted]:
    """What was taken back, and what went with it."""
    book = daemon.admission.devices
    subject = daemon.actors.find(asker, text)
    came = [each for each in book.of(subject.id) if each.revoked_at is None]
    if not came:
        raise NoSuchActor(
            f"{subject.name} has not come in by an invite or a grant that still stands",
            hint="`hold device ls` lists who did; `hold actor revoke` ends any actor",
        )
    before = {each.link for each in book.entries() if each.revoked_at is None}
    if subject.id == asker.id or _may_shut_out(daemon, asker, subject, came, now):
        _shut_out(daemon, asker, subject, now)
    else:
        _take_back(daemon, asker, subject, came, now)
    return [each for each in book.entries() if each.revoked_at is not None and each.link in before]


def _may_shut_out(
    daemon: Daemon, asker: Actor, subject: Actor, came: list[Admitted], now: float
) -> bool:
    given = [Reach.of_scope(each.scope) for each in daemon.actors.envelopes_of(subject)]
    reaches = [*given, *(each.grant.reach for each in came)]
    return all(may_take_back(daemon, asker, reach, now) for reach in reaches)


def _shut_out(daemon: Daemon, asker: Actor, subject: Actor, now: float) -> None:
    """Its actor first: from then on nothing of it counts, whatever comes between."""
    if subject.revoked_at is None:
        subject = daemon.actors.revoke(HOST_ACTOR, subject, daemon.live_sessions(), asker.id)
    links, invites = _resting_on(daemon, subject)
    try:
        daemon.admission.revoke(links, [subject.key], invites, now)
    finally:
        daemon.authority_changed(asker, subject, None)


def _resting_on(daemon: Daemon, subject: Actor) -> tuple[list[GrantLink], list[Invite]]:
    """What it came in with, the invites it made, and what others have by those, and so on; what
    somebody can do for another reason as well is not followed."""
    entries = [each for each in daemon.admission.devices.entries() if each.revoked_at is None]
    ended = {each.link: each for each in entries if each.actor == subject.id}
    invites: list[Invite] = []
    makers = [ActorId(subject.id)]
    while makers:
        maker = makers.pop()
        made = [each for each in daemon.admission.invites.invites() if each.created_by == maker]
        invites += [each for each in made if each.revoked_at is None]
        ids = {each.id for each in made}
        for each in entries:
            if each.invite in ids and each.link not in ended:
                ended[each.link] = each
                others = [one for one in entries if one.actor == each.actor]
                stands = any(one.link not in ended for one in others)
                if not stands and not daemon.actors.authority.envelopes(each.actor):
                    makers.append(each.actor)
    return [each.last for each in ended.values()], invites


def _take_back(
    daemon: Daemon, asker: Actor, subject: Actor, came: list[Admitted], now: float
) -> None:
    """Those links that the asker itself handed on."""
    ended = [each for each in came if each.links_by(asker.key)]
    if not ended:
        raise NotPermitted(
            f"{asker.name} may not revoke {subject.name}",
            hint="who may grant throughout what it has can, and who handed it on",
        )
    links = {link.id: link for each in ended for link in each.links_by(asker.key)}
    daemon.admission.revoke(list(links.values()), [], [], now)
    _tell(daemon, asker, ended, now)


def _tell(daemon: Daemon, asker: Actor, ended: list[Admitted], now: float) -> None:
    """Recorded in the sessions that were reached, with what is left to each; in force in all."""
    for each in ended:
        subject = daemon.actors.get(each.actor)
        for live in list(daemon.registry.live.values()):
            spec = live.spec
            reached = each.grant.reach.is_met(daemon.store.host_key.public, spec.id, spec.labels)
            if subject is None or not reached or not subject.may_touch(spec.uid):
                continue
            left = daemon.actors.authority.rights(each.actor, spec.id, spec.labels, now)
            scope, rights = Scope.session(spec.id), tuple(sorted(left))
            told = Envelope(each.actor, scope, rights, granted_by=asker.id, granted_at=now)
            live.authority_changed(asker, subject, told)
    if ended:
        daemon.rights_changed()
