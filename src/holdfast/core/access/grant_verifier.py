"""Whether a chain of grants counts on this host, now, for who shows it, and for how much.

Judged offline from the chain, the keys the host trusts and the revocations it has:

    begins       with a trusted key, the host's own among them
    each link    is signed by its issuer, who holds the link before, and names that link
    is narrower  in rights, reach, time, rates and further hands (`model.grant.widened`)
    ends         with the key that was proven on this connection, by claim or channel
    stands       no link, no key in it is revoked, and all of it counts at this time; nor does the
                 host know anybody in it as an actor that was revoked

What this does not do: check a signature (`Check` comes in), prove that the caller has the holder's
key, decode anything. A chain that was judged stays in nobody's mind: it is judged again, and only
that a signature is right is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache

from holdfast.core.access.rate_limits import Limits
from holdfast.model.envelope import Envelope, Right, Scope
from holdfast.model.errors import GrantExpired, GrantInvalid, GrantRevoked
from holdfast.model.grant import Grant, GrantChain, GrantLink, Reach, Revocations, StepKind, widened
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.limits import GRANT_KNOWN_LINKS, GRANT_LINKS_MAX, GRANT_SKEW_S
from holdfast.model.record import Record

# Whether the holder of this public key signed: key, what the grant or list says, signature.
Check = Callable[[bytes, bytes, bytes], bool]

_OBSERVE_ONLY = frozenset({Right.OBSERVE})


class Root(Record):
    """An authority that a host trusts."""

    key: bytes
    # How old its list of revocations may be. With an older one, or none, its grants are good for
    # observing only. None: the list may have any age, and revoking waits for it to arrive.
    fresh_s: float | None = None


class VerifiedGrant(Record):
    """What a chain gives the holder of its last key."""

    actor: ActorId
    host: bytes
    reach: Reach
    rights: frozenset[Right]
    since: float
    until: float  # then it must be judged again
    limits: Limits | None
    granted_by: str  # an actor's id, or HOST_ACTOR
    root: bytes
    first: ActorId  # who had it from the authority: the host knows that one's unix user

    def envelope_in(self, session: SessionId, labels: Collection[str]) -> Envelope | None:
        """What it comes to in one session; None: it does not reach there."""
        if not self.reach.is_met(self.host, session, labels):
            return None
        return self._envelope(Scope.session(session))

    def envelope_throughout(self, scope: Scope) -> Envelope | None:
        """What it comes to in every session of a scope, also in those yet to come; None: there may
        be one that it does not reach."""
        within = {str(scope), f"{StepKind.HOST}:{self.host.hex()}"}
        return self._envelope(scope) if within.issuperset(self.reach.steps) else None

    def _envelope(self, scope: Scope) -> Envelope:
        limits = self.limits or Limits()
        return Envelope(
            self.actor,
            scope,
            tuple(sorted(self.rights)),
            self.until,
            limits.inputs_per_s,
            limits.bytes_per_s,
            self.granted_by,
            self.since,
        )


class Verifier:
    """The judge of chains on one host."""

    def __init__(
        self,
        own: bytes,
        check: Check,
        roots: Iterable[Root] = (),
        barred: Callable[[bytes], bool] = lambda _key: False,
    ) -> None:
        """`own`: the host's key, which is always trusted, and whose revocations count for every
        chain. Those of another authority count for its own chains only. `barred`: whether the host
        itself has revoked this link, or the holder of this key, listed or not."""
        self._own = own
        self._check = check
        self._barred = barred
        self._roots = {root.key: root for root in roots} | {own: Root(own)}
        self._lists: dict[bytes, Revocations] = {}
        self._revoked: dict[bytes, frozenset[bytes]] = {}
        self._known: dict[bytes, None] = {}  # signatures that are right, least recently used first

    def take(self, revocations: Revocations, now: float) -> bool:
        """Go by this list from now on; False: one as new is known. Old ones cannot come back: the
        caller keeps what was taken, and gives it to the judge it makes after a restart."""
        issuer = revocations.checked().issuer
        if issuer not in self._roots:
            raise GrantInvalid("the revocations are not by an authority that is trusted here")
        if not self._check(issuer, revocations.text, revocations.signature):
            raise GrantInvalid("the revocations are not signed by their authority")
        if revocations.issued_at > now + GRANT_SKEW_S:
            raise GrantInvalid("the revocations are dated in the future")
        had = self._lists.get(issuer)
        if had is not None and had.version >= revocations.version:
            return False
        self._lists[issuer] = revocations
        self._revoked[issuer] = frozenset(revocations.links) | frozenset(revocations.keys)
        return True

    def versions(self) -> dict[bytes, int]:
        """The number of each authority's list, to see whether another place has a newer one."""
        return {issuer: each.version for issuer, each in self._lists.items()}

    def verify(self, chain: GrantChain, holder: bytes, now: float) -> VerifiedGrant:
        """What this chain gives to who has proven to have the key `holder`."""
        links = chain.links
        if not 0 < len(links) <= GRANT_LINKS_MAX:
            raise GrantInvalid(f"a chain has 1 to {GRANT_LINKS_MAX} links, not {len(links)}")
        if links[-1].grant.holder != holder:  # first: a stolen chain costs nothing
            raise GrantInvalid("the grant is for another key than the one proven here")
        root = self._roots.get(links[0].grant.issuer)
        if root is None:
            raise GrantInvalid(
                "the grant is not from an authority that is trusted here",
                hint="is it for this host?",
            )
        before: GrantLink | None = None
        for link in links:
            _check_place(before, link)
            self._check_signature(link)
            before = link
        self._check_revoked(links, root)
        for link in links:
            _check_time(link.grant, now)
        return self._held(links, root, now)

    def _check_signature(self, link: GrantLink) -> None:
        known = link.id + link.signature
        if known in self._known:
            del self._known[known]
        elif not self._check(link.grant.issuer, link.text, link.signature):
            raise GrantInvalid("a grant is not signed by its issuer")
        elif len(self._known) >= GRANT_KNOWN_LINKS:
            del self._known[next(iter(self._known))]
        self._known[known] = None

    def _check_revoked(self, links: tuple[GrantLink, ...], root: Root) -> None:
        """A link taken back takes with it what hangs on it, because a chain carries all of it."""
        for by in {self._own, root.key}:
            revoked = self._revoked.get(by)
            if revoked and any(
                not revoked.isdisjoint((link.id, link.grant.holder, link.grant.issuer))
                for link in links
            ):
                raise GrantRevoked("the grant, or one it comes from, was revoked")
        if any(self._barred(link.id) for link in links):
            raise GrantRevoked("the grant, or one it comes from, was revoked")
        if any(self._barred(link.grant.holder) for link in links):
            raise GrantRevoked("an actor that holds the grant, or handed it on, was revoked")

    def _held(self, links: tuple[GrantLink, ...], root: Root, now: float) -> VerifiedGrant:
        last = links[-1].grant  # the narrowest in everything, as has been checked
        rights, until = last.known_rights(), float(last.expires)
        if root.fresh_s is not None:
            kept = self._lists.get(root.key)
            fresh_until = float("-inf") if kept is None else kept.issued_at + root.fresh_s
            if now < fresh_until:
                until = min(until, fresh_until)
            else:
                rights &= _OBSERVE_ONLY
        return VerifiedGrant(
            _actor(last.holder),
            self._own,
            last.reach,
            rights,
            float(last.not_before),
            until,
            _limits(last),
            HOST_ACTOR if last.issuer == self._own else _actor(last.issuer),
            root.key,
            _actor(links[0].grant.holder),
        )


