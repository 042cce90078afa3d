"""Sessions by name, id and prefix, and who may see which.

Until envelopes arrive, authority is the unix user's: a session belongs to nobody, but it runs as a
user, and only that user and root can name it. To everybody else it does not exist.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.host.store import Store, Stored
from holdfast.model.errors import AmbiguousName, InvalidArgument, NameTaken, NoSuchSession
from holdfast.model.ids import SessionId
from holdfast.model.limits import NAME_MAX_CHARS, TOMBSTONES_LISTED

if TYPE_CHECKING:
    from holdfast.host.live import LiveSession

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Registry:
    """Live sessions, and the recently ended."""

    def __init__(self, store: Store) -> None:
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

    def may_see(self, uid: int, live: LiveSession | Stored) -> bool:
        owner = live.uid if isinstance(live, Stored) else live.spec.uid
        return uid in (0, owner)

    def find_live(self, uid: int, text: str) -> LiveSession | None:
        """By id, name (the asker's own first), or unique prefix of an id; None when only ended
        sessions match."""
        exact: LiveSession | None = self.live.get(text)  # type: ignore[call-overload]
        if exact is not None and self.may_see(uid, exact):
            return exact
        found = self._by_name(uid, text)
        if found is not None:
            return found
        seen = [live for live in self.live.values() if self.may_see(uid, live)]
        matches = [live for live in seen if text and live.spec.id.startswith(text)]
        if len(matches) > 1:
            raise AmbiguousName(
                f"{len(matches)} session ids start with {text!r}", hint="give more of the id"
            )
        return matches[0] if matches else None

    def find(self, uid: int, text: str) -> LiveSession | Stored:
        """A live session, or the latest ended one."""
        live = self.find_live(uid, text)
        if live is not None:
            return live
        for stored in self._recent:
            named = stored.info.name == text or stored.info.id.startswith(text)
            if text and named and self.may_see(uid, stored):
                return stored
        raise NoSuchSession(
            f"there is no session {text[:80]!r}", hint="`hold ls --all` lists live and ended ones"
        )

    def seen_live(self, uid: int) -> list[LiveSession]:
        return [live for live in self.live.values() if self.may_see(uid, live)]

    def seen_ended(self, uid: int) -> list[Stored]:
        return [stored for stored in self._recent if self.may_see(uid, stored)]

    def _by_name(self, uid: int, text: str) -> LiveSession | None:
        session = self._names.get((uid, text))
        if session is None and uid == 0:
            others = [found for (_, name), found in self._names.items() if name == text]
            if len(others) > 1:
                raise AmbiguousName(
                    f"several users have a session called {text!r}", hint="give its id"
                )
            session = others[0] if others else None
        return self.live.get(session) if session is not None else None
