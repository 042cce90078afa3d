"""Moving a session: the client fetches a ticket at the host that it shall come to, and gives it to
the one that it is to leave. The two then settle it between themselves."""

from __future__ import annotations

import os

from holdfast.model.errors import HoldfastError, InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages.host_links import GetTicket, TicketGiven
from holdfast.wire.messages.moving import Move, SessionMoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.reach.machines import Machine


def other_host(name: str) -> str | Machine:
    """By which `Host` reaches it: a machine that this user has joined, or the home directory of
    another host of this machine."""
    from holdfast.sdk.reach import machines

    return machines.destination(name)


def aim_at(name: str) -> bool:
    """From now on this process's commands are for that host. False: it is not known here. Who came
    by a session's id through a relay is led to wherever the session is."""
    if "@" in os.environ.get("HOLDFAST_ON", ""):
        return True
    try:
        other_host(name)
    except HoldfastError:
        return False
    os.environ.pop("HOLDFAST_ON", None)
    os.environ["HOLDFAST_HOME" if name.startswith("/") else "HOLDFAST_ON"] = name
    return True


def move(source: Host, session: str, to: str) -> SessionMoved:
    """It lives there when this returns. Raises what stood in the way; then it goes on here."""
    found = source.show(session, exact=True)
    with Host(other_host(to), client=source.client) as target:
        ticket = target.ask(GetTicket(0, found.id, source.host_key), TicketGiven)
    if ticket.host == source.host_key:
        raise InvalidArgument(f"{found.name} is on {to} already")
    return source.ask(Move(0, found.id, ticket.ticket, to), SessionMoved, once=True)
