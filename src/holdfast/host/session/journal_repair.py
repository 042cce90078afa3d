"""What the daemon before may have left undone in a session's journal: the last input may never
have arrived, and rights may have changed without an entry.

Rights are changed on disk, for all sessions at once, and then recorded in each: a revocation must
not wait for journals. A daemon that died in between, or could not write, left a change in force of
which the journal says nothing. The next one records it, from what is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from holdfast.core.access.authority import Authority
from holdfast.journal import entries
from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope, Scope


def change_of(subject: Actor, envelope: Envelope | None) -> entries.Body:
    """The entry that tells of it; None: the subject is revoked."""
    return entries.ActorRevokedEntry(subject.id) if envelope is None else _envelope_set(envelope)


def _envelope_set(envelope: Envelope) -> entries.EnvelopeSet:
    rights = tuple(str.__str__(right) for right in envelope.rights)
    scope, rates = str(envelope.scope), (envelope.inputs_per_s, envelope.bytes_per_s)
    return entries.EnvelopeSet(envelope.actor, scope, rights, envelope.expires_at, *rates)


def missed_changes(
    authority: Authority, uid: int, scopes: Set[Scope], recent: list[entries.Entry]
) -> Iterator[tuple[str, entries.Body]]:
    """Who changed what, since the last entry of the journal; of what concerns a session of this
    unix user in these scopes."""
    since = recent[-1].at if recent else 0.0
    known = {
        (entry.body.subject, entry.body.scope): entry.body
        for entry in recent
        if isinstance(entry.body, entries.EnvelopeSet)
    }
    told = {e.body.subject for e in recent if isinstance(e.body, entries.ActorRevokedEntry)}
    for actor in authority.actors():
        if not actor.may_touch(uid):
            continue
        for envelope in authority.envelopes(actor.id):
            body = _envelope_set(envelope)
            if envelope.granted_at < since or envelope.scope not in scopes:
                continue
            if known.get((body.subject, body.scope)) != body:
                yield envelope.granted_by, body
        if actor.revoked_at is not None and actor.revoked_at >= since and actor.id not in told:
            yield actor.revoked_by, entries.ActorRevokedEntry(actor.id)


def last_input(recent: list[entries.Entry]) -> entries.InputEntry | entries.BlindInput | None:
    """The last input recorded, unless it is known already that it never arrived: only this one can
    have been under way when the daemon died."""
    last: entries.InputEntry | entries.BlindInput | None = None
    for entry in recent:
        if isinstance(entry.body, entries.InputEntry | entries.BlindInput):
            last = entry.body
        elif isinstance(entry.body, entries.Voided):
            last = None
    return last
