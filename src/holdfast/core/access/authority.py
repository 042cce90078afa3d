"""Who may do what, now (A2, R5): the one judge of envelopes on a host.

Asked at each input against the envelopes of that moment; `version` rises with every change, so a
caller may keep an `Allowance` and ask again only when the version or the time has moved on. A
refused change changes nothing. Nobody is owner here: the creator of a session has only what its
envelopes say. Where they say nothing of an actor, the grants it presents count
(`presented_grants.py`). This module does not authenticate actors, know the turn, or keep envelopes
on disk. `live` is always every live session of the host.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.core.access.envelope_book import (
    FOR_EVER,
    NOTHING,
    EnvelopeBook,
    Intersection,
    Live,
    intersect,
)
from holdfast.core.access.presented_grants import PresentedGrants
from holdfast.core.access.rate_limits import Limits, Rates
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Right, Scope, ScopeKind
from holdfast.model.errors import (
    AccessRevoked,
    ActorRevoked,
    EnvelopeExpired,
    InvalidArgument,
    LastAdmin,
    LimitReached,
    NotPermitted,
)
from holdfast.model.grant import Reach, StepKind
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.limits import ACTORS_MAX, ENVELOPES_MAX, GRANTORS_NAMED
from holdfast.model.record import Record


class Allowance(Record):
    """What an actor may do in a session, for a caller to keep while `version` is the authority's
    and the time is before `valid_until`."""

    rights: frozenset[Right]
    valid_until: float
    limits: Limits | None
    version: int


class Authority:
    """Actors and envelopes of one host."""

    def __init__(
        self,
        actors: Iterable[Actor] = (),
        envelopes: Iterable[Envelope] = (),
        shown: PresentedGrants | None = None,
    ) -> None:
        self.shown = shown
        self._version = 0
        self._actors = {actor.id: actor for actor in actors}
        self._book = EnvelopeBook(envelopes)
        self._rates = Rates()
        # Envelopes seen expired. A clock set back does not bring them to life again.
        self._dead: set[tuple[ActorId, Scope]] = set()

    @property
    def version(self) -> int:
        """Rises with every change, also of what is shown."""
        return self._version + (0 if self.shown is None else self.shown.version)

    # -- asking -----------------------------------------------------------------------------------

    def actor(self, actor: ActorId) -> Actor | None:
        return self._actors.get(actor)

    def actors(self) -> tuple[Actor, ...]:
        return tuple(self._actors.values())

    def envelopes(self, actor: ActorId | None = None) -> tuple[Envelope, ...]:
        """Of one actor, or all; expired ones and those of revoked actors too."""
        return tuple(self._book) if actor is None else self._book.of(actor)

    def rights(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> frozenset[Right]:
        return self._rights_of(actor, session, labels, now).rights

    def allowance(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> Allowance:
        """What `rights` says, in a form to keep."""
        has = self._rights_of(actor, session, labels, now)
        return Allowance(has.rights, has.until, has.limits, self.version)

    def allowance_while_away(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> Allowance:
        """The same of an actor that may be away, for what it holds meanwhile (the turn, a place in
        the queue): it counts the grants it presented before too. Nobody acts by this."""
        has = self._rights_of(actor, session, labels, now, away=True)
        return Allowance(has.rights, has.until, has.limits, self.version)

    def check(
        self, actor: ActorId, right: Right, session: SessionId, labels: Collection[str], now: float
    ) -> None:
        """Nothing, or the refusal that says why, and which actors could grant it."""
        self._known(actor)
        if right in self.rights(actor, session, labels, now):
            return
        who, where = self.name(actor), f"session {session}"
        can = self._grantors(actor, session, labels, now)
        hint = f"{can} can grant it" if can else "nobody can grant it there now"
        counting = self._book.counting(actor, session, labels)
        if right in intersect(counting).rights:
            raise EnvelopeExpired(f"{who}'s right to {right} in {where} has expired", hint=hint)
        if _revoked(counting):
            raise AccessRevoked(f"{who}'s access to {where} was revoked", hint=hint)
        if not counting and self.shown is not None:
            ended = self.shown.reason_ended(actor, session, labels)
            if ended is not None:
                raise ended
        raise NotPermitted(f"{who} does not have the right to {right} in {where}", hint=hint)

    def check_not_revoked(
        self, actor: ActorId, session: SessionId, labels: Collection[str], created_at: float
    ) -> None:
        """Nothing, unless what this actor could see of the session was revoked. To one that never
        could it does not exist, and neither does one that is younger than the revocation."""
        counting = self._book.counting(actor, session, labels)
        if _revoked(counting) and created_at <= min(each.seen_until or 0.0 for each in counting):
            raise AccessRevoked(f"{self.name(actor)}'s access to this session was revoked")

    def check_not_revoked_everywhere(self, actor: ActorId) -> None:
        """The same for whatever the actor asks for: it is said of what does not exist too."""
        if any(each.scope == ALL and not each.rights for each in self._book.of(actor)):
            raise AccessRevoked(f"{self.name(actor)}'s access to all sessions was revoked")

    def check_everywhere(self, actor: ActorId, right: Right, now: float) -> None:
        """For what is done to no session yet, or to all: by the envelope for `all` alone, or by
        what is shown for all of this host."""
        who = self._known(actor).name
        counting = [each for each in self._book.of(actor) if each.scope == ALL]
        if counting or self.shown is None:
            has = self._intersect_now(counting, now)
        else:
            has = self.shown.throughout(actor, ALL, (), now)
        if right in has.rights:
            return
        if right in intersect(counting).rights:
            raise EnvelopeExpired(f"{who}'s right to {right} in all sessions has expired")
        raise NotPermitted(f"{who} does not have the right to {right} in all sessions")

    def check_may_give(
        self, envelope: Envelope, reach: Reach, *, now: float, live: Collection[Live]
    ) -> None:
        """Whether `granted_by` could give what this envelope says throughout a reach, whatever its
        scope is; with no rights, take it away. Having it throughout one step's sessions is enough:
        a session must meet them all."""
        grantor = self._known(envelope.granted_by)
        steps = [step for step in reach.steps if not step.startswith(f"{StepKind.HOST}:")]
        refusal: NotPermitted | None = None
        for scope in [Scope.parse(step) for step in steps] or [ALL]:
            has = self._throughout(grantor.id, scope, now, live, by_shown=True)
            try:
                self._check_within(envelope.replace(scope=scope), grantor, has)
                return
            except NotPermitted as error:
                refusal = error
        assert refusal is not None
        raise refusal

    def charge(
        self,
        actor: ActorId,
        session: SessionId,
        labels: Collection[str],
        size: int,
        now: float,
    ) -> None:
        """Count one input of `size` bytes against the actor's rates, or refuse it."""
        limits = self.allowance(actor, session, labels, now).limits
        if limits is not None:
            self._rates.charge(actor, session, limits, size, now)

    def name(self, actor: str) -> str:
        """What people call this actor."""
        if actor == HOST_ACTOR:
            return "the host"
        known = self._actors.get(ActorId(actor))
        return known.name if known is not None else f"unknown actor {actor}"

    # -- changing ---------------------------------------------------------------------------------

    def add_actor(self, actor: Actor) -> None:
        """Make an actor known; it may do nothing yet. One that is known stays as it is."""
        actor.checked()
        if actor.id in self._actors:
            raise InvalidArgument(f"this key is already known as actor {self.name(actor.id)!r}")
        if any(
            each.name == actor.name and each.uid == actor.uid and each.revoked_at is None
            for each in self.actors()
        ):
            raise InvalidArgument(f"there is already an actor {actor.name!r}")
        if len(self._actors) >= ACTORS_MAX:
            raise LimitReached(f"already {ACTORS_MAX} actors are known here")
        self._actors[actor.id] = actor
        self._version += 1

    def set(self, envelope: Envelope, *, now: float, live: Collection[Live]) -> None:
        """Put this envelope in place of the actor's one in that scope."""
        envelope = self._noting_what_it_saw(envelope.checked(), now, live)
        self._known(envelope.actor)
        self._may_grant(envelope, now, live)
        if not self._book.is_narrowed_by(envelope, live):
            self._check_room(self._book.with_(envelope))
        self._commit(self._book.with_(envelope), envelope.actor, live)
        self._dead.discard((envelope.actor, envelope.scope))

    def revoke(
        self, actor: ActorId, scope: Scope, *, by: str, now: float, live: Collection[Live]
    ) -> None:
        """Leave the actor explicitly nothing in this scope; in `all`, nothing anywhere. Anything
        narrower that was said of another scope stands."""
        if actor not in self._actors:
            raise InvalidArgument(f"{actor} is no actor known here")
        nothing = Envelope(actor, scope.checked(), (), granted_by=by, granted_at=now)
        nothing = self._noting_what_it_saw(nothing, now, live)
        self._may_grant(nothing, now, live)
        alone = scope.kind is ScopeKind.ALL
        self._commit(self._book.with_(nothing, alone=alone), actor, live)

    def carry_over(self, before: SessionId, after: SessionId) -> None:
        """What was said of one session is said of the one that follows it, just as it was: expired
        envelopes and empty ones too, for what was narrowed must not widen. Who may have a
        session followed is judged by whoever calls this."""
        old, new = Scope.session(before), Scope.session(after)
        carried = [each.replace(scope=new) for each in self._book if each.scope == old]
        book = self._book
        for envelope in carried:
            book = book.with_(envelope)
        self._check_room(book)
        self._book = book
        self._version += 1

    def revoke_actor(
        self, actor: ActorId, *, by: str, now: float, live: Collection[Live], asker: str = ""
    ) -> None:
        """Revoke this actor forever. An actor may revoke itself. `asker`: the actor to be named
        for it, if that is not `by`."""
        revoked = self._known(actor).replace(revoked_at=now, revoked_by=asker or by)
        if by != actor:
            self._may_grant(Envelope(actor, ALL, (), granted_by=by), now, live)
        self._commit(self._book, actor, live, {**self._actors, actor: revoked})

    def _noting_what_it_saw(
        self, envelope: Envelope, now: float, live: Collection[Live]
    ) -> Envelope:
        """One that takes everything away says until when its actor could observe there."""
        if envelope.rights:
            return envelope
        actor, scope = envelope.actor, envelope.scope
        before = self._book.widest(actor, scope)
        until = before.seen_until if before is not None and not before.rights else None
        has = [self._intersect_now([before], now)] if before is not None else []
        for session, labels, _ in live:
            if scope == Scope.session(session):
                has = [self._rights_of(actor, session, labels, now)]
        if any(Right.OBSERVE in each.rights for each in has):
            until = now
        return envelope.replace(seen_until=until)

    # -- judging ----------------------------------------------------------------------------------

    def _known(self, actor: str) -> Actor:
        known = self._actors.get(ActorId(actor))
        if known is None:
            raise NotPermitted(f"{actor} is no actor known here", hint="`hold actor ls` lists them")
        if known.revoked_at is not None:
            raise ActorRevoked(f"actor {known.name} was revoked")
        return known

    def _rights_of(
        self,
        actor: ActorId,
        session: SessionId,
        labels: Collection[str],
        now: float,
        *,
        away: bool = False,
    ) -> Intersection:
        known = self._actors.get(actor)
        if known is None or known.revoked_at is not None:
            return NOTHING
        counting = self._book.counting(actor, session, labels)
        if not counting and self.shown is not None:
            asked = self.shown.allowed_while_away if away else self.shown.allowed
            return asked(actor, session, labels, now)
        return self._intersect_now(counting, now)

    def _intersect_now(self, counting: Collection[Envelope], now: float) -> Intersection:
        """What they allow together; nothing when one of them has expired."""
        expired = False
        for each in counting:
            key = (each.actor, each.scope)
            if each.expires_at is not None and (key in self._dead or each.expires_at <= now):
                expired = True
                if key not in self._dead:
                    self._dead.add(key)
                    self._version += 1  # an allowance kept from before must not outlive the clock
        return NOTHING if expired else intersect(counting)

    def _grantors(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> str:
        """The names of those who could grant it, as far as this actor's unix user sees them."""
        asking = self._actors[actor]
        names = [
            each.name
            for each in self.actors()
            if (each.may_touch(asking.uid) or asking.uid == 0)
            and Right.GRANT in self.rights(each.id, session, labels, now)
        ]
        more = len(names) - GRANTORS_NAMED
        shown = ", ".join(names[:GRANTORS_NAMED])
        return f"{shown} and {more} more" if more > 0 else shown

    def _may_grant(self, envelope: Envelope, now: float, live: Collection[Live]) -> None:
        """A grantor grants within what it has itself throughout that scope, and not for longer.
        Taking everything away needs the right to grant and nothing else, and a presented grant may
        give that right. Giving may not rest on one: the envelope would outlive its revocation."""
        by, scope = envelope.granted_by, envelope.scope
        if by == HOST_ACTOR:
            return
        grantor = self._known(by)
        shows = self._throughout(grantor.id, scope, now, live, by_shown=True)
        if not envelope.rights:
            self._check_within(envelope, grantor, shows)
            return
        has = self._throughout(grantor.id, scope, now, live, by_shown=False)
        if Right.GRANT in shows.rights and Right.GRANT not in has.rights:
            raise NotPermitted(
                f"{grantor.name} has its rights by a grant, and cannot give envelopes",
                hint="`hold delegate` hands on a part of a grant, `hold invite` lets others in",
            )
        self._check_within(envelope, grantor, has)

    def _throughout(
        self, actor: ActorId, scope: Scope, now: float, live: Collection[Live], *, by_shown: bool
    ) -> Intersection:
        """What it has in every session of a scope; by what it shows only if the host says nothing
        of it anywhere."""
        if by_shown and self.shown is not None and not self._book.of(actor):
            return self.shown.throughout(actor, scope, live, now)
        return self._intersect_now(self._book.throughout(actor, scope, live), now)

    @staticmethod
    def _check_within(envelope: Envelope, grantor: Actor, has: Intersection) -> None:
        scope = envelope.scope
        for right in (Right.GRANT, *envelope.rights):
            if right not in has.rights:
                raise NotPermitted(
                    f"{grantor.name} cannot change envelopes in {scope}: it does not have the "
                    f"right to {right} throughout it",
                    hint="nobody can grant what it does not have itself",
                )
        if not envelope.rights:
            return
        if (FOR_EVER if envelope.expires_at is None else envelope.expires_at) > has.until:
            raise NotPermitted(
                f"{grantor.name} cannot grant beyond the expiry of its own envelope",
                hint=f"let it expire by {has.until:.0f} (seconds since 1970)",
            )
        own = has.limits or Limits()
        for what, most, asked in (
            ("inputs", own.inputs_per_s, envelope.inputs_per_s),
            ("bytes", own.bytes_per_s, envelope.bytes_per_s),
        ):
            if most is not None and (asked is None or asked > most):
                raise NotPermitted(
                    f"{grantor.name} cannot grant more than its own {most:g} {what} a second"
                )

    @staticmethod
    def _check_room(book: EnvelopeBook) -> None:
        """Only for giving: a full book keeps nobody from taking rights away."""
        if len(book) > ENVELOPES_MAX:
            raise LimitReached(
                f"already {ENVELOPES_MAX} envelopes are kept here",
                hint="`hold revoke ACTOR --all` leaves one of all that an actor has",
            )

    def _commit(
        self,
        book: EnvelopeBook,
        changed: ActorId,
        live: Collection[Live],
        actors: dict[ActorId, Actor] | None = None,
    ) -> None:
        """Make the change, unless a session would lose its last admin by it."""
        actors = self._actors if actors is None else actors
        for each in live:
            if (
                _is_admin(self._book, self._actors.get(changed), each)
                and not _is_admin(book, actors[changed], each)
                and not self._some_admin(book, actors, each)
            ):
                raise LastAdmin(
                    f"{self.name(changed)} is the last that may grant rights in session {each[0]}",
                    hint="make another actor admin of it first, without expiry",
                )
        self._book, self._actors = book, actors
        self._version += 1

    @staticmethod
    def _some_admin(book: EnvelopeBook, actors: dict[ActorId, Actor], live: Live) -> bool:
        return any(_is_admin(book, actor, live) for actor in actors.values())


def _revoked(counting: Collection[Envelope]) -> bool:
    """Whether they leave an actor nothing that could see there before."""
    return bool(counting) and all(
        not each.rights and each.seen_until is not None for each in counting
    )


def _is_admin(book: EnvelopeBook, actor: Actor | None, live: Live) -> bool:
    """Whether this actor may grant rights in a session, and time alone does not end that."""
    session, labels, uid = live
    if actor is None or actor.revoked_at is not None or not actor.may_touch(uid):
        return False
    has = intersect(book.counting(actor.id, session, labels))
    return Right.GRANT in has.rights and has.until == FOR_EVER
