"""A host for each test that wants one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from faults.hosting import FaultHost
from faults.reached import Guests
from holdfast.adapters.halt import cgroup
from holdfast.model.state import Level


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): contract ids this test shows holding")


@pytest.fixture
def host() -> Iterator[FaultHost]:
    with FaultHost() as host:
        yield host.up()


@pytest.fixture(scope="module")
def shared_host() -> Iterator[FaultHost]:
    """One host for tests that each leave it as it was."""
    with FaultHost() as host:
        yield host.up()


@pytest.fixture
def guests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guests]:
    made = Guests(monkeypatch)
    yield made
    made.close()


@pytest.fixture(params=[Level.PLAIN, Level.CONTAINED])
def level(request: pytest.FixtureRequest) -> Level:
    wanted: Level = request.param
    if wanted is Level.CONTAINED and (os.getuid() != 0 or cgroup.unavailable()):
        pytest.skip("level contained needs root and cgroup v2")
    return wanted
