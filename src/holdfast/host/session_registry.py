"""Sessions by name, id and prefix, as far as the asking actor may see them (core.access).

Names are each unix user's own: two users may have a session of the same name.
"""

from __future__ import annotations

import re
from typing import Generic, Protocol, TypeVar

from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.core.access.visibility import Visibility
from holdfast.host.clock import now
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.actor import Actor
from holdfast.model.errors import (
    AmbiguousName,
    InvalidArgument,
    NameTaken,
    NoSuchSession,
    SessionEnded,
)
from holdfast.model.ids import SessionId
from holdfast.model.limits import NAME_MAX_CHARS, TOMBSTONES_LISTED

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Specified(Protocol):
    """A session, as far as it can be found."""

    spec: SessionSpec


S = TypeVar("S", bound=Specified)


class FindSession(Protocol):
    """A live session, or the latest ended one, of this name or id."""

    def find(self, actor: Actor, text: str) -> Specified | Stored: ...


class Registry(Generic[S]):
    """Live sessions, and the recently ended."""

    def __init__(self, store: SessionStore, authority: Authority) -> None:
        self._store, self._visibility = store, Visibility(authority)
        self.live: dict[SessionId, S] = {}
        self._names: dict[tuple[int, str], SessionId] = {}
        self._recent = store.tombstones(TOMBSTONES_LISTED)
        self._starting: set[tuple[int, str]] = set()

    def add(self, live: S) -> None:
        self.live[live.spec.id] = live
        self._names[live.spec.uid, live.spec.name] = live.spec.id

    def ended(self, live: S, stored: Stored) -> None:
        self.live.pop(live.spec.id, None)
        if self._names.get((live.spec.uid, live.spec.name)) == live.spec.id:
            del self._names[live.spec.uid, live.spec.name]
        self.remember(stored)

    def remember(self, stored: Stored) -> None:
        self._recent.insert(0, stored)
        of_user = [index for index, other in enumerate(self._recent) if other.uid == stored.uid]
        for index in reversed(of_user[TOMBSTONES_LISTED:]):
            del self._recent[index]

    def pruned(self, stored: Stored) -> None:
        """Journal and output of an ended one were removed."""
        id = stored.info.id
        self._recent = [stored if each.info.id == id else each for each in self._recent]

    def reserve(self, uid: int, name: str, program: str) -> str:
        """A name kept free until `settle`: the one asked for, or one made from the program's."""
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

    def judged(self) -> list[Live]:
        """Every live session, as far as authority is concerned."""
        return [_judged(live) for live in self.live.values()]

    def may_see(self, actor: Actor, found: Specified | Stored) -> bool:
        return self._visibility.may_observe(actor, _judged(found), now())

    def find_live(self, actor: Actor, text: str) -> S | None:
        """By id, name (the asker's own first), or unique prefix of an id; None when only ended
        sessions match."""
        exact: S | None = self.live.get(text)  # type: ignore[call-overload]
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

    def find(self, actor: Actor, text: str) -> S | Stored:
        """A live session, or the latest ended one."""
        live = self.find_live(actor, text)
        if live is not None:
            return live
        for stored in self._recent:
            named = stored.info.name == text or stored.info.id.startswith(text)
            if text and named and self.may_see(actor, stored):
                return stored
        old = self._store.tombstone(text)  # one that ended long ago, by its whole id
        if old is not None and self.may_see(actor, old):
            return old
        for live in self.live.values():
            if text in (live.spec.id, live.spec.name):
                self._visibility.check_not_expired(actor, _judged(live), now())
        raise NoSuchSession(
            f"there is no session {text[:80]!r}", hint="`hold ls --all` lists live and ended ones"
        )

    def find_running(self, actor: Actor, text: str) -> S:
        """A live session; an ended one is refused as ended."""
        found = self.find_live(actor, text) or self.find(actor, text)
        if isinstance(found, Stored):
            raise has_ended(found)
        return found

    def seen_live(self, actor: Actor) -> list[S]:
        return [live for live in self.live.values() if self.may_see(actor, live)]

    def seen_ended(self, actor: Actor) -> list[Stored]:
        return [stored for stored in self._recent if self.may_see(actor, stored)]

    def _by_name(self, actor: Actor, text: str) -> S | None:
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


def has_ended(found: Stored) -> SessionEnded:
    return SessionEnded(
        f"the session {found.info.name} has ended: {found.info.ending}",
        hint=f"`hold screen {found.info.id[:8]}` shows its last screen",
    )


def _judged(found: Specified | Stored) -> Live:
    if isinstance(found, Stored):
        return found.info.id, found.info.labels, found.uid
    return found.spec.id, found.spec.labels, found.spec.uid
