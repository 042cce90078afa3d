"""At most one attachable incarnation (F1-F3): the lease machine, run in every order of events.

What is exhausted, and how large it is, is printed (`pytest -s`); docs/leases.md has the numbers.
"""

from __future__ import annotations

import pytest

from holdfast.core.lease.machine import Lease
from simulation.fencing import PINNED, Checker, Rules
from simulation.mutants import MUTANTS, NoWait

# Two hosts; any number of revisions, epochs, crashes, late and lost messages. See fencing.py.
SOUND: dict[str, Rules] = {
    "timed, with sleep, drift and false refusals": Rules(suspend=True, liars=True),
    "pinned, with false refusals": Rules(terms=PINNED, rates=(), liars=True),
    "pinned, with time passing": Rules(terms=PINNED),
    "pinned, with a truthful force": Rules(terms=PINNED, rates=(), force=True),
    "pinned, with a store that forgets": Rules(terms=PINNED, rates=(), forgets=True),
    "a client that keeps its floor": Rules(terms=PINNED, rates=(), frames=True, crash=False),
}
# The client's floor needs no clock: it holds also where every wait is broken and incarnations
# overlap.
SECOND_LINE = Rules(NoWait, terms=PINNED, rates=(), frames=True, crash=False, attach=False)


@pytest.mark.timeout(300)  # half a minute on an idle core
@pytest.mark.parametrize("rules", SOUND.values(), ids=SOUND)
def test_no_order_of_events_makes_two_incarnations_attachable(rules: Rules) -> None:
    verdict = Checker(rules).check()
    print(verdict.told())
    assert not verdict.violation, verdict.told()
    assert verdict.exhausted, "the bounds do not hold all of it"
    assert verdict.states > 1000, "a world in which nothing happens proves nothing"


def test_a_client_is_never_led_back_even_if_two_incarnations_overlap() -> None:
    verdict = Checker(SECOND_LINE).check()
    print(verdict.told())
    assert verdict.exhausted
    assert not verdict.violation, verdict.told()


@pytest.mark.parametrize("mutant", MUTANTS)
def test_without_any_one_rule_there_is_a_counterexample(mutant: str) -> None:
    verdict = Checker(MUTANTS[mutant]).check()
    print(f"{mutant}: {verdict.told()}")
    assert verdict.violation, f"{mutant}: the checker does not see what is wrong"
    assert verdict.story


def test_the_story_of_a_counterexample_can_be_followed() -> None:
    """Hosts keep their numbers and epochs only rise, though the search renumbers both."""
    verdict = Checker(MUTANTS["a successor that does not wait"]).check()
    assert verdict.story == (
        "the store answers host 0's look: epoch 1 of nobody any more, released",
        "host 0 hears: seen; writes epoch 2 of host 0",
        "the store takes the write of host 0: epoch 2 of host 0",
        "the store answers host 1's look: epoch 2 of host 0",
        "host 1 hears: seen; writes epoch 3 of host 1",
        "the store takes the write of host 1: epoch 3 of host 1",
        "host 0 hears: wrote; acquired; writes epoch 2 of host 0",
        "host 1 hears: wrote; acquired; writes epoch 3 of host 1",
    )


def test_every_state_of_the_machine_is_met() -> None:
    """Else what was exhausted is less than it says."""
    met: set[str] = set()

    class Met(Lease):
        __slots__ = ()

        def handle(self, event):  # type: ignore[no-untyped-def]
            outcomes = super().handle(event)
            met.update([self.state, *(type(each).__name__ for each in outcomes)])
            return outcomes

    Checker(Rules(Met, states_max=12_000)).check()
    assert met >= {"waiting", "asking", "held", "released", "fenced"}
    assert met >= {"ReadRecord", "Write", "Acquired", "Renewed", "LeaseFenced", "Released"}
