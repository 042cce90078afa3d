"""The grants that connections show, and what they come to for an actor in a session.

A chain counts for its holder's actor while the connection that showed it lasts and while it is
valid; at the moment it expires, or is found revoked, it counts no more, and a clock set back does
not bring it back. Several chains of one actor add up: each was given to it. The rates are the
tightest of them and the time the nearest, so that nothing outlives what it came from.

How `Authority` takes them: what the host's own envelopes say of an actor in a session stands, an
empty one too. Only where they say nothing does `meet` here answer. So whoever is admin of a host
can always narrow or shut out an actor, whatever it shows. Grants change no envelopes: who may hand
on what it holds does so by another link, which ends with its own.

Nobody acts by a chain that no connection shows. But who is away for a moment, because a connection
broke or the daemon was replaced, does not lose what it holds by that: `standing` also counts the
chains it came with before, as long as they are good.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from holdfast.core.access.envelope_book import NOTHING, Live, Meet, meet
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
        came_with: Callable[[ActorId], Iterable[GrantChain]] = lambda _: (),
    ) -> None:
        """`came_with`: the chains that were shown by this actor at any time, which the caller keeps
        and which are judged anew whenever they are to count."""
        self.version = 0
        self._verifier, self._came_with = verifier, came_with
        self._shown: dict[str, tuple[GrantChain, bytes, VerifiedGrant]] = {}
        self._by_actor: dict[
            ActorId, dict[VerifiedGrant, set[str]]
        ] = {}  # and the connections that show it
        # What connections that are still there showed, and why it counts no more.
        self._ended: dict[str, tuple[VerifiedGrant, HoldfastError]] = {}

    def show(self, connection: str, chain: GrantChain, key: bytes, now: float) -> VerifiedGrant:
        """This connection, which has proven to have `key`, shows a chain, in place of an older one.
        A chain that is refused leaves the older one as it is."""
        held = self._verifier.verify(chain, key, now)
        if connection not in self._shown and len(self._shown) >= OPERATORS_MAX:
            raise LimitReached(f"already {OPERATORS_MAX} connections show grants")
        self.withdraw(connection)
        self._put(connection, chain, key, held)
        return held

    def withdraw(self, connection: str) -> VerifiedGrant | None:
        """The connection ended. What nobody shows any more by that; None: nothing has changed."""
        self._ended.pop(connection, None)
        return self._drop(connection)

    def meet(self, actor: ActorId, session: SessionId, labels: Collection[str], now: float) -> Meet:
        """What the actor's chains come to in this session."""
        return _sum([held.envelope_in(session, labels) for held in self._held(actor, now)])

    def standing(
        self, actor: ActorId, session: SessionId, labels: Collection[str], now: float
    ) -> Meet:
        """The same, for one that is away: what it could do when it comes back as it came before."""
        here = actor in self._by_actor
        if here or any(held.actor == actor for held, _ in self._ended.values()):
            return self.meet(actor, session, labels, now)
        found = []
        for chain in self._came_with(actor):
            try:
                held = self._verifier.verify(chain, chain.last.holder, now)
            except HoldfastError:
                continue  # it has expired, or was revoked
            found.append(held.envelope_in(session, labels))
        return _sum(found)

    def throughout(self, actor: ActorId, scope: Scope, live: Collection[Live], now: float) -> Meet:
        """What the actor's chains come to in every session of a scope."""
        if scope.kind is ScopeKind.SESSION:
            for session, labels, _ in live:
                if session == scope.name:
                    return self.meet(actor, session, labels, now)
        return _sum([held.envelope_throughout(scope) for held in self._held(actor, now)])

    def why_not(
        self, actor: ActorId, session: SessionId, labels: Collection[str]
    ) -> HoldfastError | None:
        """Why a chain with which the actor came in, and which reached this session, counts no more;
        None: there is none such."""
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


def _sum(found: list[Envelope | None]) -> Meet:
    envelopes = [each for each in found if each is not None]
    if not envelopes:
        return NOTHING
    together = meet(envelopes)
    rights = frozenset().union(*(each.rights for each in envelopes))
    return Meet(rights, together.until, together.limits)
