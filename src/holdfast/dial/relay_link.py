"""An operator's connection to a relay: greeted, with streams to hosts in it.

What a relay says about who is at the other end of a stream is not believed but checked: the host's
device by the host's key, the host of a session by the session's own key.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from holdfast.dial.address import RelayAddress
from holdfast.dial.backoff import Leaving
from holdfast.dial.websocket import WebSocket, connect
from holdfast.model.device import Device
from holdfast.model.errors import (
    BadSignature,
    HoldfastError,
    ProtocolViolation,
    RelayUnreachable,
    from_code,
)
from holdfast.model.ids import SessionId
from holdfast.wire import relay_messages as r
from holdfast.wire.ed25519 import check
from holdfast.wire.key_agreement import check_device
from holdfast.wire.messages.base import Answer, Message, Request

_PATH = "/v1/operator"
_ANSWER_S = 10.0
_LINGER_S = 0.5
_QUIET_S = 0.2  # nothing was said for so long: what was asked before is most likely answered


class HostStream:
    """A two-way pipe to a host. Records go out in order, as the relay has room for them."""

    def __init__(self, link: RelayLink, number: int, host: Device, epoch: int, window: int) -> None:
        self._link, self.number, self.host = link, number, host
        self.epoch = epoch  # of the session it was opened by; 0: by the host's key
        self._credit = window
        self._waiting: list[bytes] = []
        self.on_data: Callable[[bytes], None] = lambda _: None
        self.on_closed: Callable[[str], None] = lambda _: None

    @property
    def has_room(self) -> bool:
        return not self._waiting

    def send(self, data: bytes) -> None:
        if self._waiting or self._credit < len(data):
            self._waiting.append(data)
        else:
            self._put(data)

    def may_send(self, size: int) -> None:
        self._credit += size
        while self._waiting and self._credit >= len(self._waiting[0]):
            self._put(self._waiting.pop(0))
        if not self._waiting:
            self._link.on_room()

    def _put(self, data: bytes) -> None:
        self._credit -= len(data)
        self._link.carry(self.number, data)

    def close(self) -> None:
        self._link.forget(self)


class RelayLink:
    """One WebSocket to a relay."""

    def __init__(self, address: RelayAddress) -> None:
        self.address = address
        self.on_lost: Callable[[str], None] = lambda _: None
        self.on_room: Callable[[], None] = lambda: None
        self.on_leave: Callable[[], None] = lambda: None  # the relay ends, and now is a good moment
        self.ends = False  # it said so
        self._socket: WebSocket | None = None
        self._greeted: asyncio.Future[r.Greeted] = asyncio.get_running_loop().create_future()
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._streams: dict[int, HostStream] = {}
        self._subscribed: dict[SessionId, Callable[[bytes | None], None]] = {}
        self._last_id = 0
        self._window = 0
        self._carried_at = 0.0

    async def start(self) -> None:
        """Raises RelayUnreachable, or what the relay refuses with."""
        self._socket = await connect(self.address, _PATH, self._on_message)
        self._socket.lost.add_done_callback(lambda lost: self._lost(lost.result()))
        self._socket.begin()
        self.say(r.Greet((r.RELAY_VERSION,)))
        try:
            async with asyncio.timeout(_ANSWER_S):
                self._window = (await self._greeted).stream_window_bytes
        except TimeoutError:
            self.close()
            raise RelayUnreachable(f"the relay at {self.address.url} does not greet") from None

    async def open(self, host: bytes, session: SessionId | None) -> HostStream:
        """A stream to this host; with a session, to the host that has it, which is this one or one
        that the session's key vouches for."""
        by_session = session is not None
        answer = await self._ask(
            lambda number: r.Open(number, b"" if by_session else host, session)
        )
        if not isinstance(answer, r.StreamOpened):
            raise ProtocolViolation(f"the relay answered {answer.tag} instead of opened")
        device = check_device(Device(answer.host, answer.static, answer.binding))
        if device.key != host:
            _check_moved(answer, session)
        stream = HostStream(self, answer.stream, device, answer.epoch, self._window)
        self._streams[stream.number] = stream
        return stream

    async def subscribe(self, session: SessionId, on_frame: Callable[[bytes | None], None]) -> None:
        """What its host sends to all, frame by frame; None: some were left out. The host must have
        admitted us."""
        self._subscribed[session] = on_frame
        try:
            await self._ask(lambda number: r.Subscribe(number, session))
        except HoldfastError:
            self._subscribed.pop(session, None)
            raise

    async def _ask(self, request: Callable[[int], Request]) -> Message:
        self._last_id += 1
        number = self._last_id
        self._answers[number] = asyncio.get_running_loop().create_future()
        self.say(request(number))
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await self._answers[number]
        except TimeoutError:
            raise RelayUnreachable(f"the relay at {self.address.url} does not answer") from None
        finally:
            del self._answers[number]
        if isinstance(answer, r.RelayFailed):
            raise from_code(answer.code, answer.message, answer.hint)
        return answer

    def say(self, message: Message) -> None:
        if self._socket is not None:
            self._socket.send(r.encode(message))

    def carry(self, stream: int, data: bytes) -> None:
        self._carried_at = asyncio.get_running_loop().time()
        self.say(r.StreamData(stream, data))

    def pause(self, paused: bool) -> None:
        """Whether to take in more for now."""
        if self._socket is not None:
            self._socket.pause_reading(paused)

    def forget(self, stream: HostStream) -> None:
        if self._streams.pop(stream.number, None) is not None:
            self.say(r.Close(stream.number))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def close_soon(self) -> None:
        """After the last words of its streams."""
        asyncio.get_running_loop().call_later(_LINGER_S, self.close)

    # -- what the relay says ----------------------------------------------------------------------

    def _on_message(self, data: bytes) -> None:
        try:
            self._take(r.decode(data))
        except HoldfastError as error:
            self._fail(error)

    def _take(self, message: Message) -> None:
        match message:
            case r.StreamData(stream=number, data=data):
                stream = self._streams.get(number)
                if stream is not None:
                    stream.on_data(data)
            case r.Credit(stream=number, size=size):
                stream = self._streams.get(number)
                if stream is not None:
                    stream.may_send(size)
            case r.StreamClosed(stream=number, why=why):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    stream.on_closed(why)
            case r.Broadcast(session=session, data=frame):
                if session in self._subscribed:
                    self._subscribed[session](frame)
            case r.BroadcastGap(session=session) | r.SessionGone(session=session):
                if session in self._subscribed:
                    self._subscribed[session](None)
            case r.Greeted() if not self._greeted.done():
                self._greeted.set_result(message)
            case r.RelayFailed(id=0):
                self._fail(from_code(message.code, message.message, message.hint))
            case Answer(id=number):
                waiting = self._answers.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case r.GoingAway(within_s=within_s):
                self._going_away(within_s)
            case _:
                raise ProtocolViolation(f"a relay does not say {message.tag} to an operator")

    def _going_away(self, within_s: float) -> None:
        """Whoever uses it comes back through another relay, or through this one when it is there
        again, as after any loss; but in time, and when nothing is on its way."""
        self.ends, leaving = True, Leaving(within_s, random.random)
        loop = asyncio.get_running_loop()
        loop.call_later(leaving.operator_s, self._leave, loop.time() + leaving.operator_latest_s)

    def _leave(self, latest: float) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < min(latest, self._carried_at + _QUIET_S):
            loop.call_later(_QUIET_S, self._leave, latest)
        else:
            self.on_leave()

    def _fail(self, error: HoldfastError) -> None:
        if not self._greeted.done():
            self._greeted.set_exception(error)
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(error)
        self.close()

    def _lost(self, why: str) -> None:
        self._fail(RelayUnreachable(why))
        for stream in list(self._streams.values()):
            stream.on_closed(why)
        self._streams.clear()
        self.on_lost(why)


def _check_moved(answer: r.StreamOpened, session: SessionId | None) -> None:
    """Another host than we know, if we know one, has it: right, if the session's own key says
    so."""
    if session is not None and SessionId.of_key(answer.session_key) == session:
        text = r.session_text(session, answer.host, answer.epoch)
        if check(answer.session_key, text, answer.vouched):
            return
    raise BadSignature("the relay led to a host that cannot prove to be the one that was meant")
