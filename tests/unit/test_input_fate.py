"""What a client is told of an input whose connection was lost: taken, or unknown; never refused
when it may have been typed. The client's own logic, its connection and clock played by a script."""

from __future__ import annotations

import pytest

from holdfast.model.errors import (
    ActorRevoked,
    HandshakeFailed,
    HoldfastError,
    HostLost,
    InputUnknown,
    NotPermitted,
    RateLimited,
    RelayUnreachable,
    SessionEnded,
    SessionLost,
    StorageFailed,
    TurnHeld,
)
from holdfast.sdk.client_core.client_machine import finish, offer
from holdfast.sdk.client_core.retry_policy import INPUT_ATTEMPTS
from holdfast.wire.messages import session as m
from unit.scripted_io import SESSION, ScriptedIo

LOST, AWAY = HostLost("lost"), RelayUnreachable("no way")
TAKEN = m.Accepted(0, 1, 0)


def fate(io: ScriptedIo) -> str:
    try:
        finish(offer(io, m.Submit(0, SESSION, 1, "x")))
        return "accepted"
    except HoldfastError as error:
        return error.code


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    ("io", "told"),
    [
        (ScriptedIo(TAKEN), "accepted"),
        (ScriptedIo(LOST, TAKEN), "accepted"),
        (ScriptedIo(LOST, TAKEN.replace(repeated=True)), "accepted"),
        (ScriptedIo(TAKEN.replace(repeated=True)), "input_unknown"),  # another used its number
        (ScriptedIo(TurnHeld("held")), "turn_held"),
        (ScriptedIo(AWAY), "relay_unreachable"),  # it was never sent
        (ScriptedIo(LOST, TurnHeld("held")), "turn_held"),  # the host knows it did not take it
        (ScriptedIo(LOST, *[AWAY] * 3), "input_unknown"),
        (ScriptedIo(LOST, AWAY, TAKEN), "accepted"),
        (ScriptedIo(*[LOST] * INPUT_ATTEMPTS), "input_unknown"),
        (ScriptedIo(LOST, *[HandshakeFailed("no")] * 3), "input_unknown"),
        (ScriptedIo(LOST, back=AWAY), "input_unknown"),
        (ScriptedIo(LOST, back=ActorRevoked("out")), "input_unknown"),
        (ScriptedIo(LOST, back=RateLimited("slow")), "input_unknown"),
        (ScriptedIo(SessionEnded("over")), "session_ended"),  # before anything was sent
        (ScriptedIo(LOST, SessionEnded("over")), "input_unknown"),  # it may be what ended it
        (ScriptedIo(LOST, SessionLost("gone")), "input_unknown"),
        (ScriptedIo(LOST, NotPermitted("no more")), "input_unknown"),
        (ScriptedIo(LOST, StorageFailed("full")), "input_unknown"),
        (ScriptedIo(back=AWAY, connected=False), "relay_unreachable"),  # it was never sent
    ],
)
def test_an_input_that_may_have_been_typed_is_never_called_refused(
    io: ScriptedIo, told: str
) -> None:
    assert fate(io) == told


@pytest.mark.requirement("M6")
def test_it_is_sent_again_under_the_same_number() -> None:
    io = ScriptedIo(LOST, TAKEN)
    assert fate(io) == "accepted"
    first, second = io.asked
    assert isinstance(first, m.Submit) and isinstance(second, m.Submit)
    assert first.seq == second.seq == 1 and io.came_back == 1


def test_unknown_says_also_what_the_host_answered_since() -> None:
    with pytest.raises(InputUnknown, match="now the session has ended"):
        over = SessionEnded("the session has ended: exit 0")
        finish(offer(ScriptedIo(LOST, over), m.Submit(0, SESSION, 1, "exit")))


def test_unknown_names_what_to_do() -> None:
    with pytest.raises(InputUnknown) as caught:
        finish(offer(ScriptedIo(*[LOST] * INPUT_ATTEMPTS), m.Submit(0, SESSION, 1, "x")))
    assert "look at the screen" in caught.value.hint
