"""The judges of numbered.py are worth something only if they catch a careless implementation. Each
of crash_points.FAULTS is one; each must be caught within a bounded number of kills."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from faults.crash_points import faulty_host
from faults.hosting import FaultHost
from faults.numbered import (
    CarefulOperator,
    NumberedSession,
    SdkOperator,
    input_faults,
    read_ring,
    stream_faults,
)
from holdfast.model.state import Level

KILLS_MAX = 25
SEED = 7


@pytest.fixture
def faulty(request: pytest.FixtureRequest) -> Iterator[FaultHost]:
    host = faulty_host(request.param)
    try:
        yield host.up()
    finally:
        host.down()


@pytest.mark.requirement("M1")
@pytest.mark.parametrize(
    "faulty", ["ring reads, then stores", "ring trusts only its noted head"], indirect=True
)
def test_the_judge_of_output_catches_a_ring_that_loses_bytes(faulty: FaultHost) -> None:
    chance = random.Random(SEED)
    session = NumberedSession.start(faulty, Level.PLAIN, SEED)
    for _ in range(KILLS_MAX):
        faulty.wait_new_daemon(faulty.kill_daemon())
        time.sleep(chance.uniform(0, 0.15))  # the instant of the kill is what is random here
    with faulty.client() as client:
        client.send(session.id, "stop")
        assert stream_faults(read_ring(client, session.id, b"\nend\n")) != []


@pytest.mark.requirement("M6")
@pytest.mark.parametrize(
    "faulty",
    ["ledger notes nothing", "ledger notes first", "acknowledges before it takes"],
    indirect=True,
)
def test_the_judge_of_inputs_catches_a_ledger_that_forgets(faulty: FaultHost) -> None:
    chance = random.Random(SEED)
    session = NumberedSession.start(faulty, Level.PLAIN, SEED)
    operators = [
        *(SdkOperator(faulty, session.id, f"sdk{index}") for index in range(4)),
        *(CarefulOperator(faulty, session.id, f"careful{index}") for index in range(2)),
    ]
    for operator in operators:
        operator.start()
    caught: list[str] = []
    for _ in range(KILLS_MAX):
        faulty.wait_new_daemon(faulty.kill_daemon())
        time.sleep(chance.uniform(0, 0.15))  # the instant of the kill is what is random here
        caught = [operator.fault for operator in operators if operator.fault]
        if caught:
            break
    for operator in operators:
        operator.stop.set()
    for operator in operators:
        operator.join(30)
    with faulty.client() as client:
        client.send(session.id, "stop")
        read_ring(client, session.id, b"\nend\n")
    caught += input_faults(session.lines, [operator.diary for operator in operators])
    assert caught != []
