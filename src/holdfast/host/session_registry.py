"""Sessions by name, id and prefix, and who may see which.

A session belongs to nobody, but it runs as a unix user: only actors of that user, and root's, can
name it, and of these only those whose envelope lets them observe it. To everybody else it does not
exist.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from holdfast.core.access.authority import Allowance, Authority
from holdfast.host.clock import now
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.actor import Actor
from holdfast.model.envelope import Right
from holdfast.model.errors import (
    ActorRevoked,
    AmbiguousName,
    InvalidArgument,
    NameTaken,
    NoSuchSession,
    NotPermitted,
)
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import NAME_MAX_CHARS, TOMBSTONES_LISTED

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KEPT_MAX = 4096  # allowances, of who asked for which session


class Registry:
    """Live sessions, and the recently ended."""

    def __init__(self, store: SessionStore, authority: Authority) -> None:
        self._authority = authority
        # Good until the authority's version or the time moves on: every stream asks at every beat.
        self._allowances: dict[tuple[ActorId, SessionId, tuple[str, ...]], Allowance] = {}
        self.live: dict[SessionId, LiveSession] = {}
        self._names: dict[tuple[int, str], SessionId] = {}  # names are each user's own
        self._recent = store.tombstones(TOMBSTONES_LISTED)
        self._starting: set[tuple[int, str]] = set()

    def add(self, live: LiveSession) -> None:
        self.live[live.spec.id] = live
        self._names[live.spec.uid, live.spec.name] = live.spec.id

    def ended(self, live: LiveSession, stored: Stored) -> None:
        self.live.pop(live.spec.id, None)
        if self._names.get((live.spec.uid, live.spec.name)) == live.spec.id:
            del self._names[live.spec.uid, live.spec.name]
        self.remember(stored)

    def remember(self, stored: Stored) -> None:
        self._recent.insert(0, stored)
        of_user = [index for index, other in enumerate(self._recent) if other.uid == stored.uid]
        for index in reversed(of_user[TOMBSTONES_LISTED:]):
            del self._recent[index]

    def reserve(self, uid: int, name: str, program: str) -> str:
        """A free name, held until `settle`: the one asked for, or one made from the program's."""
        if name:
            if len(name) > NAME_MAX_CHARS or not _NAME.fullmatch(name):
                raise InvalidArgument(
                    f"not a name: {name[:80]!r}",
                    hint=f"letters, digits, '.', '_' and '-', at most {NAME_MAX_CHARS}",
                )
            if self._taken(uid, name):
                raise NameTaken(
                    f"a live session is already called {name!r}",
                    hint=f"attach to it with `hold attach {name}`, or choose another name",
                )
        else:
            stem = re.sub(r"[^A-Za-z0-9._-]", "", program.rsplit("/", 1)[-1])[:40].lstrip("-._")
            name, count = stem or "session", 1
            while self._taken(uid, name):
                count += 1
                name = f"{stem or 'session'}-{count}"
        self._starting.add((uid, name))
        return name

    def settle(self, uid: int, name: str) -> None:
        self._starting.discard((uid, name))

    def _taken(self, uid: int, name: str) -> bool:
        return (uid, name) in self._names or (uid, name) in self._starting

    # -- finding ------------------------------------------------------------------------------

    def may_see(self, actor: Actor, found: LiveSession | Stored) -> bool:
        if isinstance(found, Stored):
            uid, session, labels = found.uid, found.info.id, found.info.labels
        else:
            uid, session, labels = found.spec.uid, found.spec.id, found.spec.labels
        if not actor.may_touch(uid):
            return False
        return Right.OBSERVE in self._allowance(actor.id, session, labels).rights

    def _allowance(self, actor: ActorId, session: SessionId, labels: tuple[str, ...]) -> Allowance:
        key, at = (actor, session, labels), now()
        kept = self._allowances.get(key)
        if kept is None or kept.version != self._authority.version or at >= kept.valid_until:
            if len(self._allowances) >= _KEPT_MAX:
                self._allowances.clear()
            kept = self._allowances[key] = self._authority.allowance(actor, session, labels, at)
        return kept

    def find_live(self, actor: Actor, text: str) -> LiveSession | None:
        """By id, name (the asker's own first), or unique prefix of an id; None when only ended
        sessions match."""
        exact: LiveSession | None = self.live.get(text)  # type: ignore[call-overload]
        if exact is not None and self.may_see(actor, exact):
            return exact
        found = self._by_name(actor, text)
        if found is not None:
            return found
        seen = [live for live in self.live.values() if self.may_see(actor, live)]
        matches = [live for live in seen if text and live.spec.id.startswith(text)]
        if len(matches) > 1:
            raise AmbiguousName(
                f"{len(matches)} session ids start with {text!r}", hint="give more of the id"
            )
        return matches[0] if matches else None

    def find(self, actor: Actor, text: str) -> LiveSession | Stored:
        """A live session, or the latest ended one."""
        live = self.find_live(actor, text)
        if live is not None:
            return live
        for stored in self._recent:
            named = stored.info.name == text or stored.info.id.startswith(text)
            if text and named and self.may_see(actor, stored):
                return stored
        self._check_not_expired(actor, text)
        raise NoSuchSession(
            f"there is no session {text[:80]!r}", hint="`hold ls --all` lists live and ended ones"
        )

    def _check_not_expired(self, actor: Actor, text: str) -> None:
        """Who could see it until its envelope expired is told so: it knows of the session."""
        for live in self.live.values():
            if text in (live.spec.id, live.spec.name) and actor.may_touch(live.spec.uid):
                with contextlib.suppress(NotPermitted, ActorRevoked):
                    spec = live.spec
                    self._authority.check(actor.id, Right.OBSERVE, spec.id, spec.labels, now())

    def seen_live(self, actor: Actor) -> list[LiveSession]:
        return [live for live in self.live.values() if self.may_see(actor, live)]

    def seen_ended(self, actor: Actor) -> list[Stored]:
        return [stored for stored in self._recent if self.may_see(actor, stored)]

    def _by_name(self, actor: Actor, text: str) -> LiveSession | None:
        session = self._names.get((actor.uid, text))
        if session is None and actor.uid == 0:
            others = [found for (_, name), found in self._names.items() if name == text]
            if len(others) > 1:
                raise AmbiguousName(
                    f"several users have a session called {text!r}", hint="give its id"
                )
            session = others[0] if others else None
        found = self.live.get(session) if session is not None else None
        return found if found is not None and self.may_see(actor, found) else None
