"""When a refused action is tried again."""

from __future__ import annotations

import pytest

from holdfast.model.action import ActionRetry
from holdfast.model.errors import (
    HoldfastError,
    InputUnknown,
    InvalidArgument,
    NotPermitted,
    SessionBusy,
    SessionHalted,
    TextAtPrompt,
    TurnHeld,
    TurnLost,
)
from holdfast.model.limits import ACTION_PAUSE_MAX_S
from holdfast.sdk.client_core.action_retry import Attempts


def test_it_is_tried_as_often_as_was_said_with_growing_pauses() -> None:
    attempts = Attempts(ActionRetry(3, 0.5))
    assert [attempts.after(TurnHeld("no"), taken=False) for _ in range(3)] == [0.5, 1.0, 2.0]
    assert attempts.codes == ["turn_held"] * 3
    with pytest.raises(TurnHeld):
        attempts.after(TurnHeld("no"), taken=False)


def test_no_pause_is_longer_than_the_bound() -> None:
    attempts = Attempts(ActionRetry(10, ACTION_PAUSE_MAX_S))
    assert {attempts.after(SessionBusy("no"), taken=False) for _ in range(10)} == {
        ACTION_PAUSE_MAX_S
    }


def test_nothing_is_tried_again_unasked() -> None:
    with pytest.raises(SessionBusy):
        Attempts(ActionRetry()).after(SessionBusy("no"), taken=False)


@pytest.mark.requirement("G4")
@pytest.mark.parametrize(
    "refusal",
    [
        *(InputUnknown("?"), InvalidArgument("?"), NotPermitted("?"), SessionHalted("?")),
        *(TurnLost("?"), TextAtPrompt("?")),
    ],
    ids=lambda refusal: str(refusal.code),
)
def test_only_what_will_be_over_is_tried_again(refusal: HoldfastError) -> None:
    with pytest.raises(type(refusal)):
        Attempts(ActionRetry(3)).after(refusal, taken=False)


def test_what_the_shell_may_have_read_is_never_typed_again() -> None:
    with pytest.raises(SessionBusy):
        Attempts(ActionRetry(3)).after(SessionBusy("no"), taken=True)
