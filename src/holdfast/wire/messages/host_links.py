"""Between hosts, for what one brings to another: tickets, and links on the same machine."""

from __future__ import annotations

from holdfast.wire.messages.base import Answer, Message, Request


class GetTicket(Request, tag="get_ticket"):
    """A ticket with which another host may bring this one session here. Needs the right to manage
    this host, or the right `move` for all if config.toml names the other host in `admit_hosts`.
    Answered by TicketGiven."""

    target: str  # whole id of the session
    source: bytes  # public key of the host that may use it


class TicketGiven(Answer, tag="ticket"):
    """It is secret: whoever has it and that host's key may bring the session here."""

    ticket: str  # for the other host; it is good for ten minutes
    name: str  # of this host's machine
    host: bytes  # public key of this host


class OpenLink(Message, tag="open_link"):
    """In place of `hello`, from another host of the same machine: what follows are records of a
    channel that is opened with a ticket (docs/channel.md). The host says `link_opened` first."""


class LinkOpened(Message, tag="link_opened"):
    """The first record may come. No messages of this protocol follow on this connection."""
