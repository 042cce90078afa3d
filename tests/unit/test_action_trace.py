"""What a journal says of one action: what is there, and never a guess."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.core.gate.action_score import REFUSED, UNKNOWN, score
from holdfast.host.gate.action_trace import find_action
from holdfast.journal import entries as e
from holdfast.model.errors import InvalidArgument
from holdfast.model.ids import SessionId
from holdfast.model.measured import ActionTrace

SESSION = SessionId.of_key(b"\1" * 32)
OTTO, EVE, HOST = "otto", "eve", ""
OPERATOR = "1" * 32
CLEAN = score((), ())


def journal(*bodies: tuple[str, e.Body]) -> Iterator[e.Entry]:
    for seq, (actor, body) in enumerate(bodies, start=1):
        yield e.Entry(seq, 100.0 + seq, 1, actor, seq, body, b"")


def declared(
    action: str = "a" * 16, *, seq: int = 1, key: str = "", by: str = OTTO
) -> tuple[str, e.Body]:
    form = {"intent": "try", "command": "make"} | ({"key": key} if key else {})
    return by, e.ActionEntry(action, OPERATOR, seq, json.dumps(form), ("turn_held",))


def typed(seq: int = 1, by: str = OTTO) -> tuple[str, e.Body]:
    return by, e.InputEntry(OPERATOR, seq, seq, "exec", b"make\r", 10)


def began(number: int = 7) -> tuple[str, e.Body]:
    return OTTO, e.CommandBegan(number, "make", "/w", 20, (OTTO,))


def ended(number: int = 7, status: int = 0) -> tuple[str, e.Body]:
    return HOST, e.CommandEnded(number, status, "/w", 30)


def measured(action: str = "a" * 16, number: int = 7, **more: Any) -> tuple[str, e.Body]:
    fields: dict[str, Any] = {"status": 0, "seconds": 1.0, "latency_s": 2.0, "score": CLEAN}
    return OTTO, e.ActionMeasured(action, number, **{**fields, **more})


def traced(
    *bodies: tuple[str, e.Body], wanted: str = "a" * 16, asker: str = OTTO, over: bool = False
) -> ActionTrace:
    names = {OTTO: "Otto", EVE: "Eve"}
    return find_action(
        journal(*bodies),
        wanted,
        session=SESSION,
        asker=asker,
        is_over=over,
        name=lambda actor: names[actor],
    )


@pytest.mark.requirement("G2")
def test_an_action_that_ran_has_all_of_it() -> None:
    trace = traced(declared(), typed(), began(), ended(), measured())
    assert (trace.state, trace.status, trace.command, trace.cwd) == ("done", 0, 7, "/w")
    assert (trace.output_from, trace.output_to) == (20, 30)
    assert (trace.actor, trace.actor_id, trace.retries) == ("Otto", OTTO, ("turn_held",))
    assert (trace.seconds, trace.latency_s, trace.score) == (1.0, 2.0, CLEAN)
    assert [step.seq for step in trace.steps] == [1, 2, 3, 4, 5]


def test_what_is_under_way_is_running_and_has_no_result() -> None:
    for bodies in ((declared(), typed()), (declared(), typed(), began())):
        trace = traced(*bodies)
        assert (trace.state, trace.status, trace.score) == ("running", None, None)


def test_a_line_that_was_never_taken_did_not_run() -> None:
    assert traced(declared()).state == "not_run"
    voided = OTTO, e.Voided(OPERATOR, 1, 1)
    assert traced(declared(), typed(), voided).state == "not_run"
    assert traced(declared(), typed(), voided, began(), over=True).command is None


def test_a_session_that_is_over_leaves_an_unknown_result_unless_it_was_reported() -> None:
    assert traced(declared(), typed(), began(), over=True).state == "unknown"
    done = traced(declared(), typed(), began(), ended(status=3), over=True)
    assert (done.state, done.status, done.effects) == ("done", 3, None)
    why = measured(status=None, score=UNKNOWN, code="input_unknown", message="nobody knows")
    trace = traced(declared(), typed(), why, over=True)
    assert (trace.state, trace.message) == ("unknown", "nobody knows")


def test_one_that_the_gate_refused_is_refused() -> None:
    refused = measured(number=0, status=None, score=REFUSED, code="gate_refused", message="no")
    trace = traced(declared(), typed(), refused, began(8))
    assert (trace.state, trace.code, trace.command) == ("refused", "gate_refused", None)


def test_another_command_is_not_its_command() -> None:
    trace = traced(began(6), declared(), typed(), began(), ended(6, 9), ended(), measured())
    assert (trace.command, trace.status) == (7, 0)


def test_of_a_key_that_two_actors_used_ones_own_is_meant() -> None:
    both = (
        *(declared(key="k"), typed(), began(), ended(), measured()),
        *(declared("b" * 16, seq=2, key="k", by=EVE), typed(2, EVE)),
    )
    assert traced(*both, wanted="k").actor == "Otto"
    assert traced(*both, wanted="k", asker=EVE).actor == "Eve"
    with pytest.raises(InvalidArgument, match="several actors") as refused:
        traced(*both, wanted="k", asker="third")
    assert "a" * 16 in refused.value.hint and "b" * 16 in refused.value.hint


def test_the_latest_of_a_key_is_meant_and_a_number_is_a_commands() -> None:
    twice = (
        *(declared(key="8"), typed(), began(), ended(), measured()),
        *(declared("b" * 16, seq=2, key="8"), typed(2), began(8), ended(8), measured("b" * 16, 8)),
    )
    assert traced(*twice, wanted="8").id == "b" * 16, "a key before a number"
    assert traced(*twice, wanted="7").id == "a" * 16


def test_what_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(InvalidArgument, match="no action") as refused:
        traced(declared(), wanted="nothing")
    assert "a" * 16 in refused.value.hint
    with pytest.raises(InvalidArgument):
        traced(wanted="")
