"""The target's end of a channel from another host: opened with a ticket, its records in order, its
heartbeats. Whatever does not fit ends it. Loads the cryptography."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable

from holdfast.adapters.signing import SigningKey
from holdfast.host.reach.host_link import LinkEnd, RecordCarrier
from holdfast.host.reach.tickets import GivenTicket
from holdfast.model.errors import HandshakeFailed, HoldfastError
from holdfast.model.limits import HOST_LINK_GREETING_S
from holdfast.wire.channel import HostHandshake
from holdfast.wire.epochs import Incarnation
from holdfast.wire.host_link import ticket_prologue, ticket_psk
from holdfast.wire.input_chain import InputBook
from holdfast.wire.key_agreement import KeyPair, channel_key
from holdfast.wire.record_layer import OpenedRecord, RecordKind
from holdfast.wire.signed_input import SignedInput
from holdfast.wire.stream_opening import HOST_EPOCH, host_channel

log = logging.getLogger(__name__)


class AnsweredChannel:
    """What a LinkEnd needs of a channel."""

    def __init__(
        self,
        ticket: GivenTicket,
        key: SigningKey,
        message: bytes,
        carrier: RecordCarrier,
        link: LinkEnd,
        on_over: Callable[[], None],
    ) -> None:
        """`message`: the first of the handshake. Raises HandshakeFailed."""
        self._carrier, self._link, self._on_over = carrier, link, on_over
        self.on_confirmed: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        incarnation = Incarnation(host_channel(key.public), HOST_EPOCH)
        answering = HostHandshake(
            incarnation,
            channel_key(key.seed),
            KeyPair(os.urandom(32)),
            message,
            psk=ticket_psk(ticket.secret),
            before=ticket_prologue(ticket.id, key.public),
        )
        self.source = answering.caller.device.key
        if not answering.caller.invited or self.source != ticket.source:
            raise HandshakeFailed("the ticket was given to another host")
        said, self._channel = answering.answer(
            InputBook(incarnation), _no_input, self._loop.time(), admit=self._begin
        )
        self._over = False
        self._timer = self._loop.call_later(HOST_LINK_GREETING_S, self.cut)
        carrier.carry(said)

    def _begin(self) -> bool:
        """It has spoken itself, and is not somebody's repetition of what it once said."""
        self._timer.cancel()
        self._watch()
        self.on_confirmed()
        return False  # nothing that comes here is an operator's input

    def receive(self, record: bytes) -> None:
        if self._over:
            return
        try:
            said = self._channel.receive(record, self._loop.time())
            if isinstance(said, OpenedRecord):
                self._link.said(said.body)
        except HoldfastError:
            self.cut()
            raise
        if self._channel.sealed.peer_finished:
            self.cut()

    @property
    def has_room(self) -> bool:
        return self._carrier.has_room

    def send(self, body: bytes) -> None:
        if self._over:
            return
        for record in self._channel.seal(RecordKind.MESSAGE, body, self._loop.time()):
            self._carrier.carry(record)

    def close(self) -> None:
        """After what was said, which the other end is to read."""
        if self._over:
            return
        try:
            for record in self._channel.sealed.finish(self._loop.time()):
                self._carrier.carry(record)
        except HoldfastError:
            pass
        self._end()
        self._loop.call_later(_LINGER_S, self._carrier.close)

    def cut(self) -> None:
        if not self._over:
            self._end()
            self._carrier.close()

    def lost(self) -> None:
        if not self._over:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._timer.cancel()
        self._link.ended()
        self._on_over()

    def _watch(self) -> None:
        """Beats in time, and an end when something was held back, or the channel is too old."""
        if self._over:
            return
        sealed = self._channel.sealed
        try:
            for record in sealed.poll(self._loop.time()):
                self._carrier.carry(record)
        except HoldfastError as error:
            log.info("a link from another host: %s", error.message)
            self.cut()
            return
        if sealed.overdue(self._loop.time()):
            self.cut()
            return
        self._timer = self._loop.call_at(sealed.wake_at(), self._watch)


_LINGER_S = 2.0  # for the other end to read the last words and close


def _no_input(_: SignedInput) -> None:
    raise HandshakeFailed("hosts send no inputs")
