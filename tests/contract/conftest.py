from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.stores import KINDS, Clusters, Store, running


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with running(tmp_path_factory.mktemp("nats")) as clusters:
        yield clusters


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clusters: Clusters) -> Store:
    return Store(request.param, tmp_path, clusters)
