"""One operator on another machine: a stream through a relay, the channel in it, and behind that an
ordinary connection to this daemon.

    relay  ── data ──▶  channel: opened, checked  ── frame ──▶  socketpair  ──▶  Operator
    relay  ◀─ data ──   channel: sealed           ◀─ frame ──   socketpair  ◀──  Operator

The operator acts as the actor whose key the channel has proven, so authority, turn, limits and
journal are the same as for everybody on this machine. What changes a session comes signed, over the
session's own channel; what does not fit ends the stream. Whether a device is let in at all is
decided by access/admission.py.

Message 1 can be repeated by a relay, so nothing is done on it but to answer; the operator is
connected when its first record has come.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.dial.frame_pipe import FramePipe
from holdfast.host.clock import now
from holdfast.host.connection.operator_connection import OperatorConnection
from holdfast.host.connection.output_channels import ViewChannel
from holdfast.model.errors import (
    ChannelBroken,
    HandshakeFailed,
    HoldfastError,
    NoSuchSession,
    NotPermitted,
    ProtocolViolation,
)
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import FRAME_MAX_BYTES, QUIET_ACK_S, SNAPSHOT_MAX_BYTES
from holdfast.wire import relay_messages as r
from holdfast.wire import request_classes as requests
from holdfast.wire.channel import HostChannel, HostHandshake
from holdfast.wire.frames import encode
from holdfast.wire.key_agreement import KeyPair
from holdfast.wire.messages import session as m
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.signed_input import SignedInput
from holdfast.wire.stream_opening import Opening, read_opening

if TYPE_CHECKING:
    from holdfast.host.access.admission import Admission
    from holdfast.host.connection.operators import Operators
    from holdfast.host.reach.host_links import ArrivingLink, HostLinkService
    from holdfast.host.reach.relay_presence import AnnouncedSession
    from holdfast.host.reach.uplink import Uplink
    from holdfast.model.actor import Actor

log = logging.getLogger(__name__)

_GREETING_S = 15.0  # from a stream's opening to the first record of its operator
_LINGER_S = 2.0  # for the other end to close a stream on which all is said
_WAITING_MAX_BYTES = 2 * FRAME_MAX_BYTES  # for an operator that does not take its requests


class ReachedSessions(Protocol):
    """The live sessions, and who may see them."""

    @property
    def live(self) -> Mapping[SessionId, AnnouncedSession]: ...

    def may_see(self, actor: Actor, found: AnnouncedSession) -> bool: ...

    def find_live(self, actor: Actor, text: str) -> AnnouncedSession | None: ...


class StreamHost(NamedTuple):
    """What a stream needs of the host behind it."""

    admission: Admission
    sessions: ReachedSessions
    operators: Operators
    links: HostLinkService


class RemoteStream:
    """From the moment a relay tells of it until it is closed."""

    def __init__(self, uplink: Uplink, number: int) -> None:
        self._uplink, self.number = uplink, number
        self._host = uplink.reach.host
        self._loop = asyncio.get_running_loop()
        self._channel: HostChannel | None = None
        self._session: SessionId | None = None  # whose channel it is; None: the host's own
        self._invite = b""
        self._guest: Actor | None = None
        self._pipe: FramePipe | None = None
        self.id = os.urandom(8).hex()  # by which admission and readers' keys know it
        self._operator: OperatorConnection | None = None
        self._link: ArrivingLink | None = None  # it is another host's
        self._shares: tuple[AnnouncedSession, int] | None = None  # what it reads with all others
        self._admitted = False  # whether the relay may send it what goes to all
        self._credit = uplink.window
        self._sealed: deque[bytes] = deque()  # records the relay has no room for yet
        self._ack_timer = False
        # Until the operator has spoken; then for the channel's beats.
        self._timer = self._loop.call_later(_GREETING_S, self._too_late)
        self._finishing = self._over = False

    # -- from the relay -------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        try:
            if self._link is not None:
                self._link.receive(data)
            elif self._channel is None:
                self._open(data)
            else:
                self._on_record(self._channel, data)
        except HoldfastError as error:
            self._uplink.complain(error)
            self.close()
        except Exception:
            log.exception("a remote operator")
            self.close()

    def may_send(self, size: int) -> None:
        """The relay has room for so much more."""
        self._credit += size
        while self._sealed and self._credit >= len(self._sealed[0]) and self._uplink.has_room:
            self._put(self._sealed.popleft())
        if self._link is not None:
            self._link.room()
        self._read_more()

    def gone(self) -> None:
        """The stream is no more. What the operator sent before still reaches the session."""
        if self._over:
            return
        self._over = True
        self._timer.cancel()
        self._unshare()
        if self._link is not None:
            self._link.lost()
        if self._pipe is not None:
            self._pipe.close()  # the other end reads what is left, then the end

    def close(self) -> None:
        if not self._over:  # or the number is another's by now
            self._uplink.close_stream(self.number)
            self.gone()

    # -- the handshake --------------------------------------------------------------------------

    def _open(self, data: bytes) -> None:
        opening, message = read_opening(data)
        self._session, self._invite = opening.session, opening.invite
        reach = self._uplink.reach
        if opening.ticket:
            self._timer.cancel()
            self._link = self._host.links.answer(opening.ticket, message, self)
            return
        book = reach.input_book(opening.session)
        if book is None:
            raise NoSuchSession("the session is not here")
        ephemeral = KeyPair(os.urandom(32))
        psk, before = self._secret(opening)
        try:
            answering = HostHandshake(
                book.incarnation, reach.static, ephemeral, message, psk=psk, before=before
            )
            if answering.caller.invited != bool(opening.invite):
                raise HandshakeFailed("not the handshake that belongs to this opening")
        except HandshakeFailed:
            if opening.invite:
                self._host.admission.guessed(opening.invite, now())
            raise
        said, self._channel = answering.answer(
            book, _judged_later, self._loop.time(), admit=self._begin
        )
        self._send(said)

    def _secret(self, opening: Opening) -> tuple[bytes, bytes]:
        if not opening.invite:
            return b"", b""
        from holdfast.wire.invites import invite_prologue

        psk = self._host.admission.psk(opening.invite, now())
        return psk, invite_prologue(opening.invite, self._uplink.reach.host_key.public)

    # -- records --------------------------------------------------------------------------------

    def _on_record(self, channel: HostChannel, record: bytes) -> None:
        said = channel.receive(record, self._loop.time())
        if channel.sealed.peer_finished:
            self.close()
        elif self._finishing:
            return  # all is said
        elif isinstance(said, SignedInput):
            self._on_request(said.payload, signed=True)
            if not self._ack_timer:
                self._ack_timer = True
                self._loop.call_later(QUIET_ACK_S, self._acknowledge)
        elif isinstance(said, OpenedRecord):
            self._on_request(said.body, signed=False)

    def _begin(self) -> bool:
        """The operator itself has spoken: find out which actor it is. Whether it is let in. A
        refusal goes through the channel; only the device itself may learn why."""
        assert self._channel is not None
        self._timer.cancel()
        self._watch_channel()
        if self._invite:
            return False  # it joins, and nothing else
        caller = self._channel.caller
        try:
            self._guest = self._host.admission.admit(
                self.id, caller.device.key, caller.grant, now()
            )
        except HoldfastError as error:
            self._tell(m.Failed(0, error.code, error.message, error.hint, error.retryable))
            self._finish()
            return False
        ours, theirs = socket.socketpair()
        self._pipe = FramePipe(ours, self._said, self._finish, self._read_more, SNAPSHOT_MAX_BYTES)
        self._operator = OperatorConnection(self._host.operators, theirs, self._guest)
        self._operator.remote, self._operator.connection = self, self.id
        self._host.operators.add(self._operator)
        self.judge()
        self._read_more()
        return True

    def _on_request(self, body: bytes, *, signed: bool) -> None:
        fields = requests.fields_of(body)
        tag = fields["t"]
        if self._invite:
            self._join(fields)
            return
        refusal = self._misplaced(tag, requests.session_named(fields), signed)
        if refusal is None:
            self._pass_on(body)
        elif type(fields.get("id")) is int:
            self._tell(m.Failed(fields["id"], refusal.code, refusal.message, refusal.hint))
            if requests.is_local(tag):  # a claim: what follows was meant for another actor
                self._finish()
        else:
            raise refusal

    def _misplaced(self, tag: str, session: str, signed: bool) -> HoldfastError | None:
        if requests.is_local(tag):
            return NotPermitted("a channel has proven already who this is")
        if requests.must_be_signed(tag) and not signed:
            return ProtocolViolation(f"{tag} must be signed")
        if self._session is None:
            # One that may not act has no channel of its own: the operator says what became of it.
            if requests.goes_by_session(tag) and self._acts(session):
                return ProtocolViolation(f"{tag} goes through the session's own channel")
        elif tag not in ("hello", "detach") and session != self._session:
            return ProtocolViolation("this is the channel of another session")
        return None

    def _acts(self, session: str) -> bool:
        assert self._guest is not None
        try:
            live = self._host.sessions.find_live(self._guest, session)
            return live is not None and not live.is_fenced
        except HoldfastError:
            return False

    def _join(self, fields: dict[str, object]) -> None:
        """A device that came by an invite asks what that is for, or says what it is called and gets
        its grant."""
        assert self._channel is not None
        number, name, tag = fields.get("id"), fields.get("name", ""), fields["t"]
        if tag not in ("join", "see_invite") or type(number) is not int or type(name) is not str:
            raise ProtocolViolation("the stream of an invite is for joining, and nothing else")
        key, admission = self._channel.caller.device.key, self._host.admission
        answer: m.Answer
        try:
            if tag == "join":
                answer = admission.join(number, self._invite, key, name, now())
            else:
                names = {each.spec.id: each.spec.name for each in self._host.sessions.live.values()}
                answer = admission.see(number, self._invite, key, names, now())
        except HoldfastError as error:
            self._tell(m.Failed(number, error.code, error.message, error.hint))
        else:
            self._tell(answer)
        self._finish()

    # -- output for all -------------------------------------------------------------------------

    def is_of(self, actor: ActorId) -> bool:
        return self._guest is not None and self._guest.id == actor

    def judge(self) -> None:
        """An actor that may observe this session is sent what goes to all, for as long as it may.
        Then it has no key at once, and soon no stream: with that ends what the relay sends it."""
        live = self._session and self._host.sessions.live.get(self._session)
        if not live or self._guest is None or self._over or self._finishing:
            return
        observes = self._host.sessions.may_see(self._guest, live)
        if observes and not self._admitted:
            self._uplink.say(r.Admit(self.number, live.spec.id))
        elif self._admitted and not observes:
            self._unshare()
            assert self._operator is not None
            self._loop.call_soon(self._operator.close)  # after what it is being told
            self._loop.call_later(_LINGER_S, self.close)
        self._admitted = observes

    def share(self, live: AnnouncedSession, channel: ViewChannel) -> int:
        """From the offset given on, this channel's output comes by what is sent to all."""
        if live.spec.id != self._session:
            raise NotPermitted("this is the channel of another session")
        if self._shares is not None and self._shares[1] != channel.number:
            self._have_to_itself(self._shares[1])
        fanout = self._uplink.reach.fanout(live)
        fanout.join(self)
        self._shares = (live, channel.number)
        channel.shared_from = max(channel.cursor, fanout.cursor)
        return channel.shared_from

    def _have_to_itself(self, number: int) -> None:
        """Another channel of this operator is read with others now; this one no more."""
        assert self._operator is not None
        channel = self._operator.channels.get(number)
        if isinstance(channel, ViewChannel):
            channel.begin_anew()

    def left(self, channel: int) -> None:
        """This channel of the operator is no more, by either side."""
        if self._shares is not None and self._shares[1] == channel:
            self._unshare()

    def _unshare(self) -> None:
        if self._shares is not None and self._shares[0].fanout is not None:
            self._shares[0].fanout.leave(self)
        self._shares = None

    # -- the operator behind it -------------------------------------------------------------------

    def _pass_on(self, body: bytes) -> None:
        if self._pipe is not None:
            self._pipe.write(body)
            if self._pipe.waiting_bytes > _WAITING_MAX_BYTES:
                raise ChannelBroken("more requests than this host takes at once")

    def _read_more(self) -> None:
        """Read what the operator says, as long as there is room to send it."""
        if self._pipe is not None:
            room = self._credit > 0 and self._uplink.has_room
            self._pipe.read(room and not (self._over or self._finishing or self._sealed))

    def _said(self, body: bytes) -> None:
        self.seal(RecordKind.MESSAGE, body)
        self._read_more()

    def _tell(self, message: m.Message) -> None:
        """Something from here, not from an operator behind it."""
        self.seal(RecordKind.MESSAGE, encode(message)[4:])

    def _acknowledge(self) -> None:
        self._ack_timer = False
        if not (self._over or self._finishing) and self._channel is not None:
            try:
                for record in self._channel.accepted(self._loop.time()):
                    self._send(record)
            except HoldfastError:
                self.close()

    def seal(self, kind: RecordKind, body: bytes) -> None:
        if self._over or self._finishing or self._channel is None:
            return
        try:
            for record in self._channel.seal(kind, body, self._loop.time()):
                self._send(record)
        except HoldfastError as error:
            self._uplink.complain(error)
            self.close()

    @property
    def has_room(self) -> bool:
        return not self._sealed and self._uplink.has_room

    def carry(self, record: bytes) -> None:
        """For a link of another host."""
        if not self._over:
            self._send(record)

    def _send(self, record: bytes) -> None:
        """In the order in which they were sealed, as the relay has room."""
        if self._sealed or self._credit < len(record):
            self._sealed.append(record)
        else:
            self._put(record)

    def _put(self, record: bytes) -> None:
        self._credit -= len(record)
        self._uplink.say(r.StreamData(self.number, record))

    def _finish(self) -> None:
        """Nothing more comes from here. It is said inside the channel; the other end then closes
        the stream, or in a while we do."""
        if self._channel is None or self._over or self._finishing:
            return
        self._finishing = True
        try:
            for record in self._channel.sealed.finish(self._loop.time()):
                self._send(record)
        except HoldfastError:
            self.close()
        else:
            self._loop.call_later(_LINGER_S, self.close)

    # -- time -----------------------------------------------------------------------------------

    def _too_late(self) -> None:
        """Somebody opened it and did not say who it is."""
        self._uplink.complain(HandshakeFailed("the operator did not say in time who it is"))
        self.close()

    def _watch_channel(self) -> None:
        """Beats in time, and an end when something was held back, or the channel is too old."""
        if self._over or self._channel is None:
            return
        sealed = self._channel.sealed
        try:
            beats = sealed.poll(self._loop.time())
        except HoldfastError as error:
            self._uplink.complain(error)
            self.close()
            return
        for record in beats:
            self._send(record)
        self.judge()  # time alone can end what it may do
        if sealed.overdue(self._loop.time()):
            self.close()
            return
        if beats and self._shares is not None and self._shares[0].fanout is not None:
            self._shares[0].fanout.mark(self)
        self._timer = self._loop.call_at(sealed.wake_at(), self._watch_channel)


def _judged_later(_: SignedInput) -> None:
    """What an input may do is judged by the session, as for everybody."""
