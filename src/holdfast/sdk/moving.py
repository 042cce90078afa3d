"""Moving a session: the client fetches a ticket at the host that it shall come to, and gives it to
the one that it is to leave. The two then settle it between themselves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from holdfast.model.errors import (
    HoldfastError,
    HostDown,
    InvalidArgument,
    NoSuchMachine,
    SessionNotMoved,
)
from holdfast.model.host_requirement import HostRequirement
from holdfast.model.movability import MoveTarget, MoveVerdict, NeededFile
from holdfast.sdk.client import Host
from holdfast.wire.messages.host_links import GetTicket, TicketGiven
from holdfast.wire.messages.moving import Move, SessionMoved
from holdfast.wire.messages.preflight import CanMove, CanMoveShown, CanTake, CanTakeShown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.reach.machines import Machine


def other_host(name: str) -> str | Machine:
    """By which `Host` reaches it: a machine that this user has joined, or the home directory of
    another host of this machine."""
    from holdfast.sdk.reach import machines

    return machines.destination(name)


def check_known(name: str) -> None:
    """Raises NoSuchMachine for a name that leads nowhere, before anything is done about it."""
    other_host(name)
    if name.startswith("/") and not os.path.exists(name):
        raise NoSuchMachine(
            f"there is no host's home or socket at {name}", hint="`hold machines` lists machines"
        )


def aim_at(name: str) -> bool:
    """From now on this process's commands are for that host. False: it is not known here. Who came
    by a session's id through a relay is led to wherever the session is. A path is one of the
    machine that the session was on, so it leads nowhere from another one."""
    on = os.environ.get("HOLDFAST_ON", "")
    if "@" in on:
        return True
    if name.startswith("/") and (on or not os.path.isdir(name)):
        return False
    try:
        other_host(name)
    except HoldfastError:
        return False
    os.environ.pop("HOLDFAST_ON", None)
    os.environ["HOLDFAST_HOME" if name.startswith("/") else "HOLDFAST_ON"] = name
    return True


@contextlib.contextmanager
def _there(name: str, client: str) -> Iterator[Host]:
    """Another host. Raises HostDown with its name: it is not the one that commands here go to."""
    try:
        host = Host(other_host(name), client=client)
    except HostDown as error:
        raise HostDown(
            f"no host is running at {name}", hint="start it there: `hold up -d`"
        ) from error
    with host:
        yield host


def fetch_ticket(source: Host, session: str, name: str) -> TicketGiven:
    """With which the host of this session may bring it to the other one."""
    with _there(name, source.client) as there:
        return there.ask(GetTicket(0, session, source.host_key), TicketGiven)


def ask_target(name: str, needs: tuple[NeededFile, ...], client: str) -> MoveTarget:
    """What another host says of itself, and which of these files it lacks."""
    with _there(name, client) as there:
        return there.ask(CanTake(0, needs), CanTakeShown).target.named(name)


def choose(
    source: Host, session: str, hosts: Sequence[str], require: Sequence[HostRequirement]
) -> str:
    """Of the hosts that could take the session and are what is required, the one with the most free
    memory. Raises SessionNotMoved, with what each of them lacks."""
    found = source.ask(CanMove(0, session, files=True), CanMoveShown).movability
    fit: dict[str, int] = {}
    reasons = []
    for name in hosts:
        try:
            target = ask_target(name, found.needs, source.client)
            judged = source.ask(CanMove(0, session, target=target), CanMoveShown).movability
        except HoldfastError as error:
            reasons.append(f"{name}: {error.message}")
            continue
        lacks = [lack for each in require if (lack := each.unmet(target))]
        if not judged.movable:
            lacks += [each.what for each in judged.findings if each.verdict is MoveVerdict.BLOCKS]
            lacks = lacks or ["the session cannot be moved now"]
        if lacks:
            reasons.append(f"{name}: {', '.join(lacks)}")
        else:
            fit[name] = target.memory_free
    if not fit:
        raise SessionNotMoved(
            f"no host can take it: {'; '.join(reasons) or 'you have joined none'}",
            hint="name one, or `hold join` another; `hold can-move NAME --to HOST` says more",
        )
    return max(fit, key=lambda name: fit[name])


def move(
    source: Host, session: str, to: str = "", require: Sequence[HostRequirement] = ()
) -> SessionMoved:
    """It lives there when this returns. Raises what stood in the way; then it goes on here. `to`:
    "" chooses among the machines that this user has joined."""
    found = source.show(session, exact=True)
    if not to or require:
        to = choose(source, found.id, (to,) if to else _joined(source), require)
    ticket = fetch_ticket(source, found.id, to)
    if ticket.host == source.host_key:
        raise InvalidArgument(f"{found.name} is on {to} already")
    return source.ask(Move(0, found.id, ticket.ticket, to), SessionMoved, once=True)


def _joined(source: Host) -> tuple[str, ...]:
    """Without the one that it is on."""
    from holdfast.sdk.reach import machines

    return tuple(each.name for each in machines.machines() if each.key != source.host_key)
