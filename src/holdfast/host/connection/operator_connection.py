"""One connection: an operator, its requests, its channels.

Output is pulled from the channels when the socket takes it; answers and events wait in queues with
named limits. A connection that breaks the protocol or its limits gets the reason and is closed;
nobody else notices.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Protocol

from holdfast.host.connection.output_channels import OutputChannel
from holdfast.model.actor import Actor
from holdfast.model.errors import HoldfastError, ProtocolViolation, VersionMismatch, ending_of
from holdfast.model.ids import GATE_OPERATOR, HOST_OPERATOR, ActorId, OperatorId
from holdfast.model.inside import Inside
from holdfast.model.limits import (
    ANSWERS_MAX_BYTES,
    EVENT_BACKLOG,
    GREETING_S,
    QUIET_ACK_S,
    REQUESTS_IN_FLIGHT,
)
from holdfast.wire.frames import Decoder, encode
from holdfast.wire.messages import session as m
from holdfast.wire.messages.access import Claim
from holdfast.wire.messages.forward import Carried
from holdfast.wire.messages.host_links import OpenLink

if TYPE_CHECKING:
    from holdfast.host.connection.request_table import Reply
    from holdfast.host.reach.remote_stream import RemoteStream

log = logging.getLogger(__name__)

_FRAMES_TOGETHER = 16
_CHALLENGE_BYTES = 32
_RECEIVE_BYTES = 16 << 10  # a key needs far less, and a paste comes again
_TURN_S = 0.005  # for one operator's requests, then other connections get their turn
_PIECES_PER_WAKE = 8  # frames sent before other connections get their turn


class UsedSession(Protocol):
    """A session that learns when a connection that had to do with it ends."""

    def connection_closed(self, operator: OperatorConnection) -> None: ...


class ConnectionHost(Protocol):
    """What a connection needs of the host (operators.py)."""

    def local_actor(self, uid: int, inside: Inside | None) -> Actor: ...

    def welcome(self, operator: OperatorConnection) -> m.Welcome: ...

    def answer(self, operator: OperatorConnection, request: m.Request) -> Reply: ...

    def open_link(self, sock: socket.socket) -> None: ...

    def carry(self, operator: OperatorConnection, message: Carried) -> None: ...

    def close_channel(self, operator: OperatorConnection, channel: OutputChannel) -> None: ...

    def closed(self, operator: OperatorConnection) -> None: ...


class OperatorConnection:
    """An actor's client, attached to this host over one socket."""

    def __init__(
        self,
        host: ConnectionHost,
        sock: socket.socket,
        guest: Actor | None = None,
        inside: Inside | None = None,
    ) -> None:
        """`guest`: the actor that a channel through a relay has proven (reach.remote_stream).
        `inside`: the session that the peer's process runs in."""
        self._host = host
        self.sock = sock
        sock.setblocking(False)
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        _, peer_uid, _ = struct.unpack("3i", credentials)
        self.uid = peer_uid if guest is None else guest.uid
        self._guest = guest
        self.inside = inside
        # Against whose quota it counts, and whether it may use the places kept for the host's own:
        # a program of theirs inside a session may not, an agent there would keep them from `halt`.
        self.user = f"uid {peer_uid}" if guest is None else f"actor {guest.id}"
        self.is_trusted = guest is None and peer_uid in (0, os.getuid())
        if self.is_trusted and inside is not None:
            self.user, self.is_trusted = f"session {inside.session}", False
        self.remote: RemoteStream | None = None  # the stream it came through
        self.id: OperatorId | None = None  # until its Hello
        self.identity: OperatorId  # from then on: under which its inputs are counted
        self.claimed_id: OperatorId | None = None  # as its Hello said
        # Of its unix user, by the kernel; or the one behind it, from inside; or proven by a channel
        self.local_actor: Actor
        self.actor: Actor  # as whom it acts: the same, until it claims another
        self.challenge = os.urandom(_CHALLENGE_BYTES)
        self.connection = self.challenge.hex()  # by which admission knows what it presents
        self.client = ""
        self.capabilities = frozenset[str]()
        self.waits_for: list[str] = []  # ids of sessions that a request of its works on; "" is all
        self.channels: dict[int, OutputChannel] = {}
        self.watches: set[str] = set()  # session ids; "" is all
        self.sessions_used: set[UsedSession] = set()
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder()
        self._said: deque[m.Message] = deque()  # and not taken yet
        self._requests: set[asyncio.Task[None]] = set()
        self._answers: deque[bytes] = deque()
        self._events: deque[bytes] = deque()
        self._dropped = 0
        self._answers_bytes = 0
        self._quiet: tuple[int, int, int] | None = None  # the latest quiet input not yet answered
        self._quiet_timer = False
        self._rest: list[bytes | memoryview] = []  # of a frame partly sent
        self._awaiting_room = False
        self._reading = False
        self._closing = False
        self._acted = False
        self._broken = False  # it is about to be closed
        self.closed = False
        self._greeting = self._loop.call_later(GREETING_S, self._no_greeting)
        self._read_more(True)

    # -- in -----------------------------------------------------------------------------------

    def _read_more(self, wanted: bool) -> None:
        if wanted and not self._reading and not self.closed:
            self._loop.add_reader(self.sock, self._on_readable)
        elif not wanted and self._reading:
            self._loop.remove_reader(self.sock)
        self._reading = wanted

    def _on_readable(self) -> None:
        try:
            data = self.sock.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        else:
            self._take(data)

    def _take(self, data: bytes = b"") -> None:
        """What was said, in order; after a while others come first, and the rest later."""
        said, began = self._said, 0.0
        try:
            said += self._decoder.feed(data)
            while said and not (self.closed or self._closing):
                self._on_message(said.popleft())
                if said:
                    began = began or self._loop.time()
                    if self._loop.time() > began + _TURN_S:
                        self._read_more(False)
                        self._loop.call_soon(self._take)
                        return
        except ProtocolViolation as error:
            self.refuse(error)
        except Exception:
            # Ours, not the client's; it comes back and learns what was taken.
            log.exception("operator %s", self.id)
            self.refuse(HoldfastError("the host failed; its log says why"))
        said.clear()
        self._read_if_free()

    def _on_message(self, message: m.Message) -> None:
        if isinstance(message, m.Request):
            if self.id is None:
                raise ProtocolViolation("the first message must be hello")
            self._on_request(message)
            self._acted = True
        elif isinstance(message, m.Hello):
            self._on_hello(message)
        elif isinstance(message, OpenLink) and self.id is None and self.remote is None:
            self._host.open_link(socket.socket(fileno=os.dup(self.sock.fileno())))
            self._leave()
        elif isinstance(message, Carried) and self.id is not None:
            self._host.carry(self, message)
        else:
            raise ProtocolViolation(f"an operator does not send {message.tag}")

    def _no_greeting(self) -> None:
        self.refuse(ProtocolViolation(f"no hello within {GREETING_S:g} s"))

    def _on_hello(self, hello: m.Hello) -> None:
        if self.id is not None:
            raise ProtocolViolation("hello was said already")
        if m.PROTOCOL_VERSION not in hello.versions:
            self.refuse(
                VersionMismatch(
                    f"this host speaks protocol version {m.PROTOCOL_VERSION} only",
                    hint="`hold daemon restart` after an upgrade brings both to one version",
                )
            )
            return
        if hello.operator in (HOST_OPERATOR, GATE_OPERATOR):
            raise ProtocolViolation("that operator id is the layer's own")
        self._greeting.cancel()
        self.client = hello.client[:64]
        self.capabilities = frozenset(hello.capabilities)
        self.claimed_id = hello.operator
        try:
            self.local_actor = self._guest or self._host.local_actor(self.uid, self.inside)
        except HoldfastError as error:
            self.refuse(error)
            return
        if self.inside is not None and self.uid == 0:
            # By sudo, say: root's connection has no more than the actor behind it.
            self.uid = self.local_actor.uid
        self.act_as(self.local_actor)
        self.answer(self._host.welcome(self))

    @property
    def has_greeted(self) -> bool:
        return self.id is not None

    def acts_as(self, actor: ActorId) -> bool:
        """Before its greeting a connection acts as nobody."""
        return self.id is not None and self.actor.id == actor

    def act_as(self, actor: Actor) -> None:
        """This connection acts as this actor. Its inputs are counted under a name made of both, so
        that no actor can use up another's numbers."""
        if self.channels or self._acted:
            raise ProtocolViolation("an operator says who it is before it does anything")
        assert self.claimed_id is not None
        self.actor = actor
        self.id = self.identity = self.identity_as(actor.id)

    def identity_as(self, actor: str) -> OperatorId:
        """What it would be if it acted as this actor."""
        made_of = f"{actor}/{self.claimed_id}".encode()
        return OperatorId(hashlib.sha256(made_of).hexdigest()[:32])

    def _on_request(self, request: m.Request) -> None:
        """Most requests are answered on the spot; those that wait run as tasks, so that one slow
        answer holds up nothing else of this operator."""
        try:
            answer = self._host.answer(self, request)
        except HoldfastError as error:
            self._fail_request(request, error)
            return
        except Exception:
            log.exception("request %s", request.tag)
            self._fail_request(request, HoldfastError("the host failed; its log says why"))
            return
        if isinstance(answer, m.Answer):
            self.answer(answer)
        elif answer is not None:
            task = self._loop.create_task(self._finish(request, answer))
            self._requests.add(task)
            task.add_done_callback(self._request_done)
            if len(self._requests) >= REQUESTS_IN_FLIGHT:
                self._read_more(False)

    def _fail_request(self, request: m.Request, error: HoldfastError) -> None:
        """What was sent behind a claim was meant for the actor claimed. After a refusal it would be
        done as another, so nothing more is taken."""
        if isinstance(request, Claim):
            self.refuse(error, request.id)
        else:
            self.fail(request.id, error)

    async def _finish(self, request: m.Request, answer: Awaitable[m.Answer | None]) -> None:
        try:
            if (answered := await answer) is not None:
                self.answer(answered)
        except HoldfastError as error:
            self.fail(request.id, error)
        except Exception:
            log.exception("request %s", request.tag)
            self.fail(request.id, HoldfastError("the host failed; its log says why"))

    def _request_done(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        self._read_if_free()

    def _read_if_free(self) -> None:
        """Read on, unless this operator has enough on its hands."""
        busy = self._said or len(self._requests) >= REQUESTS_IN_FLIGHT
        if not (self._reading or self.closed or self._closing or busy):
            self._read_more(self._answers_bytes <= ANSWERS_MAX_BYTES)

    # -- out ----------------------------------------------------------------------------------

    def answer(self, message: m.Message) -> None:
        self.queue(message)
        self.pump()

    def queue(self, message: m.Message) -> None:
        """An answer that goes out with the next send. An operator that asks and does not read is
        not asked for more until it does."""
        frame = encode(message)
        self._answers.append(frame)
        self._answers_bytes += len(frame)
        if self._answers_bytes > ANSWERS_MAX_BYTES:
            self._read_more(False)

    def ack_later(self, request: int, seq: int, offset: int) -> None:
        """A quiet input is taken: it is answered soon, together with others."""
        self._quiet = (request, seq, offset)
        if not self._quiet_timer:
            self._quiet_timer = True
            self._loop.call_later(QUIET_ACK_S, self._acknowledge)

    def _acknowledge(self) -> None:
        self._quiet_timer = False
        if self._quiet is not None and not self.closed:
            quiet, self._quiet = self._quiet, None
            self.answer(m.Accepted(*quiet))

    def fail(self, request: int, error: HoldfastError) -> None:
        why = error.code, error.message, error.hint, error.retryable, ending_of(error)
        self.answer(m.Failed(request, *why))

    def event(self, message: m.Message) -> None:
        """Send something unasked, if the client knows such a message. The queue never grows past
        its limit: the oldest event is dropped, and EventsDropped says how many."""
        if self.closed or (message.capability and message.capability not in self.capabilities):
            return
        if len(self._events) >= EVENT_BACKLOG:
            self._events.popleft()
            self._dropped += 1
        self._events.append(encode(message))
        self.pump()

    @contextlib.contextmanager
    def waiting_for(self, session: str) -> Iterator[None]:
        """While a request of its works on this session, it hears how far that is."""
        self.waits_for.append(session)
        try:
            yield
        finally:
            self.waits_for.remove(session)

    def pump(self) -> None:
        """Send what there is, as far as the socket takes it."""
        if self.closed or self._broken or self._awaiting_room:
            return
        try:
            for _ in range(_PIECES_PER_WAKE):
                piece = self._rest or self._next_piece()
                if not piece:
                    break
                self._send(piece)
            else:
                self._await_room()  # more to send, but others' turn first
        except BlockingIOError:
            self._await_room()
        except OSError:
            self._close_soon()
            return
        if self._closing and not (self._rest or self._answers):
            self._close_soon()

    def _next_piece(self) -> list[bytes | memoryview] | None:
        if self._answers:
            together = list(self._answers)[:_FRAMES_TOGETHER]
            for _ in together:
                self._answers_bytes -= len(self._answers.popleft())
            self._read_if_free()
            # Whatever a channel has goes along in the same send.
            return [*together, *(self._next_output() or ())]
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            return [encode(m.EventsDropped(dropped))]
        if self._events:
            return [self._events.popleft()]
        return self._next_output()

    def _next_output(self) -> list[bytes | memoryview] | None:
        for channel in tuple(self.channels.values()):
            piece = channel.next_piece()
            if piece is None:
                if channel.finished():
                    self._host.close_channel(self, channel)
                continue
            if len(self.channels) > 1:
                self.channels[channel.number] = self.channels.pop(channel.number)  # fair turns
            return piece
        return None

    def _send(self, piece: list[bytes | memoryview]) -> None:
        # Kept until the socket has taken it: a refusal must not lose the frame. Ring memory may
        # change under a view, so what is kept is a copy.
        self._rest = piece
        try:
            sent = self.sock.sendmsg(piece)
        except BlockingIOError:
            self._rest = [bytes(part) for part in piece]
            raise
        total = 0
        for part in piece:
            total += len(part)
        self._rest = [] if sent == total else [b"".join(piece)[sent:]]

    def _await_room(self) -> None:
        if not self._awaiting_room:
            self._awaiting_room = True
            self._loop.add_writer(self.sock, self._on_writable)

    def _on_writable(self) -> None:
        self._loop.remove_writer(self.sock)
        self._awaiting_room = False
        self.pump()

    # -- the end ------------------------------------------------------------------------------

    def refuse(self, error: HoldfastError, request: int = 0) -> None:
        """Say why, then close. Nothing more is read."""
        self._read_more(False)
        self._closing = True
        self.fail(request, error)

    def _close_soon(self) -> None:
        """Not now: whoever told us something may be in the middle of what it does, and our leaving
        would come between (a turn given up before the input it was taken for)."""
        if not self._broken:
            self._broken = True
            self._loop.call_soon(self.close)

    def _leave(self) -> None:
        """Its socket is another's, which has a copy of it: nothing more is read or said here."""
        self._read_more(False)
        self._closing = True
        self._close_soon()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._greeting.cancel()
        self._read_more(False)
        self._loop.remove_writer(self.sock)
        for task in self._requests:
            task.cancel()
        for channel in list(self.channels.values()):
            self._host.close_channel(self, channel)
        self._host.closed(self)
        with contextlib.suppress(OSError):
            self.sock.close()