def _check_place(before: GrantLink | None, link: GrantLink) -> None:
    """That this link comes after that one, and after no other."""
    if before is None:
        if link.grant.parent:
            raise GrantInvalid("the beginning of the grant is missing")
        return
    if link.grant.parent != before.id or link.grant.issuer != before.grant.holder:
        raise GrantInvalid("a link of the grant does not come after the one before it")
    if more := widened(before.grant, link.grant):
        raise GrantInvalid(f"a link of the grant is more than the one before it: {more}")


def _check_time(grant: Grant, now: float) -> None:
    """An issuer's clock may be ahead of ours by the skew. The end is by our clock, without any: it
    is what bounds a grant that cannot be revoked in time."""
    if now >= grant.expires:
        raise GrantExpired("the grant has expired", hint="ask the issuer for a new one")
    if now + GRANT_SKEW_S < grant.not_before:
        raise GrantInvalid(
            f"the grant does not count yet: {grant.not_before - now:.0f} s too early",
            hint="compare the clocks of the two machines",
        )


def _limits(grant: Grant) -> Limits | None:
    if grant.inputs_per_s is None and grant.bytes_per_s is None:
        return None
    return Limits(grant.inputs_per_s, grant.bytes_per_s)


@lru_cache(maxsize=GRANT_KNOWN_LINKS)
def _actor(key: bytes) -> ActorId:
    return ActorId.of_key(key)
