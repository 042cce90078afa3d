"""Statements about every command line: reading one never fails, and a line that counts as read
runs no command that the facts do not name."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.adapters.bash_grammar import parser
from holdfast.adapters.bash_grammar.parser import BashGrammar
from holdfast.core.gate.effect_facts import facts_of
from holdfast.core.gate.patterns import could_match
from holdfast.model.command_line import ParsedLine
from holdfast.model.gate_facts import Facts
from properties.shell_lines import Bash, bash, line
from unit.gating import GRAMMAR, Links, effect

LINES = 250  # each costs bash some 10 ms
SHELLISH = st.text(alphabet="rmls -$`\"'\\(){}[]<>|&;#!*?~=/.,\n\tx1é\x00\x1b\u00a0", max_size=60)
# Longest line that is read, in the worst shapes: a walk that is not linear shows here.
READ_S = 3.0  # far beyond what it takes, and far below what a quadratic walk would


def read(text: str, grammar: BashGrammar = GRAMMAR) -> Facts:
    return facts_of(effect(text), grammar.parse, Links().real, "/home/alice")


@given(st.one_of(SHELLISH, st.text(max_size=60)))
@example("\ud800")
@example("$(" * 500)
@example("{a,b}" * 20)
@example("(" * 3000)
@example("echo {1..\U0010ffff")
@settings(max_examples=400)
def test_every_text_has_facts(text: str) -> None:
    found = read(text)
    assert found.parsed or found.problem
    if "\x00" in text or "\x1b" in text:
        assert not found.parsed


@pytest.mark.parametrize(
    "shape",
    [
        "(",
        "$(",
        "`",
        "{a,",
        "a;",
        "a|",
        '"',
        "<<E ",
        "x=",
        "a b ",
        "${",
        "[[ ",
        "if ",
        "a?",
        "!|",
        "~)",
    ],
)
def test_reading_a_long_line_takes_no_longer_than_a_person_waits(shape: str) -> None:
    marks = len(parser._MARKS.findall(shape))
    most = parser.MARKS_MAX // marks if marks else parser.LINE_MAX_BYTES
    text = shape * min(most, parser.LINE_MAX_BYTES // len(shape))
    assert not read(text * 2).parsed, "longer ones are not read at all"
    began = time.monotonic()
    read(text)
    assert time.monotonic() - began < READ_S


def missed(shell: Bash, grammar: BashGrammar, lines: int) -> tuple[list[str], int]:
    """Lines that ran what their facts do not name, and how many were read and ran something."""
    found, ran = [], 0
    for seed in range(lines):
        text = line(seed)
        facts = read(text, grammar)
        if facts.unread:
            continue
        names = shell.names_run(text)
        ran += bool(names)
        # A name with a line break in it is two lines for us here.
        known = {each for name in facts.commands for each in name.split("\n")}
        if names - known:
            found.append(text)
    return found, ran


@pytest.mark.requirement("A8")
def test_bash_runs_no_command_that_the_facts_do_not_name() -> None:
    with bash() as shell:
        found, ran = missed(shell, GRAMMAR, LINES)
    assert found == []
    assert ran > LINES // 8, "most that were made up ran nothing: this showed nothing"


class _WithoutLast(BashGrammar):
    """Broken on purpose: it overlooks one command of each line."""

    def parse(self, text: str) -> ParsedLine:
        read = super().parse(text)
        return read.replace(commands=read.commands[:-1])


def test_a_reader_that_overlooks_a_command_is_found_out() -> None:
    with bash() as shell:
        found, _ = missed(shell, _WithoutLast(), 60)
    assert found


def test_a_reader_that_believes_the_grammar_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks that words touch and that words of the shell's grammar are no commands."""
    monkeypatch.setattr(parser, "_RESERVED", frozenset())
    odd = "coproc { c1; }"
    assert not read(odd).unread and "c1" not in read(odd).commands


@given(st.lists(st.sampled_from(["rm", "-rf", "a*", "…", "x…", " ", "b"]), max_size=6))
def test_a_command_matches_itself_and_what_it_begins_with(words: list[str]) -> None:
    command = " ".join(words)
    assert could_match(command.replace("…", "*"), command)
    assert could_match("*", command)
    assert could_match(f"{command.replace('…', '*')}*", f"{command} more")
