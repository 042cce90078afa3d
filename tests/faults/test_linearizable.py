"""Twenty actors write, ask, give, seize, halt, lose their rights and get them back, while the
daemon is killed again and again: there is one total order, and it explains everything."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from faults.actors_at_work import Admin, Company
from faults.careless_builds import (
    CAREFUL,
    CARELESS,
    WHAT_WAITS_IS_NOT_JUDGED_AGAIN,
    build,
    kill_at_the_moment,
)
from faults.histories import OK, Op, Scene, faults
from faults.hosting import FaultHost, is_alive, process_key
from faults.leftovers import assert_in_order
from holdfast.model.limits import INPUT_MAX_BYTES
from holdfast.wire.messages import turn as turn_messages

SEED = 20_261_115
ACTORS = 20
WORK_S = 40.0
KILL_EVERY_S = 0.8
FEWER_ACTORS = 8
MOMENTS = 3


@pytest.mark.requirement("A1", "A2", "A3", "A5", "M6", "M8", "N8", "S1")
@pytest.mark.timeout(150)
def test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed(
    host: FaultHost,
) -> None:
    company = Company(host, ACTORS, SEED, halts=True)
    process = process_key(company.pid)
    assert process is not None
    company.start()
    company.work(WORK_S, KILL_EVERY_S)
    scene = company.finish()
    assert faults(scene) == []
    assert company.judgement.verdict == "intact"
    # It was worth judging.
    wrote = {op.actor for op in scene.ops if op.kind == "input" and op.outcome == OK}
    done = [(op.kind, op.outcome, op.code) for op in scene.ops]
    assert len(wrote) > ACTORS // 2 and company.kills > 15
    assert done.count(("input", "ok", "")) > 300 and done.count(("revoke", "ok", "")) > 10
    assert done.count(("seize", "ok", "")) > 10 and done.count(("halt", "ok", "")) > 0
    assert any(op.kind == "input" and op.outcome == "unknown" for op in scene.ops)
    with host.client() as client:
        assert is_alive(process) and client.show(company.session).pid == process.pid
        assert_in_order(host, client)


@pytest.fixture
def built(request: pytest.FixtureRequest) -> Iterator[FaultHost]:
    with build(request.param) as host:
        yield host.up()


def short_run(host: FaultHost, seed: int = SEED) -> list[str]:
    """What the judge finds after a few kills at the worst moment."""
    company = Company(host, FEWER_ACTORS, seed, halts=False)
    company.start()
    for _ in range(MOMENTS):
        company.until_revoked(4)
        host.wait_new_daemon(kill_at_the_moment(host))
        company.kills += 1
    return faults(company.finish())


@pytest.mark.requirement("A3", "M6", "M8")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("built", [CAREFUL], indirect=True, ids=["careful"])
def test_the_judge_finds_nothing_wrong_with_a_careful_build(built: FaultHost) -> None:
    assert short_run(built) == []


@pytest.mark.requirement("A3", "M6", "M8")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("careless", list(CARELESS.values()), ids=list(CARELESS))
def test_the_judge_catches_a_careless_build(careless: str) -> None:
    # A busy machine may keep the actors from the one thing that this build does wrong.
    assert any(_found_in(careless, SEED + attempt) for attempt in range(4))


def _found_in(source: str, seed: int) -> list[str]:
    with build(source) as host:
        return short_run(host.up(), seed)


def taken_away(host: FaultHost, how: str) -> tuple[list[Op], Scene]:
    """The holder's inputs wait for a program that does not read; then the turn is taken from it,
    and the program reads on."""
    company = Company(host, 1, SEED, halts=False)
    holder, admin = company.hands[0], company.hands[-1]
    assert isinstance(admin, Admin)
    assert holder.write().outcome == OK
    os.kill(company.pid, signal.SIGSTOP)
    waiting = holder.send_ahead(4, INPUT_MAX_BYTES)
    ops = list(waiting.values())
    connection = holder.connected()
    connection.ask(
        turn_messages.GetTurn(connection.next_id(), company.session), 20
    )  # behind the inputs
    admin.take_the_turn(how)
    os.kill(company.pid, signal.SIGCONT)
    if how == "halt":
        admin.insist("resume", turn_messages.Resume(0, company.session))
    holder.settle(waiting)
    return ops, company.finish()


@pytest.mark.requirement("A3", "A5")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", ["seize", "revoke", "halt"])
def test_input_that_waits_for_the_program_is_refused_when_the_turn_is_taken(
    host: FaultHost, how: str
) -> None:
    ops, scene = taken_away(host, how)
    assert faults(scene) == []
    outcomes = [op.outcome for op in ops]
    assert outcomes == sorted(outcomes), "one was taken after another was refused"
    assert ops[-1].code == ("session_halted" if how == "halt" else "turn_held")


@pytest.mark.requirement("A3", "A5")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("built", [WHAT_WAITS_IS_NOT_JUDGED_AGAIN], indirect=True, ids=["careless"])
def test_the_judge_catches_a_build_that_types_what_waited(built: FaultHost) -> None:
    assert faults(taken_away(built, "seize")[1]) != []
