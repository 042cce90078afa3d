"""One line of `hold log`: what it says when there is one of a thing, and which signal it was."""

from __future__ import annotations

import signal

import pytest

from holdfast.cli.text.journal_entry import what
from holdfast.cli.text.table import lasting
from holdfast.journal import entries as e


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (e.BlindInput("o", 1, 1, 1), "typed 1 secret byte"),
        (e.BlindInput("o", 1, 1, 2), "typed 2 secret bytes"),
        (e.TailCut(1), "a torn tail of 1 byte was cut"),
        (e.Signalled(signal.SIGKILL), "sent signal SIGKILL"),
    ],
)
def test_one_is_one_and_a_signal_has_its_name(body: e.Body, said: str) -> None:
    assert what(body, str) == said


def test_a_duration_that_was_chosen_has_no_empty_unit() -> None:
    assert [lasting(each) for each in (30 * 86400, 86400, 7200, 5400, 90)] == [
        "30 days", "1 day", "2 hours", "1h30m", "1m",
    ]  # fmt: skip


def test_a_refused_request_is_named_in_words() -> None:
    body = e.RefusedEntry("o", "yield_turn", "turn_not_held", 2)
    assert what(body, str) == "was refused 2 times: yield turn (turn_not_held)"
