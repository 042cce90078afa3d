"""The memory of an exec gate: adapters.seccomp.gate_page."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.adapters.seccomp import gate_page
from holdfast.adapters.seccomp.gate_page import GatePage, GateWord, JudgedKinds


@pytest.fixture
def memory() -> Iterator[int]:
    memfd = gate_page.make()
    yield memfd
    os.close(memfd)


def test_a_gate_that_judges_nothing_takes_no_memory(memory: int) -> None:
    word = GateWord(memory)
    assert (word.value, word.judged) == (0, JudgedKinds.NOTHING)
    assert os.fstat(memory).st_blocks == 0
    word.close()


def test_each_judgement_is_another_word_for_all_that_map_it_and_outlives_the_daemon(
    memory: int,
) -> None:
    word, page = GateWord(memory), GatePage(memory)
    seen = {word.value}
    for kinds in (JudgedKinds.EXEC, JudgedKinds.EXEC | JudgedKinds.READS, JudgedKinds.NOTHING):
        word.judge(kinds)
        assert (page.word, page.judged) == (word.value, kinds)
        seen.add(word.value)
    assert len(seen) == 4
    later = GateWord(memory)
    assert (later.value, later.judged) == (word.value, JudgedKinds.NOTHING)
    for each in (word, page, later):
        each.close()
