"""One relay that this host has dialled: prove who we are, announce our sessions, carry the streams
of operators. When the connection is lost it is dialled again; no session notices.

A host is connected to all of its relays at once, so losing one relay shuts nobody out. What goes
through a stream is sealed (remote_stream.py); the relay learns which sessions are here, and when
something is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import TYPE_CHECKING

from holdfast.dial.address import RelayAddress
from holdfast.dial.backoff import MOST_S, SOON_MOST_S, Backoff, Leaving
from holdfast.host.reach.remote_stream import RemoteStream
from holdfast.model.errors import HoldfastError, ProtocolViolation, RelayUnreachable
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import RELAY_ANNOUNCE_MAX, RELAY_HOST_STREAMS
from holdfast.wire import relay_messages as r
from holdfast.wire.messages.base import Message

if TYPE_CHECKING:
    from holdfast.dial.websocket import WebSocket
    from holdfast.host.reach.relay_presence import RelayPresence

log = logging.getLogger(__name__)

_PATH = "/v1/host"
_STEADY_S = 10.0  # a connection that held so long was a good one
_PASSING = ("coordination_down", "storage_failed", "rate_limited", "limit_reached")
COMPLAINT_S = 10.0  # between two lines about streams that went wrong
_AGAIN_S = 2.0  # after a refusal for one of these reasons
_LOOK_S = 0.1  # whether all have left a relay that ends


class Uplink:
    """Dials one relay for as long as it runs."""

    def __init__(self, reach: RelayPresence, address: RelayAddress) -> None:
        self.reach, self.address = reach, address
        self.state = "not connected yet"  # for people to read
        self.window = self.broadcast_window = 0  # of a stream and of a session, as the relay says
        self.up = False
        self._socket: WebSocket | None = None
        self._streams: dict[int, RemoteStream] = {}
        self._again: set[SessionId] = set()  # announced, and refused for reasons that pass
        self._last_id = 0
        self._complaints, self._complain_at = 0, 0.0
        self._soon_until = 0.0  # after a relay that said it ends
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    # -- life -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        backoff = Backoff(random.random)
        while True:
            began = self._loop.time()
            try:
                self.state = await self._once()
            except RelayUnreachable as error:
                self.state = error.message
            except Exception as error:  # ours; it is dialled again all the same
                self.state = f"{type(error).__name__}: {error}"
                log.exception("relay %s", self.address.url)
            if self._loop.time() - began > _STEADY_S:
                backoff.succeeded()
            soon = self._loop.time() < self._soon_until
            wait_s = backoff.wait_s(SOON_MOST_S if soon else MOST_S)
            log.info("relay %s: %s; again in %.1f s", self.address.url, self.state, wait_s)
            await asyncio.sleep(wait_s)

    async def _once(self) -> str:
        """One connection, until it ends; gives why."""
        from holdfast.dial.websocket import connect  # with the first relay: it takes a moment

        socket = await connect(self.address, _PATH, self._on_message, self._on_room)
        self._socket = socket
        socket.begin()
        try:
            return await socket.lost
        finally:
            self._socket = None
            self.up = False
            socket.close()
            for stream in list(self._streams.values()):
                stream.gone()
            self._streams.clear()
            self.reach.lost(self)

    def close(self) -> None:
        self._task.cancel()

    # -- what the relay says ----------------------------------------------------------------------

    def _on_message(self, data: bytes) -> None:
        try:
            self._take(r.decode(data))
        except HoldfastError as error:
            # The relay's fault or ours: another connection is the only way to agree again.
            log.warning("relay %s: %s", self.address.url, error.message)
            if self._socket is not None:
                self._socket.close()
        except Exception:
            log.exception("relay %s", self.address.url)

    def _take(self, message: Message) -> None:
        match message:
            case r.StreamData(stream=number, data=data):
                stream = self._streams.get(number)
                if stream is not None:
                    stream.receive(data)
            case r.Credit(stream=number, size=size):
                stream = self._streams.get(number)
                if stream is not None:
                    stream.may_send(size)
            case r.Incoming(stream=number):
                self._incoming(number)
            case r.StreamClosed(stream=number):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    stream.gone()
            case r.Challenge():
                self._prove(message)
            case r.Greeted():
                self._greeted(message)
            case r.Registered():
                self._registered(message)
            case r.Superseded(session=session, epoch=epoch):
                log.warning("session %s: a later incarnation, epoch %d, is known", session, epoch)
            case r.RelayFailed(code=code, message=text):
                raise ProtocolViolation(f"the relay says: {text} ({code})")
            case r.SubscribersWanted(session=session, wanted=wanted):
                self.reach.wanted(self, session, wanted)
            case r.Taken(session=session, seq=seq):
                self.reach.taken(self, session, seq)
            case r.GoingAway(within_s=within_s):
                self._going_away(within_s)
            case _:
                raise ProtocolViolation(f"a relay does not say {message.tag} to a host")

    def _incoming(self, number: int) -> None:
        if number in self._streams:
            raise ProtocolViolation(f"the relay gives stream {number} to a second operator")
        if len(self._streams) >= RELAY_HOST_STREAMS:  # whatever that relay's own limit is
            self.say(r.Close(number))
        else:
            self._streams[number] = RemoteStream(self, number)

    def _prove(self, challenge: r.Challenge) -> None:
        if r.RELAY_VERSION not in challenge.versions:
            raise ProtocolViolation(f"the relay speaks versions {challenge.versions}")
        device, name = self.reach.device, self.address.name
        signature = self.reach.host_key.sign(r.host_text(challenge.challenge, name))
        self.say(
            r.ProveHost(
                r.RELAY_VERSION, device.key, name, signature, device.static, device.signature
            )
        )

    def _greeted(self, greeted: r.Greeted) -> None:
        self.window = greeted.stream_window_bytes
        self.broadcast_window = greeted.broadcast_window_bytes
        self.state = "connected"
        self._again.clear()
        log.info("relay %s: connected", self.address.url)
        self.up = True
        self.announce(self.reach.announced())

    def _registered(self, answer: r.Registered) -> None:
        for refusal in answer.refused:
            log.warning("relay %s: session %s: %s", self.address.url, refusal.session, refusal.code)
            if refusal.code in _PASSING:
                if not self._again:
                    self._loop.call_later(_AGAIN_S * (1 + random.random()), self._announce_again)
                self._again.add(refusal.session)

    def _announce_again(self) -> None:
        again, self._again = self._again, set()
        announced = self.reach.announced()
        self.announce([each for each in announced if SessionId.of_key(each.key) in again])

    def _going_away(self, within_s: float) -> None:
        """This relay ends. We are at the others already; here we leave, and dial again: another
        may answer at the same address. For as long as it may take this one to end, and a little
        more, we do not wait longer from try to try."""
        log.info("relay %s is about to end", self.address.url)
        leaving, socket = Leaving(within_s, random.random), self._socket
        now = self._loop.time()
        latest, self._soon_until = now + leaving.host_latest_s, now + leaving.soon_s
        self._loop.call_later(leaving.host_s, self._leave, socket, latest)

    def _leave(self, socket: WebSocket | None, latest: float) -> None:
        """After those who came through it, who leave by themselves: what they said is heard."""
        if socket is not self._socket or socket is None:
            return  # it is over already
        if self._streams and self._loop.time() < latest:
            self._loop.call_later(_LOOK_S, self._leave, socket, latest)
        else:
            socket.close()

    # -- what we say ------------------------------------------------------------------------------

    def announce(self, sessions: list[r.Announced]) -> None:
        """Before it is greeted a relay hears of nothing; then of all there is."""
        if not self.up:
            return
        for start in range(0, len(sessions), RELAY_ANNOUNCE_MAX):
            self._last_id += 1
            self.say(r.Announce(self._last_id, tuple(sessions[start : start + RELAY_ANNOUNCE_MAX])))

    def withdraw(self, session: SessionId) -> None:
        if self.up:
            self.say(r.WithdrawSession(session))

    def say(self, message: Message) -> None:
        if self._socket is not None:
            self._socket.send(r.encode(message))

    @property
    def has_room(self) -> bool:
        return self._socket is not None and self._socket.has_room

    def _on_room(self, room: bool) -> None:
        if room:
            for stream in list(self._streams.values()):
                stream.may_send(0)
            self.reach.has_room()

    def judge(self, subject: ActorId | None) -> None:
        """All who are here by this relay, again, or one of them on each of its streams."""
        for stream in list(self._streams.values()):
            if subject is None or stream.is_of(subject):
                stream.judge()

    def complain(self, error: HoldfastError) -> None:
        """Of a stream that went wrong. Anybody can make as many as the relay allows: there is one
        line for many, so that nobody can fill this host's disk."""
        self._complaints += 1
        if self._loop.time() >= self._complain_at:
            self._complain_at = self._loop.time() + COMPLAINT_S
            text, count = f"{error.message} ({error.code})", self._complaints
            log.info("relay %s: a remote operator: %s; %d so far", self.address.url, text, count)

    def close_stream(self, number: int) -> None:
        """Ours to end; the relay tells the operator."""
        if self._streams.pop(number, None) is not None:
            self.say(r.Close(number))

    async def ended(self) -> None:
        """After `close`."""
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
