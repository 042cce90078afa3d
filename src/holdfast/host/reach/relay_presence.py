"""How this host is reached from other machines: the relays it has dialled, its device, which
sessions it announces there. Pinned sessions run on whatever becomes of the relays."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.dial.address import RelayAddress
from holdfast.host.reach.output_fanout import BroadcastSource, Fanout
from holdfast.host.reach.remote_stream import StreamHost
from holdfast.host.reach.uplink import Uplink
from holdfast.host.session_store import SessionStore, Stored
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import ActorId, SessionId
from holdfast.wire import relay_messages as r
from holdfast.wire.epochs import Incarnation
from holdfast.wire.input_chain import InputBook
from holdfast.wire.stream_opening import HOST_EPOCH, host_channel

log = logging.getLogger(__name__)

LAST_WORDS_S = 5.0  # of a session that ended, through its streams


class AnnouncedSession(BroadcastSource, Protocol):
    """A live session, as far as relays hear of it."""

    fanout: Fanout | None

    @property
    def is_fenced(self) -> bool: ...


class LostIds(Protocol):
    """Lost sessions that relays still route here, so that an operator that asks for one learns why
    it was lost, and which session follows it. Nothing can be attached to or written there."""

    def answered_for(self) -> Iterable[Stored]: ...


class RelayPresence:
    """Of one host. Without a relay it costs nothing."""

    def __init__(
        self,
        sessions: Mapping[SessionId, AnnouncedSession],
        store: SessionStore,
        host: StreamHost,
        life: int,
        lost: LostIds,
    ) -> None:
        """`life`: how many daemons there were before this one."""
        self._sessions, self._store, self._lost = sessions, store, lost
        self.host, self.life = host, life
        self.host_key = store.host_key
        self._uplinks: list[Uplink] = []
        self._vouched: dict[tuple[SessionId, int], r.Announced] = {}
        self._books: dict[SessionId, InputBook] = {}
        self._wanted: set[tuple[Uplink, SessionId]] = set()
        self._fanouts: dict[SessionId, Fanout] = {}

    # -- relays -----------------------------------------------------------------------------------

    def dial(self, address: RelayAddress) -> None:
        """Stay connected to this relay from now on; relay_list.py says to which."""
        if any(uplink.address == address for uplink in self._uplinks):
            return
        if not self._books:
            self._prepare()
        self._uplinks.append(Uplink(self, address))

    def leave(self, address: RelayAddress) -> None:
        """Operators that came through it lose their connection, and nothing else."""
        for uplink in self._uplinks:
            if uplink.address == address:
                uplink.close()
        self._uplinks = [each for each in self._uplinks if each.address != address]

    def _prepare(self) -> None:
        from holdfast.wire.key_agreement import channel_key, device_of

        self.static = channel_key(self.host_key.seed)
        self.device = device_of(self.host_key.public, self.static, self.host_key.sign)
        own = host_channel(self.host_key.public)
        self._books[own] = InputBook(Incarnation(own, HOST_EPOCH))

    async def close(self) -> None:
        for uplink in self._uplinks:
            uplink.close()
        for uplink in self._uplinks:
            await uplink.ended()

    # -- sessions ---------------------------------------------------------------------------------

    def announced(self) -> list[r.Announced]:
        """Every session that is to be found at a relay, and the ids of lost ones."""
        live = (self._announcement(live) for live in self._sessions.values())
        lost = (self._vouch(each.info.id, each.info.epoch) for each in self._lost.answered_for())
        return [each for each in (*live, *lost) if each is not None]

    def announce(self, live: AnnouncedSession) -> None:
        """It can be found from now on; also when it has a new epoch."""
        if self._uplinks and (announcement := self._announcement(live)) is not None:
            for uplink in self._uplinks:
                uplink.announce([announcement])

    def withdraw(self, session: SessionId) -> None:
        """It may no longer act here, or it has ended and its operators know."""
        self._books.pop(session, None)
        self._vouched = {key: value for key, value in self._vouched.items() if key[0] != session}
        fanout, live = self._fanouts.pop(session, None), self._sessions.get(session)
        if fanout is not None:
            fanout.close()
        if live is not None:
            live.fanout = None  # a new epoch has another
        for uplink in self._uplinks:
            uplink.withdraw(session)

    def ended(self, session: SessionId) -> None:
        """Its operators hear of it first, then the relays."""
        if self._uplinks:
            asyncio.get_running_loop().call_later(LAST_WORDS_S, self._said_last, session)

    def _said_last(self, session: SessionId) -> None:
        if session not in self._sessions:  # else it was restored meanwhile, and announced again
            self.over(session)

    def over(self, session: SessionId) -> None:
        """It no longer lives here. Relays route a lost one here for as long as that is news."""
        self.withdraw(session)
        if not self._uplinks:
            return
        for lost in self._lost.answered_for():
            if lost.info.id == session and (made := self._vouch(session, lost.info.epoch)):
                for uplink in self._uplinks:
                    uplink.announce([made])

    def _announcement(self, live: AnnouncedSession) -> r.Announced | None:
        if live.is_fenced:  # it may not be routed to, and `announce` follows when it may
            return None
        return self._vouch(live.spec.id, live.spec.epoch)

    def _vouch(self, session: SessionId, epoch: int) -> r.Announced | None:
        """By the session's key: this host answers for it."""
        made = self._vouched.get((session, epoch))
        if made is None:
            try:
                key = self._store.session_key(session)
            except (OSError, HoldfastError) as error:
                log.error("session %s cannot be announced: %s", session, error)
                return None
            text = r.session_text(session, self.host_key.public, epoch)
            made = self._vouched[session, epoch] = r.Announced(key.public, epoch, key.sign(text))
        return made

    def input_book(self, session: SessionId | None) -> InputBook | None:
        """What is known of the inputs of a session, or of the host's own channel; None: it is not
        here, or may not act."""
        if session is None:
            return self._books[host_channel(self.host_key.public)]
        live = self._sessions.get(session)
        if live is None:
            return None
        book = self._books.get(session)
        if book is None or book.incarnation is not live.incarnation:
            book = self._books[session] = InputBook(live.incarnation)
        return book

    # -- what a relay tells of readers ------------------------------------------------------------

    def fanout(self, live: AnnouncedSession) -> Fanout:
        """What sends this session's output to all, made when it is first needed."""
        if live.fanout is None:
            if (before := self._fanouts.get(live.spec.id)) is not None:
                before.close()  # of the epoch that ended
            live.fanout = self._fanouts[live.spec.id] = Fanout(self, live)
        return live.fanout

    def judge(self, subject: ActorId | None = None) -> None:
        """Rights have changed: a stream whose actor may not observe is sent nothing more.
        `subject`: the only actor whose rights did."""
        for uplink in self._uplinks:
            uplink.judge(subject)

    def wanting(self, session: SessionId) -> list[Uplink]:
        return [uplink for uplink, which in self._wanted if which == session]

    def wanted(self, uplink: Uplink, session: SessionId, wanted: bool) -> None:
        """Whether anybody there is subscribed to what is sent to all."""
        if wanted:
            self._wanted.add((uplink, session))
        else:
            self._wanted.discard((uplink, session))
        if (fanout := self._fanouts.get(session)) is not None:
            fanout.wanted(uplink, wanted)

    def taken(self, uplink: Uplink, session: SessionId, seq: int) -> None:
        """How far the fastest subscriber is."""
        if (fanout := self._fanouts.get(session)) is not None:
            fanout.taken(uplink, seq)

    def lost(self, uplink: Uplink) -> None:
        """Nobody reads through it now."""
        for which, session in list(self._wanted):
            if which is uplink:
                self.wanted(uplink, session, False)

    def has_room(self) -> None:
        for fanout in list(self._fanouts.values()):
            fanout.pump()

    # -- for people -------------------------------------------------------------------------------

    def states(self) -> dict[RelayAddress, tuple[bool, str]]:
        """Each relay: whether it is reached, and what there is to say."""
        return {uplink.address: (uplink.up, uplink.state) for uplink in self._uplinks}
