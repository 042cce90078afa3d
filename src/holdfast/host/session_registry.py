"""Sessions by name and id, as far as the asking actor may see them (core.access).

Names are each unix user's own: two users may have a session of the same name. A whole id always
means its own session, also after that has ended. The first characters of an id are enough for
requests that only read (wire.request_classes), and no name is given that could be mistaken for
them; so is the beginning of a live session's name, if no other one begins so.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
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
    session_over,
)
from holdfast.model.ids import SessionId
from holdfast.model.limits import ID_PREFIX_MIN_CHARS, NAME_MAX_CHARS, TOMBSTONES_LISTED

_NAMES_LISTED = 5  # in a hint: a line that people read
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Specified(Protocol):
    """A session, as far as it can be found."""

    spec: SessionSpec


S = TypeVar("S", bound=Specified)


class FindSession(Protocol):
    """A live session, or the latest ended one, of this name or whole id."""

    def find(self, actor: Actor, text: str) -> Specified | Stored: ...


class Registry(Generic[S]):
    """Live sessions, and the recently ended."""

    def __init__(self, store: SessionStore, authority: Authority) -> None:
        self._store = store
        self._visibility = Visibility(authority)
        self.live: dict[SessionId, S] = {}
        self._names: dict[tuple[int, str], SessionId] = {}
        self._recent = store.tombstones(TOMBSTONES_LISTED)
        # Asleep, or lost and not acknowledged, newest first: listed however many ended since.
        self._lost = {stored.info.id: stored for stored in store.unacknowledged()}
        self._starting: set[tuple[int, str]] = set()

    def add(self, live: S) -> None:
        self.live[live.spec.id] = live
        self._names[live.spec.uid, live.spec.name] = live.spec.id

    def risen(self, live: S) -> None:
        """One that was asleep or lost lives again."""
        self._recent = [each for each in self._recent if each.info.id != live.spec.id]
        self._lost.pop(live.spec.id, None)
        self.add(live)

    def renamed(self, live: S, before: str) -> None:
        """Its spec has the new name already, which was reserved."""
        if self._names.get((live.spec.uid, before)) == live.spec.id:
            del self._names[live.spec.uid, before]
        self._names[live.spec.uid, live.spec.name] = live.spec.id

    def ended(self, live: S, stored: Stored) -> None:
        self.live.pop(live.spec.id, None)
        if self._names.get((live.spec.uid, live.spec.name)) == live.spec.id:
            del self._names[live.spec.uid, live.spec.name]
        self.remember(stored)

    def remember(self, stored: Stored) -> None:
        self._recent.insert(0, stored)
        if stored.stays_listed:
            self._lost = {stored.info.id: stored, **self._lost}
        of_user = [index for index, other in enumerate(self._recent) if other.uid == stored.uid]
        for index in reversed(of_user[TOMBSTONES_LISTED:]):
            del self._recent[index]

    def forget(self, session: SessionId) -> None:
        """One that is over: it is not here any longer, or comes anew."""
        self._recent = [each for each in self._recent if each.info.id != session]
        self._lost.pop(session, None)

    def updated(self, stored: Stored) -> None:
        """More became known of one that is over: pruned, acknowledged, followed by another."""
        id = stored.info.id
        self._recent = [stored if each.info.id == id else each for each in self._recent]
        if stored.stays_listed:
            self._lost[id] = stored
        else:
            self._lost.pop(id, None)

    def reserve(self, uid: int, name: str, program: str) -> str:
        """A name kept free until `settle`: the one asked for, or one made from the program's."""
        if name:
            if len(name) > NAME_MAX_CHARS or not _NAME.fullmatch(name):
                raise InvalidArgument(
                    f"not a name: {name[:80]!r}",
                    hint=f"letters, digits, '.', '_' and '-', at most {NAME_MAX_CHARS}",
                )
            if self._like_an_id(name):
                raise InvalidArgument(
                    f"the name {name!r} could be mistaken for the id of a session",
                    hint="choose another name, for example with a '-' in it: ids have none",
                )
            if self._taken(uid, name):
                raise NameTaken(
                    f"a live session is already called {name!r}",
                    hint=f"attach to it with `hold attach {name}`, or choose another name",
                )
        else:
            stem = re.sub(r"[^A-Za-z0-9._-]", "", program.rsplit("/", 1)[-1])[:40].lstrip("-._")
            name, count = stem or "session", 1
            while self._taken(uid, name) or self._like_an_id(name):
                count += 1
                name = f"{stem or 'session'}-{count}"
        self._starting.add((uid, name))
        return name

    def settle(self, uid: int, name: str) -> None:
        self._starting.discard((uid, name))

    def _taken(self, uid: int, name: str) -> bool:
        return (uid, name) in self._names or (uid, name) in self._starting

    def _like_an_id(self, name: str) -> bool:
        """Shaped like an id, or a prefix of an id of any user, live or ended however long ago: root
        finds all of them."""
        if _as_id(name) is not None:
            return True
        return len(name) >= ID_PREFIX_MIN_CHARS and self._store.has_id_like(name)

    # -- finding ------------------------------------------------------------------------------

    def judged(self) -> list[Live]:
        """Every live session, as far as authority is concerned."""
        return [_judged(live) for live in self.live.values()]

    def as_judged(self, found: Specified | Stored) -> Live:
        """One session, the same way."""
        return _judged(found)

    def may_see(self, actor: Actor, found: Specified | Stored) -> bool:
        return self._visibility.may_observe(actor, _judged(found), now())

    def may_see_id(self, actor: Actor, session: SessionId) -> bool:
        """The same of a live session or an ended one, by its id."""
        return self.find_live(actor, session) is not None or (
            self._find_ended(actor, session) is not None
        )

    def find_live(self, actor: Actor, text: str) -> S | None:
        """By whole id, or by name: the asker's own first."""
        exact: S | None = self.live.get(text)  # type: ignore[call-overload]
        if exact is not None:
            spec = exact.spec
            judged = spec.id, spec.labels, spec.uid
            return exact if self._visibility.may_observe(actor, judged, now()) else None
        return self._by_name(actor, text) if _as_id(text) is None else None

    def find(self, actor: Actor, text: str, *, by_prefix: bool = False) -> S | Stored:
        """A live session, or the latest ended one, of this name or id; `by_prefix`: also by the
        first characters of the id of one of them, or of the name of a live one."""
        found = self.find_live(actor, text) or self._find_ended(actor, text)
        if found is not None:
            return found
        matches = self._by_prefix(actor, text)
        if by_prefix and matches and len(text) >= ID_PREFIX_MIN_CHARS:
            if len(matches) > 1:
                raise AmbiguousName(
                    f"{len(matches)} session ids start with {text!r}", hint="give more of the id"
                )
            return matches[0]
        named = [each for each in self.seen_live(actor) if each.spec.name.startswith(text or "/")]
        if by_prefix and len(named) > 1:
            names = ", ".join(sorted(each.spec.name for each in named)[:_NAMES_LISTED])
            raise AmbiguousName(
                f"{len(named)} sessions have names that start with {text!r}", hint=f"one of {names}"
            )
        if by_prefix and named:
            return named[0]
        for live in self.live.values():
            if text in (live.spec.id, live.spec.name):
                created_at = live.spec.created_at
                self._visibility.check_not_shut_out(actor, _judged(live), created_at, now())
        self._visibility.check_not_shut_out_everywhere(actor)
        hint = _hint(text, by_prefix, bool(matches))
        if not matches and (meant := self._meant(actor, text)):
            hint = f"did you mean {meant!r}? {hint}"
        raise NoSuchSession(f"there is no session {text[:80]!r}", hint=hint)

    def _meant(self, actor: Actor, text: str) -> str:
        """The name of a live session that the asker may see and may have meant, or ""."""
        names = [live.spec.name for live in self.seen_live(actor)]
        begun = [name for name in names if text and name.startswith(text)]
        near = begun or get_close_matches(text[:NAME_MAX_CHARS], names, n=1)
        return near[0] if near else ""

    def find_running(self, actor: Actor, text: str, *, by_prefix: bool = False) -> S:
        """A live session; an ended one is refused as ended."""
        found = self.find(actor, text, by_prefix=by_prefix)
        if isinstance(found, Stored):
            raise has_ended(found)
        return found

    def _find_ended(self, actor: Actor, text: str) -> Stored | None:
        session = _as_id(text)
        if session is None:
            named = (stored for stored in self._over() if stored.info.name == text)
            return next((stored for stored in named if self.may_see(actor, stored)), None)
        recent = (stored for stored in self._recent if stored.info.id == session)
        ended = next(recent, None) or self._store.tombstone(session)
        return ended if ended is not None and self.may_see(actor, ended) else None

    def _by_prefix(self, actor: Actor, text: str) -> list[S | Stored]:
        if not text or _as_id(text) is not None:
            return []
        live = [each for each in self.seen_live(actor) if each.spec.id.startswith(text)]
        over = [each for each in self._over() if each.info.id.startswith(text)]
        return [*live, *(each for each in over if self.may_see(actor, each))]

    def _over(self) -> list[Stored]:
        """The recently ended, then those lost long ago that nobody has acknowledged."""
        recent = {stored.info.id for stored in self._recent}
        return [*self._recent, *(each for id, each in self._lost.items() if id not in recent)]

    def seen_live(self, actor: Actor) -> list[S]:
        return [live for live in self.live.values() if self.may_see(actor, live)]

    def seen_ended(self, actor: Actor) -> list[Stored]:
        return [stored for stored in self._recent if self.may_see(actor, stored)]

    def seen_lost(self, actor: Actor) -> list[Stored]:
        return [stored for stored in self._lost.values() if self.may_see(actor, stored)]

    def returning(self) -> list[Stored]:
        """Those that were put to sleep for a shutdown."""
        found = {each.info.id: each for each in self._over() if each.returns_for}
        return [each for id, each in found.items() if id not in self.live and each.is_asleep]

    def answered_for(self) -> list[Stored]:
        """Those asleep, and lost ones that nobody has acknowledged or that another one follows."""
        followed = (each for each in self._recent if each.is_lost and each.successor)
        found = {each.info.id: each for each in (*followed, *self._lost.values())}
        return [
            each
            for each in found.values()
            if each.info.pruned_at is None and each.handed_to is None
        ]

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


def _as_id(text: str) -> SessionId | None:
    try:
        return SessionId(text)
    except ValueError:
        return None


def _hint(text: str, by_prefix: bool, is_prefix: bool) -> str:
    if is_prefix and by_prefix:
        return f"give at least {ID_PREFIX_MIN_CHARS} characters of an id"
    if is_prefix and len(text) >= ID_PREFIX_MIN_CHARS:
        return (
            "a part of an id is enough only to read; give the name or the whole id, which "
            f"`hold show {text}` shows"
        )
    return "`hold ls --all` lists live and ended ones"


def has_ended(found: Stored) -> SessionEnded:
    look = f"`hold screen {found.info.id[:8]}` shows its last screen"
    if found.is_lost:
        look = f"`hold show {found.info.id[:8]}` shows what was in flight"
    return session_over(f"the session {found.info.name}", found.info.ending, hint=look)


def _judged(found: Specified | Stored) -> Live:
    if isinstance(found, Stored):
        return found.info.id, found.info.labels, found.uid
    return found.spec.id, found.spec.labels, found.spec.uid
