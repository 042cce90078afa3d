"""Which envelopes count for an actor in a session, and what they add up to.

The narrowest scope that matches counts alone: session before label before all. Among several labels
the envelopes are intersected: common rights, the tightest rates, the earliest expiry. Nothing
falls through to a wider scope, neither an empty envelope nor an expired one: what was narrowed must
not widen because time passes. Who may change envelopes is judged in `authority.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from holdfast.core.access.rate_limits import Limits
from holdfast.model.envelope import Envelope, Right, Scope, ScopeKind
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.record import Record

FOR_EVER = float("inf")

# A live session as far as authority is concerned: its id, its labels, its unix user.
Live = tuple[SessionId, Collection[str], int]


class Intersection(Record):
    """What some envelopes allow together; of none of them, nothing."""

    rights: frozenset[Right]
    until: float
    limits: Limits | None


NOTHING = Intersection(frozenset(), FOR_EVER, None)


def intersect(envelopes: Collection[Envelope]) -> Intersection:
    """The rights common to all, the tightest rates, the earliest expiry."""
    if not envelopes:
        return NOTHING
    rights = _common(tuple(each.rights for each in envelopes))
    until = min(FOR_EVER if each.expires_at is None else each.expires_at for each in envelopes)
    inputs = _tightest(each.inputs_per_s for each in envelopes)
    sizes = _tightest(each.bytes_per_s for each in envelopes)
    limits = None if inputs is None and sizes is None else Limits(inputs, sizes)
    return Intersection(rights, until, limits)


@lru_cache  # the same few sets again and again, and each is kept for every session
def _common(rights: tuple[tuple[Right, ...], ...]) -> frozenset[Right]:
    return frozenset.intersection(*map(frozenset, rights))


def _tightest(rates: Iterable[float | None]) -> float | None:
    return min((rate for rate in rates if rate is not None), default=None)


class EnvelopeBook:
    """The envelopes, at most one per actor and scope. Changing gives a new book, so that a change
    can be judged before it is made."""

    def __init__(self, envelopes: Iterable[Envelope] = ()) -> None:
        # By the scope's text: it is asked for once per session when envelopes change, and hashing
        # text costs a tenth of hashing a record.
        self._by_actor: dict[ActorId, dict[str, Envelope]] = {}
        for envelope in envelopes:
            self._by_actor.setdefault(envelope.actor, {})[str(envelope.scope)] = envelope

    def __iter__(self) -> Iterator[Envelope]:
        for held in self._by_actor.values():
            yield from held.values()

    def __len__(self) -> int:
        return sum(len(held) for held in self._by_actor.values())

    def of(self, actor: ActorId) -> tuple[Envelope, ...]:
        return tuple(self._by_actor.get(actor, {}).values())

    def with_(self, envelope: Envelope, *, alone: bool = False) -> EnvelopeBook:
        """With this envelope in place of the one of its scope; `alone`: of all of its actor's."""
        book = EnvelopeBook()
        held = {} if alone else self._by_actor.get(envelope.actor, {})
        book._by_actor = {
            **self._by_actor,
            envelope.actor: {**held, str(envelope.scope): envelope},
        }
        return book

    def counting(
        self, actor: ActorId, session: SessionId, labels: Collection[str]
    ) -> list[Envelope]:
        """The envelopes that count for this actor in this session."""
        held = self._by_actor.get(actor)
        if not held:
            return []
        own = held.get(f"session:{session}")
        if own is not None:
            return [own]
        labelled = [held[scope] for label in labels if (scope := f"label:{label}") in held]
        if labelled:
            return labelled
        return [held["all"]] if "all" in held else []

    def widest(self, actor: ActorId, scope: Scope) -> Envelope | None:
        """What is said of a scope as a whole, by its own envelope or the one for all."""
        held = self._by_actor.get(actor, {})
        return held.get(str(scope)) or held.get("all")

    def is_narrowed_by(self, envelope: Envelope, live: Collection[Live]) -> bool:
        """Whether with this envelope its actor could do nothing that it cannot do now, in no
        session."""
        if not envelope.rights:
            return True
        now = self.throughout(envelope.actor, envelope.scope, live)
        return bool(now) and intersect((*now, envelope)) == intersect((envelope,))

    def throughout(self, actor: ActorId, scope: Scope, live: Collection[Live]) -> list[Envelope]:
        """Envelopes whose intersection this actor has in *every* session of a scope, also those to
        come; none when somewhere in it the actor may have nothing."""
        if scope.kind is ScopeKind.SESSION:
            for session, labels, _ in live:
                if session == scope.name:
                    return self.counting(actor, session, labels)
        held = self._by_actor.get(actor, {})
        base = self.widest(actor, scope)
        if base is None:
            return []
        if scope.kind is ScopeKind.SESSION:  # one that is not live: its labels are not known
            narrower = [] if base.scope == scope else _of_kind(held, ScopeKind.LABEL)
        else:
            elsewhere = _without_label(scope, live)
            narrower = _of_kind(held, ScopeKind.LABEL) + [
                each
                for each in _of_kind(held, ScopeKind.SESSION)
                if each.scope.name not in elsewhere
            ]
        return [base, *(each for each in narrower if each is not base)]


def _of_kind(held: dict[str, Envelope], kind: ScopeKind) -> list[Envelope]:
    return [each for each in held.values() if each.scope.kind is kind]


def _without_label(scope: Scope, live: Collection[Live]) -> set[str]:
    """The live sessions known to be outside of a label."""
    if scope.kind is not ScopeKind.LABEL:
        return set()
    return {session for session, labels, _ in live if scope.name not in labels}
