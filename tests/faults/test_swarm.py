"""Twenty agents in twenty sessions and five in one, with and without keys, while the daemon is
killed at random: no command is lost, run twice, reported as refused though it ran, or left without
a result that its key can fetch. The judge is shown to find it where a build does one of these."""

from __future__ import annotations

import asyncio
import random

import pytest

from faults.careless_builds import CAREFUL, CARELESS_OF_COMMANDS, build, kill_at_the_moment
from faults.hosting import FaultHost
from faults.swarm import Agent, hire, work_while

_SEED = 20_261_118
_ALONE, _TOGETHER, _KILLS = 20, 5, 15
_FEWER_ALONE, _FEWER_TOGETHER, _MOMENTS, _HEARD_OF = 3, 2, 4, 4  # for the judge
_PATIENCE_S = 120.0


async def _killed_at_random(host: FaultHost, chance: random.Random) -> None:
    for _ in range(_KILLS):
        await asyncio.sleep(chance.uniform(0.05, 1.0))  # the instant of the kill is the chance
        killed = await asyncio.to_thread(host.kill_daemon)
        if chance.random() < 0.8:  # else the next dies while it starts
            await asyncio.to_thread(host.wait_new_daemon, killed)


async def _swarm(host: FaultHost) -> tuple[list[str], list[int]]:
    agents = await hire(host, _ALONE, _TOGETHER, _SEED)
    found = await work_while(host, agents, lambda: _killed_at_random(host, random.Random(_SEED)))
    return found, [len(agent.diary) for agent in agents]


@pytest.mark.requirement("M6", "G4", "R6")
@pytest.mark.timeout(200)
def test_a_swarm_of_agents_loses_repeats_and_misreports_no_command(host: FaultHost) -> None:
    found, tries = asyncio.run(asyncio.wait_for(_swarm(host), _PATIENCE_S))
    assert found == []
    assert min(tries) > 0 and sum(tries) > _KILLS * len(tries) // 4, tries


# -- the judge --------------------------------------------------------------------------------


async def _killed_at_moments(host: FaultHost, agents: list[Agent]) -> None:
    """With a command line in its hands that nobody was told of yet; after each agent has heard of
    some."""
    for _ in range(_MOMENTS):
        wanted = [len(agent.diary) + _HEARD_OF for agent in agents]
        while any(len(agent.diary) < least for agent, least in zip(agents, wanted, strict=True)):
            await asyncio.sleep(0.02)
        killed = await asyncio.to_thread(kill_at_the_moment, host)
        await asyncio.to_thread(host.wait_new_daemon, killed)


async def _few(host: FaultHost, seed: int) -> list[str]:
    agents = await hire(host, _FEWER_ALONE, _FEWER_TOGETHER, seed)
    return await work_while(host, agents, lambda: _killed_at_moments(host, agents))


def _found_in(source: str, seed: int) -> list[str]:
    with build(source) as host:
        host.up()
        return asyncio.run(asyncio.wait_for(_few(host, seed), _PATIENCE_S))


@pytest.mark.requirement("M6", "G4")
@pytest.mark.timeout(200)
def test_the_judge_finds_nothing_wrong_with_a_careful_build() -> None:
    assert _found_in(CAREFUL, _SEED) == []


@pytest.mark.requirement("M6", "G4")
@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "careless", list(CARELESS_OF_COMMANDS.values()), ids=list(CARELESS_OF_COMMANDS)
)
def test_the_judge_catches_a_careless_build(careless: str) -> None:
    # A busy machine may keep the agents from the one thing that this build does wrong.
    assert any(_found_in(careless, _SEED + 100 * attempt) for attempt in range(4))
