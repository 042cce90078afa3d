"""M6, M8, A5: the daemon dies between any two steps of recording and doing. Nothing is lost, nothing
doubled, every byte is attributed once, and what was stopped is stopped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.actors_at_work import PROGRAM, Admin, Company, Worker
from faults.crash_points import arm, crashing_host
from faults.histories import OK, faults
from faults.hosting import FaultHost, until
from holdfast.adapters import procfs
from holdfast.adapters.segments import JournalReader
from holdfast.journal import entries
from holdfast.journal.entries import Body
from holdfast.model.state import Level, SessionState
from holdfast.sdk.client import Host
from holdfast.wire import authority as a
from holdfast.wire import messages as m

SEED = 11
_CUSTODY = ["before-take", "before-note", "after-note", "after-take", "before-type", "after-type"]
_FILE = ["before-record", "after-record", "before-append", "after-append"]
_BURST = ["before-prepare", "after-prepare", *_CUSTODY, "before-commit", "after-commit"]
_FLUSH = [*_FILE, "before-clear", "after-clear"]
POINTS = {
    "keys": ["before-begin", "after-begin", *_BURST, *_FLUSH],
    "quiet": [*_BURST, *_FLUSH],
    "submit": [*_FILE, *_CUSTODY],
    "long": [*_FILE, *_CUSTODY],
}
WHILE_CARRYING_ON = [
    "before-settle", "after-settle", *_FILE, "before-clear", "after-clear", "before-seal",
    "after-seal",
]  # fmt: skip


@pytest.fixture
def armed() -> Iterator[FaultHost]:
    host = crashing_host()
    try:
        yield host.up()
    finally:
        host.down()


def company_of(host: FaultHost) -> tuple[Company, Worker, Admin]:
    company = Company(host, 1, SEED, halts=False)
    worker, admin = company.hands
    assert isinstance(admin, Admin)
    return company, worker, admin


def died(company: Company, point: Path, old: int) -> None:
    """It came by there, and another serves."""
    until(f"the daemon died at {point.name}", lambda: not point.exists())
    company.host.wait_new_daemon(old)
    company.kills += 1


def daemon(host: FaultHost) -> int:
    return until("there is a daemon", host.daemon_pid)


def bodies(company: Company) -> list[Body]:
    return [entry.body for entry in JournalReader(str(company.directory)).entries()]


def assert_explained(company: Company) -> None:
    assert faults(company.finish()) == []
    assert company.judgement.verdict == "intact"


@pytest.mark.requirement("M6", "M8")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", list(POINTS))
def test_an_input_cut_off_by_a_kill_is_typed_and_attributed_once(
    armed: FaultHost, form: str
) -> None:
    company, worker, _ = company_of(armed)
    for place in POINTS[form]:
        if form == "quiet":  # so that a burst is open, and the next key is not judged anew
            assert worker.write("keys").outcome == OK
        old, point = daemon(armed), arm(armed, place)
        assert worker.write(form).outcome == OK
        died(company, point, old)
    assert_explained(company)
    if form in ("submit", "long"):
        assert any(isinstance(body, entries.Voided) for body in bodies(company))


@pytest.mark.requirement("M6", "M8")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("place", WHILE_CARRYING_ON)
def test_a_daemon_that_dies_while_it_carries_on_leaves_the_rest_to_the_next(
    armed: FaultHost, place: str
) -> None:
    company, worker, _ = company_of(armed)
    assert worker.write("keys").outcome == OK
    old = daemon(armed)
    company.early += 1
    with company.frozen_clock_of_the_daemon():  # the keys stay gathered
        pass
    point = arm(armed, place)
    armed.kill_daemon()
    died(company, point, old)
    assert worker.write("submit").outcome == OK
    assert_explained(company)
