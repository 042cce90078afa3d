"""Asking for a session's turn, waiting until it is ours, and waiting no longer."""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument, session_over
from holdfast.sdk.client_core.client_machine import ask, expect
from holdfast.sdk.client_core.retry_policy import RETRIED, Retry
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.sdk.client_core.client_io import ClientIo


async def wait_for_turn(
    io: ClientIo, request: turn_messages.RequestTurn
) -> turn_messages.TurnShown:
    """Ask for it and wait for it. Whoever gives up waiting calls `withdraw`."""
    retry, inbox = Retry(io), None
    while True:
        await io.connect()
        try:
            inbox = await io.watch(request.session)  # first: the answer may be behind an event
            # Asked again after a loss: whoever asks twice keeps its place.
            shown = expect(await io.exchange(request), turn_messages.TurnShown)
            retry = Retry(io)
            while not shown.yours:
                shown = await _next(io, inbox, request.session) or shown
            return shown
        except RETRIED as error:
            await retry.caught(error)
        finally:
            if inbox is not None:
                io.release(inbox)


async def _next(io: ClientIo, inbox: Any, session: str) -> turn_messages.TurnShown | None:
    event = await io.next(inbox)
    if isinstance(event, turn_messages.TurnMessage):
        return turn_messages.TurnShown(0, event.turn, event.yours)
    if isinstance(event, m.EventsDropped):  # perhaps the one that was waited for
        answer = await io.exchange(turn_messages.GetTurn(0, session))
        return expect(answer, turn_messages.TurnShown)
    if isinstance(event, m.StateEvent) and event.ending is not None:
        raise session_over(event.name, event.ending, how="ended before that")
    return None


async def withdraw(io: ClientIo, session: str) -> turn_messages.TurnShown:
    """Wait no longer: a turn that comes to somebody who went away keeps the others waiting. It may
    have come at this very moment."""
    try:
        return await ask(io, turn_messages.WithdrawTurn(0, session), turn_messages.TurnShown)
    except InvalidArgument:
        return await ask(io, turn_messages.GetTurn(0, session), turn_messages.TurnShown)
