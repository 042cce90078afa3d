"""One line of `hold log`: what it says when there is one of a thing, and which signal it was."""

from __future__ import annotations

import signal

import pytest

from holdfast.cli.text.journal_entry import what
from holdfast.cli.text.table import lasting
from holdfast.journal import entries as e
from holdfast.model.actor import ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import ActorId


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (e.BlindInput("o", 1, 1, 1), "typed 1 secret byte"),
        (e.BlindInput("o", 1, 1, 2), "typed 2 secret bytes"),
        (e.TailCut(1), "a torn tail of 1 byte was cut"),
        (e.Signalled(signal.SIGKILL), "sent signal SIGKILL"),
        (
            e.CheckpointedEntry("ck-1", 7, 9, 1.0, "why", True),
            "checkpointed it as ck-1 and put it to sleep: why",
        ),
        (e.CheckpointFailedEntry("no room"), "could not have it checkpointed: no room"),
        (
            e.RestoredEntry("ck-1", "memory", 1, 7, 2, (), 9, (), 1),
            "restored it from ck-1, after epoch 1; 1 connection to peers outside reset, "
            "2 later inputs not part of it",
        ),
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


def test_keys_that_the_layer_types_for_itself_are_not_shown() -> None:
    line = e.InputEntry("o", 1, 1, "exec", b"\x1b[5097~make", 0)
    assert what(line, str) == 'ran by exec "make"'
    probe = e.InputEntry("o", 1, 1, "answer", b"\x1b[5095~", 0)
    assert what(probe, str) == "asked the shell for the line at its prompt"


def test_a_judgement_names_those_behind_it_besides_its_trigger() -> None:
    ann = Contributor(ActorId.of_key(b"a" * 32), "ann", ActorKind.HUMAN, Part.TRIGGER)
    bot = Contributor(ActorId.of_key(b"b" * 32), "bot", ActorKind.AGENT, Part.STATE, "alias:ll", 3)
    typed = ann.replace(part=Part.TYPED)
    alone = e.JudgedEntry("line", "ls", "allow", "", "", (ann, typed))
    assert what(alone, str) == "line 'ls' was allowed"
    both = e.JudgedEntry("line", "ll", "hold", "it destroys", "", (ann, typed, bot))
    assert what(both, str) == "line 'll' was held for approval: it destroys  [contributors: bot]"
