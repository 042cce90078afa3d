"""What a client is told of an input whose connection was lost: taken, or unknown; never refused
when it may have been typed."""

from __future__ import annotations

import pytest

from holdfast.model.errors import (
    ActorRevoked,
    HandshakeFailed,
    HoldfastError,
    HostLost,
    InputUnknown,
    RateLimited,
    RelayUnreachable,
    TurnHeld,
)
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m


class _Connection:
    """Answers in turn with these."""

    def __init__(self, outcomes: list[HoldfastError | None]) -> None:
        self._outcomes = outcomes
        self.asked: list[m.Request] = []

    def next_id(self) -> int:
        return len(self.asked) + 1

    def ask(self, request: m.Request) -> m.Answer:
        self.asked.append(request)
        outcome = self._outcomes.pop(0)
        if outcome is not None:
            raise outcome
        return m.Accepted(request.id, 1, 0)


class _Client(Host):
    """Without a host; `back` is what stands in the way of coming back."""

    def __init__(self, *outcomes: HoldfastError | None, back: HoldfastError | None = None) -> None:
        self._seqs = {}
        self.connection = _Connection(list(outcomes))  # type: ignore[assignment]
        self._back = back
        self.came_back = 0

    def reconnect(self, deadline_s: float = 0.0) -> None:
        self.came_back += 1
        if self._back is not None:
            raise self._back


def fate(client: _Client) -> str:
    try:
        client.send("s", "x")
        return "accepted"
    except HoldfastError as error:
        return error.code


LOST, AWAY = HostLost("lost"), RelayUnreachable("no way")


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    ("client", "told"),
    [
        (_Client(None), "accepted"),
        (_Client(LOST, None), "accepted"),
        (_Client(TurnHeld("held")), "turn_held"),
        (_Client(AWAY), "relay_unreachable"),  # it was never sent
        (_Client(LOST, TurnHeld("held")), "turn_held"),  # the host knows that it has not taken it
        (_Client(LOST, AWAY), "input_unknown"),
        (_Client(LOST, LOST), "input_unknown"),
        (_Client(LOST, HandshakeFailed("no")), "input_unknown"),
        (_Client(LOST, back=AWAY), "input_unknown"),
        (_Client(LOST, back=ActorRevoked("out")), "input_unknown"),
        (_Client(LOST, back=RateLimited("slow")), "input_unknown"),
    ],
)
def test_an_input_that_may_have_been_typed_is_never_called_refused(
    client: _Client, told: str
) -> None:
    assert fate(client) == told


@pytest.mark.requirement("M6")
def test_it_is_sent_again_under_the_same_number() -> None:
    client = _Client(LOST, None)
    assert fate(client) == "accepted"
    first, second = client.connection.asked  # type: ignore[attr-defined]
    assert first.seq == second.seq == 1 and client.came_back == 1


def test_unknown_names_what_to_do() -> None:
    with pytest.raises(InputUnknown) as caught:
        _Client(LOST, LOST).send("s", "x")
    assert "look at the screen" in caught.value.hint
