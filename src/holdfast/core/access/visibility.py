"""Which sessions exist for an actor: those of its unix user (root: of every user) that its rights
let it observe. To everybody else a session does not exist, whatever is known of its id."""

from __future__ import annotations

from holdfast.core.access.authority import Allowance, Authority
from holdfast.core.access.envelope_book import Live
from holdfast.model.actor import Actor
from holdfast.model.envelope import Right
from holdfast.model.errors import ActorRevoked, NotPermitted
from holdfast.model.ids import ActorId, SessionId

_CACHE_MAX = 4096  # allowances of actors in sessions; then it starts empty


class Visibility:
    """Asked for each request, and by every stream at every beat: it keeps its answers until the
    authority's version or the time has moved on."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority
        self._cache: dict[tuple[ActorId, SessionId, tuple[str, ...]], Allowance] = {}

    def may_observe(self, actor: Actor, session: Live, now: float) -> bool:
        name, labels, uid = session
        if not actor.may_touch(uid):
            return False
        key = (actor.id, name, tuple(labels))
        kept = self._cache.get(key)
        if kept is None or kept.version != self._authority.version or now >= kept.valid_until:
            if len(self._cache) >= _CACHE_MAX:
                self._cache.clear()
            kept = self._cache[key] = self._authority.allowance(*key, now)
        return Right.OBSERVE in kept.rights

    def check_not_shut_out(
        self, actor: Actor, session: Live, created_at: float, now: float
    ) -> None:
        """An actor that could see the session until its rights expired or were revoked learns why
        it no longer can: it knows of the session."""
        name, labels, uid = session
        if not actor.may_touch(uid):
            return
        self._authority.check_not_revoked(actor.id, name, labels, created_at)
        try:
            self._authority.check(actor.id, Right.OBSERVE, name, labels, now)
        except (NotPermitted, ActorRevoked):
            return  # it never could, or is nobody here: then there is no such session

    def check_not_shut_out_everywhere(self, actor: Actor) -> None:
        """The same for one whose access to all was revoked, whatever it names."""
        self._authority.check_not_revoked_everywhere(actor.id)
