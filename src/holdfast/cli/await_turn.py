"""Until the turn is ours, told by the host's events; bounded."""

from __future__ import annotations

import time

from holdfast.cli.resuming import come_back
from holdfast.model.errors import HostLost, InvalidArgument, SessionEnded, TimedOut
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client import Host


def await_turn(
    host: Host, request: turn_messages.RequestTurn, patience_s: float
) -> turn_messages.TurnShown:
    """Ask for the turn and wait for it. Raises TimedOut when it did not come; then it is not
    waited for any more: a turn that comes to somebody who went away keeps the others waiting."""
    deadline = time.monotonic() + patience_s
    info = host.show(request.session)
    request = request.replace(session=info.id)  # the name may be another session's later
    while True:
        try:
            # The end of the session is an event of its own.
            host.watch(info.id)
            shown = host.ask(request, turn_messages.TurnShown)
            return shown if shown.yours else _awaited(host, info.name, deadline)
        except HostLost:
            come_back(host)  # and ask again: one who asks twice keeps its place
        except (TimedOut, KeyboardInterrupt) as error:
            shown = _given_up(host, request.session)
            if shown.yours:
                return shown
            if isinstance(error, KeyboardInterrupt):
                raise
            raise TimedOut(
                f"the turn of {info.name} did not come within {patience_s:g} s; "
                f"{shown.turn.holder_name or 'nobody'} holds it",
                hint=f"`hold seize {info.name}` takes it, if you may",
            ) from None


def _awaited(host: Host, name: str, deadline: float) -> turn_messages.TurnShown:
    while True:
        event = host.connection.receive(max(0.0, deadline - time.monotonic()))
        if isinstance(event, turn_messages.TurnMessage) and event.yours:
            return turn_messages.TurnShown(0, event.turn, yours=True)
        if isinstance(event, m.StateEvent) and event.ending is not None:
            raise SessionEnded(f"{name} ended before that: {event.ending}")


def _given_up(host: Host, session: str) -> turn_messages.TurnShown:
    """Wait no longer; it may have come at this very moment."""
    try:
        return host.ask(turn_messages.WithdrawTurn(0, session), turn_messages.TurnShown)
    except InvalidArgument:
        return host.ask(turn_messages.GetTurn(0, session), turn_messages.TurnShown)
