"""What an agent is told to do after a refusal: the hint of whoever knows the case, in terms of its
tools, and a general one only where there is none."""

from __future__ import annotations

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from holdfast.mcp.refusing import refusal
from holdfast.model.errors import (
    GateHeld,
    HoldfastError,
    InvalidArgument,
    SessionBusy,
    TerminalInUse,
    TextAtPrompt,
    TurnHeld,
    by_code,
)


def told(error: HoldfastError) -> str:
    return refusal(error)["what_to_do"]


@pytest.mark.parametrize(
    ("error", "hint", "expected"),
    [
        (
            TerminalInUse,
            "a line for it: `hold send x --enter LINE`; `hold keys x C-d` leaves it",
            'a line for it: answer; keys ["C-d"] leaves it',
        ),
        (
            TextAtPrompt,
            "finish it, or clear it with `hold keys x C-c`",
            'finish it, or clear it with keys ["C-c"]',
        ),
        (
            SessionBusy,
            "wait for it: `hold wait x --for prompt`",
            "wait for it: wait with the state prompt",
        ),
        (InvalidArgument, "to press keys use `hold keys`", "to press keys use the tool keys"),
        (SessionBusy, "end the blind turn, or use exec", "end the blind turn, or use exec"),
        (InvalidArgument, "give exactly one", "give exactly one"),
    ],
)
def test_a_specific_hint_is_given_as_it_is_in_terms_of_the_tools(
    error: type[HoldfastError], hint: str, expected: str
) -> None:
    assert told(error("why", hint=hint)) == expected


def test_a_hint_for_which_there_is_no_tool_is_for_people_beside_what_an_agent_can_do() -> None:
    said = told(TerminalInUse("why", hint="answer it or end it: `hold attach x`"))
    assert said.startswith("observe what it asks") and said.endswith(
        "for a person: answer it or end it: `hold attach x`"
    )


def test_what_an_agent_must_know_comes_before_a_hint() -> None:
    said = told(TurnHeld("ada holds it", hint="`hold turn x request` asks for it"))
    assert said.startswith("call request_turn") and said.endswith("request_turn asks for it")
    assert "C-c" in told(GateHeld("why", hint="any human can approve it"))


@pytest.mark.parametrize("code", sorted(by_code()))
def test_every_refusal_says_what_to_do(code: str) -> None:
    assert told(by_code()[code]("why"))
