"""Refusals are told, and cannot be used to fill a disk."""

from __future__ import annotations

import pytest

from holdfast.core import events as ev
from holdfast.core.session import TurnStep
from holdfast.core.turn import events as turn
from holdfast.host.session.refusal_counts import Refusals
from holdfast.journal.entries import RefusedEntry
from holdfast.model.ids import ActorId, OperatorId
from holdfast.wire.messages import BY_TAG

ANN, BOB = ActorId.of_key(b"a" * 32), ActorId.of_key(b"b" * 32)
SEAT = OperatorId("1" * 32)


def offered(actor: ActorId, size: int = 1) -> ev.InputOffered:
    return ev.InputOffered(actor, 0.0, SEAT, 1, b"x" * size)


def test_the_first_is_told_at_once_and_those_like_it_as_one() -> None:
    refusals = Refusals()
    assert refusals.take(offered(ANN, 3), "turn_held") == (
        ANN,
        RefusedEntry(SEAT, "input", "turn_held", 1, 3),
    )
    assert [refusals.take(offered(ANN, 5), "turn_held") for _ in range(4)] == [None] * 4
    assert refusals.drain() == [(ANN, RefusedEntry(SEAT, "input", "turn_held", 4, 20))]
    assert refusals.drain() == []
    assert refusals.take(offered(ANN), "turn_held") is not None, "a first again"


def test_two_who_are_refused_by_turns_make_no_more_entries_than_one_alone() -> None:
    refusals = Refusals()
    entries = [refusals.take(offered(who), "turn_held") for _ in range(100) for who in (ANN, BOB)]
    assert len([entry for entry in entries if entry is not None]) == 2
    assert [(actor, body.count) for actor, body in refusals.drain()] == [(ANN, 99), (BOB, 99)]


def test_what_was_asked_is_told_in_the_words_of_the_protocol() -> None:
    refusals = Refusals()
    told = refusals.take(TurnStep(ANN, 0.0, turn.YieldStep(ANN, 0.0)), "turn_not_held")
    assert told == (ANN, RefusedEntry("", "yield_turn", "turn_not_held"))


@pytest.mark.parametrize(
    "event",
    [
        *(
            kind(ANN, 0.0, *rest)
            for kind, rest in (
                (ev.EndAsked, ()),
                (ev.RenameAsked, ("new",)),
                (ev.DetachAsked, (SEAT,)),
            )
        ),
        ev.ApprovalDecided(ANN, 0.0, "id", True, "", "{}"),
        ev.ApprovalDecided(ANN, 0.0, "id", False, "", "{}"),
    ],
    ids=["end", "rename", "detach", "approve", "deny"],
)
def test_a_refused_request_has_the_tag_of_its_message(event: ev.SessionEvent) -> None:
    told = Refusals().take(event, "not_permitted")
    assert told is not None
    assert told[1].what in BY_TAG
