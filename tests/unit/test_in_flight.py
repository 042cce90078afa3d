"""M6: what is said to have been under way when a session was lost, from its last entries."""

from __future__ import annotations

import pytest

from holdfast.journal.entries import (
    BlindInput,
    Body,
    CommandBegan,
    CommandEnded,
    Entry,
    InputEntry,
    Voided,
)
from holdfast.journal.in_flight import in_flight
from holdfast.model.limits import IN_FLIGHT_INPUTS

OPERATOR = "0" * 32


def keys(data: bytes, number: int = 1, form: str = "keys") -> InputEntry:
    return InputEntry(OPERATOR, number, number, form, data, 0)


def entries(*bodies: tuple[str, Body]) -> list[Entry]:
    return [
        Entry(seq, 1000.0 + seq, 1, actor, seq, body, b"p" * 32)
        for seq, (actor, body) in enumerate(bodies, 1)
    ]


@pytest.mark.requirement("M6")
def test_the_command_that_ran_and_the_inputs_since_the_last_one_are_named() -> None:
    found = in_flight(
        entries(
            ("a", keys(b"true\r")),
            ("a", CommandBegan(1, "true", "/", 0, ("a",))),
            ("a", CommandEnded(1, 0, "/", 0)),
            ("b", keys(b"make deploy\r", 2)),
            ("b", CommandBegan(2, "make deploy", "/src", 9, ("a", "b"))),
            ("a", keys(b"y\r", 3)),
        ),
        str.upper,
    )
    assert found.command is not None
    named = found.command
    assert (named.text, named.cwd, named.actor, named.authors) == (
        "make deploy",
        "/src",
        "B",
        ("A", "B"),
    )
    assert (named.status, named.ended_at) == (None, None)
    assert [(each.seq, each.actor, each.text) for each in found.inputs] == [
        (4, "B", "make deploy\r"),
        (6, "A", "y\r"),
    ]
    assert found.unsubmitted == ""


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    ("typed", "left"),
    [
        (b"rm -rf x", "rm -rf x"),
        (b"ls\rrm", "rm"),
        (b"lss\x7f -l", "ls -l"),
        (b"all of it\x15cd", "cd"),
        (b"sleep 5\x03", ""),
        (b"done\r", ""),
        (b"a\x1b\tb", "a\tb"),
    ],
)
def test_text_that_was_not_submitted_is_named_with_its_author(typed: bytes, left: str) -> None:
    found = in_flight(entries(("a", keys(typed))), str)
    assert (found.unsubmitted, found.unsubmitted_by) == (left, ("a",) if left else ())


@pytest.mark.requirement("M6")
def test_what_never_reached_the_terminal_or_nobody_typed_is_not_named() -> None:
    found = in_flight(
        entries(
            ("a", keys(b"kept", 1)),
            ("a", keys(b"voided", 2)),
            ("", keys(b"\x1b[0n", 3, "answer")),
            ("", Voided(OPERATOR, 2, 2)),
        ),
        str,
    )
    assert [each.text for each in found.inputs] == ["kept"]
    assert found.unsubmitted == "kept"


@pytest.mark.requirement("M6")
def test_of_a_secret_only_its_size_is_named_and_of_many_inputs_the_last() -> None:
    many = [("a", keys(b"x\r", number)) for number in range(20)]
    found = in_flight(entries(*many, ("b", BlindInput(OPERATOR, 30, 30, 12))), str)
    assert len(found.inputs) == IN_FLIGHT_INPUTS
    assert (found.inputs[-1].text, found.inputs[-1].bytes) == ("", 12)
    assert found.unsubmitted == ""
