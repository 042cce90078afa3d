"""The form of a structured action: published as a JSON schema, checked by the same declaration, and
refused with the field and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from holdfast.host.gate.action_requests import line_of, parsed
from holdfast.model.action import Action, ActionRetry, Expected, json_schema
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import (
    ACTION_EXPECTED_MAX,
    ACTION_INTENT_MAX_CHARS,
    ACTION_MAX_BYTES,
    ACTION_RETRIES_MAX,
    EXEC_KEY_MAX_CHARS,
)

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "action-schema.json"
LEAST: dict[str, Any] = {"intent": "look", "command": "ls"}
WHOLE: dict[str, Any] = {
    "intent": "run the tests",
    "command": ["make", "test one"],
    "expect": {
        "status": 3,
        "files": ["out/**"],
        "ports": [3000],
        "processes": ["node"],
        "env": ["PATH"],
        "cwd": "/tmp",
    },
    "key": "k",
    "retry": {"times": 2, "backoff_s": 0.5},
    "cwd": "/srv",
}
# What is wrong, and the field that must be named.
MALFORMED: list[tuple[object, str]] = [
    ([], "action"),
    (None, "action"),
    ({}, "action.intent"),
    ({"intent": "x"}, "action.command"),
    ({**LEAST, "intent": " "}, "action.intent"),
    ({**LEAST, "intent": "x" * (ACTION_INTENT_MAX_CHARS + 1)}, "action.intent"),
    ({**LEAST, "intent": 7}, "action.intent"),
    ({**LEAST, "command": ""}, "action.command"),
    ({**LEAST, "command": []}, "action.command"),
    ({**LEAST, "command": ["ls", 7]}, "action.command[1]"),
    ({**LEAST, "command": {"run": "ls"}}, "action.command"),
    ({**LEAST, "expects": {}}, "action.expects"),
    ({**LEAST, "expect": []}, "action.expect"),
    ({**LEAST, "expect": {"status": "0"}}, "action.expect.status"),
    ({**LEAST, "expect": {"status": True}}, "action.expect.status"),
    ({**LEAST, "expect": {"status": 256}}, "action.expect.status"),
    ({**LEAST, "expect": {"files": "out"}}, "action.expect.files"),
    ({**LEAST, "expect": {"files": [""]}}, "action.expect.files[0]"),
    ({**LEAST, "expect": {"files": ["x"] * (ACTION_EXPECTED_MAX + 1)}}, "action.expect.files"),
    ({**LEAST, "expect": {"ports": [0]}}, "action.expect.ports[0]"),
    ({**LEAST, "expect": {"ports": [80, 1.5]}}, "action.expect.ports[1]"),
    ({**LEAST, "expect": {"cwd": "src"}}, "action.expect.cwd"),
    ({**LEAST, "expect": {"file": ["x"]}}, "action.expect.file"),
    ({**LEAST, "key": "x" * (EXEC_KEY_MAX_CHARS + 1)}, "action.key"),
    ({**LEAST, "retry": 3}, "action.retry"),
    ({**LEAST, "retry": {"times": ACTION_RETRIES_MAX + 1}}, "action.retry.times"),
    ({**LEAST, "retry": {"times": -1}}, "action.retry.times"),
    ({**LEAST, "retry": {"backoff_s": -1}}, "action.retry.backoff_s"),
    ({**LEAST, "cwd": "src"}, "action.cwd"),
]


def test_the_published_schema_is_made_from_the_declaration() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema()
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("form", [LEAST, WHOLE])
def test_a_form_that_fits_the_schema_is_taken_and_given_back(form: dict[str, Any]) -> None:
    jsonschema.validate(form, json_schema())
    action = Action.parsed(form)
    assert action.form() == form
    assert Action.unpack(action.pack()) == action


def test_every_field_arrives() -> None:
    action = Action.parsed(WHOLE)
    expected = Expected(3, ("out/**",), (3000,), ("node",), ("PATH",), "/tmp")
    assert (action.intent, action.words, action.line) == ("run the tests", ("make", "test one"), "")
    assert (action.expect, action.retry) == (expected, ActionRetry(2, 0.5))
    assert (action.key, action.cwd) == ("k", "/srv")


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(("form", "field"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_form_is_refused_with_its_field_and_what_to_do(
    form: object, field: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        parsed(json.dumps(form))
    assert refused.value.message.startswith(f"{field} "), refused.value.message
    assert "nothing was run" in refused.value.message
    assert refused.value.hint
    with pytest.raises(jsonschema.ValidationError):  # the schema says the same
        jsonschema.validate(form, json_schema())


@pytest.mark.parametrize("text", ["", "{", "[" * 60_000, '{"intent": NaN}'[:-2], "\x00"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="not JSON"):
        parsed(text)


def test_text_that_cannot_travel_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"action\.intent is not Unicode text"):
        parsed('{"intent": "\\ud800", "command": "ls"}')


def test_a_form_has_a_bounded_size() -> None:
    with pytest.raises(InvalidArgument, match="bytes"):
        parsed(json.dumps({**LEAST, "command": "x" * ACTION_MAX_BYTES}))


def test_words_reach_the_program_as_they_are_and_a_line_is_left_alone() -> None:
    words = Action.parsed({**LEAST, "command": ["echo", "a b", "it's", "$HOME", "=x", ""]})
    assert line_of(words, fish=False) == "echo 'a b' 'it'\"'\"'s' '$HOME' '=x' ''"
    assert line_of(words, fish=True) == r"echo 'a b' 'it\'s' '$HOME' '=x' ''"
    assert line_of(Action.parsed({**LEAST, "command": "ls | wc"}), fish=False) == "ls | wc"
    there = Action.parsed({**LEAST, "cwd": "/a b"})
    assert line_of(there, fish=False) == "(cd -- '/a b' && eval ls)"
