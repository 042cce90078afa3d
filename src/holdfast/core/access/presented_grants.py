"""The grants that connections present, and what they allow an actor in a session.

A chain counts for its holder's actor while the connection that presented it lasts and while it is
valid; from the moment it expires, or is found revoked, it does not count, and a clock set back does
not bring it back. Several chains of one actor add up: each was given to it. The rates are the
tightest of them and the time the nearest, so that nothing outlives what it came from.

How `Authority` uses them: what the host's own envelopes say of an actor in a session counts alone,
an empty one too. Only where they say nothing does `allowed` here answer. So an admin of a host can
always narrow or shut out an actor, whatever it presents. Grants change no envelopes: a holder hands
on a part of its grant by another link, which ends with its own.

Nobody acts by a chain that no connection presents. But an actor that is away for a moment, because
a connection broke or the daemon was replaced, does not lose what it holds by that:
`allowed_while_away` also counts the chains it came with before, as long as they are valid.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from holdfast.core.access.envelope_book import NOTHING, Intersection, Live, intersect
from holdfast.core.access.grant_verifier import VerifiedGrant, Verifier
from holdfast.model.envelope import Envelope, Scope, ScopeKind
from holdfast.model.errors import HoldfastError, LimitReached
from holdfast.model.grant import GrantChain
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import OPERATORS_MAX


class PresentedGrants:
    """One chain per connection. `version` rises when what somebody holds may have become less or
    more: allowances kept from before are asked for again. A device shows the same chain on each of
    its connections: what that gives is counted once, and one connection more or less is no change.
    """

    def __init__(
        self,
        verifier: Verifier,
        earlier_chains: Callable[[ActorId], Iterable[GrantChain]] = lambda _: (),
    ) -> None:
        """`earlier_chains`: those that this actor presented at any time. The caller keeps them, and
        they are judged again whenever they are to count."""
        self.version = 0
        self._verifier, self._earlier_chains = verifier, earlier_chains
        self._shown: dict[str, tuple[GrantChain, bytes, VerifiedGrant]] = {}
        self._by_actor: dict[
            ActorId, dict[VerifiedGrant, set[str]]
        ] = {}  # and the connections that show it
        # What connections that are still open presented, and why it no longer counts.
        self._ended: dict[str, tuple[VerifiedGrant, HoldfastError]] = {}

    def show(self, connection: str, chain: GrantChain, key: bytes, now: float) -> VerifiedGrant:
        """This connection, which has proven to have `key`, presents a chain, in place of an older
        one. A chain that is refused leaves the older one as it is."""
        held = self._verifier.verify(chain, key, now)
        if connection not in self._shown and len(self._shown) >= OPERATORS_MAX:
            raise LimitReached(f"already {OPERATORS_MAX} connections present grants")
        self.withdraw(connection)
        self._put(connection, chain, key, held)
        return held

    def withdraw(self, connection: str) -> VerifiedGrant | None:
        """The connection ended. Returns what no connection presents now; None: no change."""
        self._ended.pop(connection, None)
        return self._drop(connection)

    def allowed(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> Intersection:
        """What the actor's chains come to in this session."""
        return _sum([held.envelope_in(session, labels) for held in self._held(actor, now)])

    def allowed_while_away(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> Intersection:
        """The same for an actor that is away: what it could do if it came back as before."""
        here = actor in self._by_actor
        if here or any(held.actor == actor for held, _ in self._ended.values()):
            return self.allowed(actor, session, labels, now)
        found = []
        for chain in self._earlier_chains(actor):
            try:
                held = self._verifier.verify(chain, chain.last.holder, now)
            except HoldfastError:
                continue  # it has expired, or was revoked
            found.append(held.envelope_in(session, labels))
        return _sum(found)

    def throughout(
        self, actor: ActorId, scope: Scope, live: Collection[Live], now: float
    ) -> Intersection:
        """What the actor's chains come to in every session of a scope."""
        if scope.kind is ScopeKind.SESSION:
            for session, labels, _ in live:
                if session == scope.name:
                    return self.allowed(actor, session, labels, now)
        return _sum([held.envelope_throughout(scope) for held in self._held(actor, now)])

    def reason_ended(
        self, actor: ActorId, session: SessionId, labels: Collection[str]
    ) -> HoldfastError | None:
        """Why a chain that the actor presented, and that reached this session, no longer counts;
        None: there is none."""
        for held, error in self._ended.values():
            if held.actor == actor and held.reach.is_met(held.host, session, labels):
                return type(error)(error.message, hint=error.hint)
        return None

    def links(self) -> list[bytes]:
        """The id of the last link of each chain that is shown."""
        return [chain.links[-1].id for chain, _, _ in self._shown.values()]

    def review(self, now: float) -> tuple[str, ...]:
        """Judge all again: revocations were taken. The connections whose chain is gone."""
        return tuple(each for each in tuple(self._shown) if self._again(each, now) is None)

    def _held(self, actor: ActorId, now: float) -> list[VerifiedGrant]:
        found: list[VerifiedGrant | None] = []
        for held, connections in tuple(self._by_actor.get(actor, {}).items()):
            if now < held.until:
                found.append(held)
            else:
                found += [self._again(each, now) for each in tuple(connections)]
        return [held for held in found if held is not None]

    def _again(self, connection: str, now: float) -> VerifiedGrant | None:
        chain, key, had = self._shown[connection]
        try:
            held = self._verifier.verify(chain, key, now)
        except HoldfastError as error:
            self._drop(connection)
            self._ended[connection] = (had, error.with_traceback(None))
            return None
        if held != had:
            self._drop(connection)
            self._put(connection, chain, key, held)
        return held

    def _drop(self, connection: str) -> VerifiedGrant | None:
        entry = self._shown.pop(connection, None)
        if entry is None:
            return None
        held = entry[2]
        of_actor = self._by_actor[held.actor]
        of_actor[held].discard(connection)
        if of_actor[held]:
            return None
        del of_actor[held]
        if not of_actor:
            del self._by_actor[held.actor]
        self.version += 1
        return held

    def _put(self, connection: str, chain: GrantChain, key: bytes, held: VerifiedGrant) -> None:
        self._shown[connection] = (chain, key, held)
        of_actor = self._by_actor.setdefault(held.actor, {})
        if held not in of_actor:
            of_actor[held] = set()
            self.version += 1
        of_actor[held].add(connection)


def _sum(found: list[Envelope | None]) -> Intersection:
    envelopes = [each for each in found if each is not None]
    if not envelopes:
        return NOTHING
    together = intersect(envelopes)
    rights = frozenset().union(*(each.rights for each in envelopes))
    return Intersection(rights, together.until, together.limits)
