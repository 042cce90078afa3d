"""The judges of numbered.py are worth something only if they catch a careless implementation. Each
of crash_points.FAULTS is one; each must be caught within a few kills."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.crash_points import faulty_host, kill_at_the_moment
from faults.hosting import FaultHost
from faults.numbered import (
    CarefulOperator,
    InputOperator,
    NumberedSession,
    SdkOperator,
    input_faults,
    read_ring,
    stream_faults,
)
from holdfast.model.state import Level

KILLS = 3
SEED = 7


@pytest.fixture
def faulty(request: pytest.FixtureRequest) -> Iterator[FaultHost]:
    with faulty_host(request.param) as host:
        yield host.up()


@pytest.mark.requirement("M1")
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "faulty", ["ring reads, then stores", "ring trusts only its noted head"], indirect=True
)
def test_the_judge_of_output_catches_a_ring_that_loses_bytes(faulty: FaultHost) -> None:
    session = NumberedSession.start(faulty, Level.PLAIN, SEED)
    for _ in range(KILLS):
        kill_at_the_moment(faulty)
    with faulty.client() as client:
        client.send(session.id, "stop")
        assert stream_faults(read_ring(client, session.id, b"\nend\n")) != []


@pytest.mark.requirement("M6")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("faulty", ["ledger notes nothing", "ledger notes first"], indirect=True)
def test_the_judge_of_inputs_catches_a_ledger_that_forgets(faulty: FaultHost) -> None:
    session = NumberedSession.start(faulty, Level.PLAIN, SEED)
    operators: list[InputOperator] = [
        SdkOperator(faulty, session.id, "sdk"),
        CarefulOperator(faulty, session.id, "careful"),
    ]
    for operator in operators:
        operator.start()
    for _ in range(KILLS):
        if all(operator.is_alive() for operator in operators):
            kill_at_the_moment(faulty)
    for operator in operators:
        operator.stop.set()
    for operator in operators:
        operator.join(10)
    with faulty.client() as client:
        client.send(session.id, "stop")
        read_ring(client, session.id, b"\nend\n")
    caught = [operator.fault for operator in operators if operator.fault]
    caught += input_faults(session.lines, [operator.diary for operator in operators])
    assert caught != []
