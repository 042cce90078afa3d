"""Tickets that this host gave to others: who may bring which session here.

A ticket is for one session and one source. It has to be used soon; from then on that source may
dial again with it, because links break and daemons die, until what it was for is settled.
"""

from __future__ import annotations

import os

from holdfast.host import json_file
from holdfast.model.errors import StorageFailed, TicketInvalid, why_not
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.limits import HOST_TICKET_KEPT_S, HOST_TICKET_S, HOST_TICKETS_MAX
from holdfast.model.record import Record
from holdfast.wire.host_link import SECRET_BYTES
from holdfast.wire.stream_opening import TICKET_ID_BYTES

_FILE = "tickets.json"
_WITHOUT = "sessions that were on their way here cannot go on"


class GivenTicket(Record):
    """One of them."""

    id: bytes
    secret: bytes
    session: str
    source: bytes  # the host that may use it
    actor: str  # who fetched it
    given_at: float
    used: bool = False

    @property
    def expires_at(self) -> float:
        return self.given_at + (HOST_TICKET_KEPT_S if self.used else HOST_TICKET_S)


class _Given(Record):
    tickets: tuple[GivenTicket, ...] = ()


class TicketBook:
    """Kept in one file of the host's state."""

    def __init__(self, state: str) -> None:
        self._path = f"{state}/{_FILE}"
        found = json_file.read(self._path, _Given, without=_WITHOUT) or _Given()
        self._tickets = {each.id: each for each in found.tickets}

    def give(self, session: SessionId, source: bytes, actor: ActorId, now: float) -> GivenTicket:
        """On disk when it returns."""
        ticket = GivenTicket(
            os.urandom(TICKET_ID_BYTES), os.urandom(SECRET_BYTES), session, source, actor, now
        )
        kept = [each for each in self._tickets.values() if each.expires_at > now]
        self._keep([*kept[-HOST_TICKETS_MAX + 1 :], ticket])
        return ticket

    def find(self, id: bytes) -> GivenTicket | None:
        return self._tickets.get(id)

    def use(self, ticket: GivenTicket, source: bytes, session: str, now: float) -> None:
        """Raises TicketInvalid."""
        if source != ticket.source:
            raise TicketInvalid("this ticket was given to another host")
        if session != ticket.session:
            raise TicketInvalid("this ticket is for another session")
        if now >= ticket.expires_at:
            raise TicketInvalid("the ticket has expired", hint="ask again: a new one is fetched")
        if not ticket.used:
            others = [each for each in self._tickets.values() if each.id != ticket.id]
            self._keep([*others, ticket.replace(used=True)])

    def settled(self, session: SessionId) -> None:
        """What tickets for this session were used for is over."""
        left = [each for each in self._tickets.values() if each.session != session]
        if len(left) < len(self._tickets):
            self._keep(left)

    def _keep(self, tickets: list[GivenTicket]) -> None:
        try:
            json_file.write(self._path, _Given(tuple(tickets)))
        except OSError as error:
            raise StorageFailed(f"cannot write {self._path}: {why_not(error)}") from error
        self._tickets = {each.id: each for each in tickets}
