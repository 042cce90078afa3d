"""The expressions that are waited for."""

from __future__ import annotations

import time

import pytest

from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client_core.text_wait import pattern


def test_no_expression_takes_long_on_any_text() -> None:
    began = time.monotonic()
    assert pattern("(a+)+$").search("a" * 16_000 + "!") is None
    assert time.monotonic() - began < 5


def test_it_matches_by_lines() -> None:
    found = pattern(r"^\$ \w+$").search("one\n$ two\nthree")
    assert found is not None and found.group() == "$ two"


@pytest.mark.parametrize("wrong", ["(", "(?=x)", r"(a)\1", "[z-a]"])
def test_what_is_no_expression_is_refused_with_what_to_do(wrong: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        pattern(wrong)
    assert refused.value.hint and "b'" not in refused.value.message
