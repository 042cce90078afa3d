"""The actors this host knows and their envelopes: judged by core.access, kept on disk.

    STATE/authority.json       actors and envelopes
    STATE/keys/<actor>.key     private keys of the unix users' own actors

A unix user's own actor needs no set-up: the kernel says who is at the other end of the socket, and
the host holds the key for it. Every other actor holds its key itself and proves it at each
connection. What gives a right is on disk before it counts; what takes one away counts at once
(rights_file.py).
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Collection

from holdfast.adapters import atomic_file, signing
from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.host import json_file
from holdfast.host.access.rights_file import RightsFile
from holdfast.host.clock import now
from holdfast.host.session_store import storage_failed
from holdfast.model.actor import Actor, ActorKind
from holdfast.model.envelope import ALL, ROLES, Envelope, Right, Scope
from holdfast.model.errors import (
    ActorRevoked,
    BadSignature,
    InvalidArgument,
    LastAdmin,
    NoSuchActor,
)
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.record import Record


class _Book(Record):
    actors: tuple[Actor, ...]
    envelopes: tuple[Envelope, ...]


class ActorBook:
    """Who there is, and what each may do."""

    def __init__(self, state: str) -> None:
        path = f"{state}/authority.json"
        self._keys = f"{state}/keys"
        without = "nobody may do anything"
        book = json_file.read(path, _Book, without=without) or _Book((), ())
        self.authority = Authority(book.actors, book.envelopes)
        self.file = RightsFile(path, lambda: _book(self.authority))

    # -- asking -------------------------------------------------------------------------------

    def of_user(self, uid: int) -> Actor:
        """The unix user's own actor; made when it is first seen."""
        for actor in self.authority.actors():
            if actor.local and actor.uid == uid:
                return actor
        return self._make_local(uid)

    def get(self, actor: str) -> Actor | None:
        return self.authority.actor(ActorId(actor)) if actor else None

    def name(self, actor: str | None) -> str:
        """What people call it; "" for the host itself, or nobody."""
        return self.authority.name(actor) if actor else ""

    def seen_by(self, asker: Actor) -> list[Actor]:
        return [each for each in self.authority.actors() if asker.may_touch(each.uid)]

    def find(self, asker: Actor, text: str) -> Actor:
        """By id, or by name, the asker's own unix user's first; of a name that was given again,
        whoever has it now, or had it last."""
        seen = self.seen_by(asker)
        matches = [each for each in seen if text in (each.id, each.name)]
        matches = [each for each in matches if each.uid == asker.uid] or matches
        living = [each for each in matches if each.revoked_at is None]
        matches = living or matches[-1:]
        if len(matches) > 1:
            raise InvalidArgument(f"several actors are called {text[:80]!r}", hint="give its id")
        if not matches:
            raise NoSuchActor(
                f"there is no actor {text[:80]!r}", hint="`hold actor ls` lists those there are"
            )
        return matches[0]

    def envelopes_of(self, actor: Actor) -> tuple[Envelope, ...]:
        return self.authority.envelopes(actor.id)

    def check_claim(self, actor: Actor, text: bytes, signature: bytes) -> None:
        if not signing.check(actor.key, text, signature):
            raise BadSignature(
                f"the signature is not {actor.name}'s", hint="is this its key, and this its host?"
            )
        if actor.revoked_at is not None:
            raise ActorRevoked(f"actor {actor.name} was revoked")

    # -- changing -----------------------------------------------------------------------------

    def add(self, uid: int, name: str, kind: str, key: bytes, display: str, colour: str) -> Actor:
        """An actor with a key of its own. It may do nothing yet."""
        actor = Actor.of(key, name, kind, uid=uid, created_at=now(), display=display, colour=colour)
        self._give(lambda authority: authority.add_actor(actor))
        return actor

    def revoke(self, by: str, actor: Actor, live: Collection[Live], asker: str = "") -> Actor:
        """`by`: an actor's id, or HOST_ACTOR when the `asker` was judged already."""
        at = now()
        self._take_away(
            lambda authority: authority.revoke_actor(
                actor.id, by=by, now=at, live=live, asker=asker
            )
        )
        revoked = self.get(actor.id)
        assert revoked is not None
        return revoked

    def grant(self, envelope: Envelope, live: Collection[Live]) -> None:
        """One that gives nothing beyond the one it replaces takes away."""
        before = self.authority.envelopes(envelope.actor)
        narrows = any(envelope.is_within(each) for each in before)
        change = self._take_away if narrows else self._give
        change(lambda authority: authority.set(envelope, now=now(), live=live))

    def carry_over(self, before: SessionId, after: SessionId) -> int:
        """What was said of one session is said of its successor. Gives how many envelopes."""
        carried = sum(each.scope == Scope.session(before) for each in self.authority.envelopes())
        if carried:
            self._give(lambda authority: authority.carry_over(before, after))
        return carried

    def narrow_to_nothing(
        self, asker: Actor, subject: Actor, scope: Scope, live: Collection[Live]
    ) -> Envelope:
        self._take_away(
            lambda authority: authority.revoke(subject.id, scope, by=asker.id, now=now(), live=live)
        )
        return next(each for each in self.envelopes_of(subject) if each.scope == scope)

    def _make_local(self, uid: int) -> Actor:
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            name = f"uid-{uid}"
        private = os.urandom(signing.KEY_BYTES)
        key = signing.SigningKey(private).public
        made = ActorId.of_key(key)
        try:
            os.makedirs(self._keys, mode=0o700, exist_ok=True)
            atomic_file.replace(f"{self._keys}/{made}.key", private)
        except OSError as error:
            raise storage_failed(error) from error
        taken = {each.name for each in self.authority.actors() if each.uid == uid}
        free = name if name not in taken else f"{name}-{made[:6]}"
        actor = Actor.of(
            key, free, ActorKind.HUMAN, uid=uid, created_at=now(), display=name, local=True
        )
        # Nobody owns what it starts, but a unix user can stop, read and end its own processes
        # anyhow: the kernel says so.
        envelope = Envelope(
            made, ALL, tuple(sorted(ROLES["admin"])), granted_by=HOST_ACTOR, granted_at=now()
        )

        def make(authority: Authority) -> None:
            authority.add_actor(actor)
            authority.set(envelope, now=now(), live=())

        self._give(make)
        return actor

    # -- disk ---------------------------------------------------------------------------------

    def _give(self, change: Callable[[Authority], None]) -> None:
        """Judge a change on a copy, write it, then let it count."""
        self.file.write(_book(self._judged(change)))
        change(self.authority)

    def _take_away(self, change: Callable[[Authority], None]) -> None:
        """Judge a change on a copy, let it count, then write it: no disk is in its way."""
        self._judged(change)
        change(self.authority)
        self.file.write_when_possible()

    def _judged(self, change: Callable[[Authority], None]) -> Authority:
        """A copy with the change made, or the refusal."""
        before = self.authority
        trial = Authority(before.actors(), before.envelopes(), before.shown)
        change(trial)
        _check_ruled(before, trial)
        return trial


def _book(authority: Authority) -> _Book:
    return _Book(authority.actors(), authority.envelopes())


def _check_ruled(before: Authority, after: Authority) -> None:
    """Each unix user here keeps somebody who may grant everywhere, also while there is no session:
    otherwise nobody could ever start one again."""
    for uid in {each.uid for each in before.actors()}:
        if _rulers(before, uid) and not _rulers(after, uid):
            last = ", ".join(each.name for each in _rulers(before, uid))
            raise LastAdmin(
                f"{last} is the last actor that may grant rights everywhere",
                hint="make another actor admin of all first, without expiry",
            )


def _rulers(authority: Authority, uid: int) -> list[Actor]:
    ruling = {
        each.actor
        for each in authority.envelopes()
        if each.scope == ALL and Right.GRANT in each.rights and each.expires_at is None
    }
    return [
        each
        for each in authority.actors()
        if each.id in ruling and each.revoked_at is None and each.may_touch(uid)
    ]
