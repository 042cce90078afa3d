"""Who came in, and with what: one entry for each grant that was used here, kept also when it has
ended, so that people can see who was there. What a grant is worth is judged elsewhere, each time;
nothing is let in because it stands here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from holdfast.model.admission import DeviceInfo
from holdfast.model.errors import LimitReached
from holdfast.model.grant import Grant, GrantLink
from holdfast.model.ids import ActorId
from holdfast.model.limits import DELEGATES_MAX, DEVICES_MAX
from holdfast.model.record import Record
from holdfast.wire.grants import decode_chain


class Admitted(Record):
    """One grant that somebody came in with."""

    link: bytes  # id of its last link
    chain: bytes
    actor: ActorId
    first: ActorId  # who had it from the host
    uid: int  # the unix user whose sessions it is about
    name: str  # what the device wanted to be called
    invite: bytes  # by which it came; empty: it was handed on
    given_by: str  # an actor's id, or HOST_ACTOR
    came_at: float
    seen_at: float
    revoked_at: float | None = None

    @property
    def grant(self) -> Grant:
        return self.last.grant

    @property
    def last(self) -> GrantLink:
        return decode_chain(self.chain).links[-1]

    def links_by(self, key: bytes) -> list[GrantLink]:
        """Those links in it that the holder of this key made."""
        return [link for link in decode_chain(self.chain).links if link.grant.issuer == key]

    def rests_on(self, links: Collection[bytes], keys: Collection[bytes]) -> bool:
        return any(
            link.id in links or link.grant.holder in keys for link in decode_chain(self.chain).links
        )


class DeviceBook:
    """The entries of one host."""

    def __init__(self, entries: Iterable[Admitted] = ()) -> None:
        self._entries = {entry.link: entry for entry in entries}

    def entries(self) -> tuple[Admitted, ...]:
        return tuple(self._entries.values())

    def take_back(self, before: Iterable[Admitted]) -> None:
        """A change could not be written down: the entries are what they were."""
        self._entries = {entry.link: entry for entry in before}

    def get(self, link: bytes) -> Admitted | None:
        return self._entries.get(link)

    def of(self, actor: ActorId) -> list[Admitted]:
        return [entry for entry in self._entries.values() if entry.actor == actor]

    def uid_of(self, actor: ActorId) -> int | None:
        return next((entry.uid for entry in self.of(actor)), None)

    def put(self, entry: Admitted, now: float) -> None:
        """A new one, in place of those of its actor that have ended."""
        ended = [each for each in self.of(entry.actor) if self._is_over(each, now)]
        for each in ended:
            del self._entries[each.link]
        if len(self._entries) >= DEVICES_MAX:
            self._drop_oldest(now)
        self._entries[entry.link] = entry

    def check_room_for_delegate(self, first: ActorId) -> None:
        """Each makes an actor, and the host knows only so many forever."""
        handed_on = {each.actor for each in self.entries() if each.first == first}
        if len(handed_on) > DELEGATES_MAX:
            raise LimitReached(
                f"already {DELEGATES_MAX} actors came in with what one device handed on",
                hint="hand on to an actor that was here before",
            )

    def seen(self, link: bytes, now: float) -> Admitted:
        entry = self._entries[link] = self._entries[link].replace(seen_at=now)
        return entry

    def revoked(self, links: Collection[bytes], keys: Collection[bytes], now: float) -> None:
        for link, entry in self._entries.items():
            if entry.revoked_at is None and entry.rests_on(links, keys):
                self._entries[link] = entry.replace(revoked_at=now)

    def _is_over(self, entry: Admitted, now: float) -> bool:
        return entry.revoked_at is not None or entry.grant.expires <= now

    def _drop_oldest(self, now: float) -> None:
        over = [each for each in self._entries.values() if self._is_over(each, now)]
        if not over:
            raise LimitReached(f"already {DEVICES_MAX} grants are in use here", hint="revoke some")
        del self._entries[min(over, key=lambda each: each.seen_at).link]


def describe(
    entries: Iterable[Admitted], names: dict[str, str], shown: Iterable[bytes], now: float
) -> tuple[DeviceInfo, ...]:
    """As people are told of them. `shown`: last links of what connections show now."""
    here = Counter(shown)
    return tuple(_info(entry, names, here[entry.link], now) for entry in entries)


def _info(entry: Admitted, names: dict[str, str], here: int, now: float) -> DeviceInfo:
    grant = entry.grant
    return DeviceInfo(
        actor=entry.actor,
        name=names.get(entry.actor, ""),
        reach=str(grant.reach),
        rights=grant.rights,
        invite=entry.invite.hex(),
        given_by=entry.given_by,
        came_at=entry.came_at,
        seen_at=now if here else entry.seen_at,
        until=float(grant.expires),
        here=here,
        delegations=grant.delegations,
        revoked_at=entry.revoked_at,
    )
