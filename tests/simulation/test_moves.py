"""A session moves to another host (N1, F1, N3): the machines of the source and of the target, with
the lease machine, in every order of events within small bounds, and in whole runs from a seed.

What is exhausted, and how large it is, is printed (`pytest -s`); docs/migration.md has the
numbers.
"""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.core.continuity.move_table import SourceState, TargetState
from simulation.move_mutants import MUTANTS
from simulation.move_orders import Bounds, Orders
from simulation.move_runs import Run
from simulation.move_world import Rules

RUNS = 800
_NOTHING = Bounds(crashes=0, failures=0, strays=0, inputs=0)
EXHAUSTED = {
    "a daemon dies and an input comes": _NOTHING._replace(crashes=1, inputs=1),
    "a daemon dies and a machine restarts": _NOTHING._replace(crashes=1, restarts=1),
    "a machine is gone for good and a daemon dies": _NOTHING._replace(crashes=1, gone=1),
    "work fails, a write has no answer, and an input comes": _NOTHING._replace(
        failures=1, strays=1, inputs=1
    ),
    "two writes have no answer": _NOTHING._replace(strays=2),
}


@pytest.mark.requirement("F1")
@pytest.mark.timeout(300)  # a few seconds each on an idle core
@pytest.mark.parametrize("bounds", EXHAUSTED.values(), ids=EXHAUSTED)
def test_no_order_of_a_move_makes_two_lives_or_none(bounds: Bounds) -> None:
    verdict = Orders(Rules(), bounds).check()
    print(verdict.told())
    assert not verdict.violation, verdict.told()
    assert verdict.exhausted, "the bounds do not hold all of it"
    assert verdict.states > 300, "a world in which nothing happens proves nothing"


@pytest.mark.requirement("F1")
@pytest.mark.timeout(300)
def test_whatever_happens_in_a_move_one_incarnation_lives_and_has_every_input() -> None:
    met: Counter[str] = Counter()
    for seed in range(RUNS):
        outcome = Run(seed).go()
        assert not outcome.violation, f"seed {seed}: {outcome.told()}"
        met += outcome.met
    print(f"{RUNS} runs: {dict(met.most_common())}")
    unmet = [state for state in (*SourceState, *TargetState) if not met[state]]
    assert not unmet, "no run came there"
    for fault in ("crash", "cut", "store", "restart", "messages lost", "work failed"):
        assert met[fault] > 20, f"hardly any run has met this: {fault}"
    assert met["moves"] > 2 * RUNS
    assert met["lost with its machine"] < RUNS / 20, "what is excused proves nothing"


def test_a_run_is_its_seed() -> None:
    assert Run(7).go() == Run(7).go()


@pytest.mark.requirement("F1")
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_move_without_any_one_rule_has_a_counterexample(mutant: str) -> None:
    verdict = Orders(*MUTANTS[mutant]).check()
    print(f"{mutant}: {verdict.told()}")
    assert verdict.violation, f"{mutant}: the checker does not see what is wrong"
    assert verdict.story
