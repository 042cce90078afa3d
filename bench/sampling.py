"""Repetitions and what is made of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

Samples = dict[str, list[float]]


def interleaved(
    actions: Mapping[str, Callable[[], float]], repetitions: int, warm_up: int = 1
) -> Samples:
    """Run the actions in turn, round after round, so that noise of the machine hits all alike.

    Every other round goes backwards, so that none always profits from what ran before it. The
    first `warm_up` rounds are thrown away: caches, lazy imports, growing buffers."""
    samples: Samples = {name: [] for name in actions}
    order = list(actions)
    for round_number in range(warm_up + repetitions):
        for name in order if round_number % 2 == 0 else reversed(order):
            sample = actions[name]()
            if round_number >= warm_up:
                samples[name].append(sample)
    return samples


def medians(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: statistics.median(taken) for name, taken in samples.items() if taken}


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least `percent` of all do not exceed (nearest rank)."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]
