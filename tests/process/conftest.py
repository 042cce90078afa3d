"""Hosts for tests that use the real `hold`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from process.commanding import Hold


@pytest.fixture(scope="module")
def host_home() -> Iterator[Hold]:
    """A host that the tests of one module share; each test names its sessions its own way."""
    with Hold() as hold:
        hold.ok("up", "-d")
        yield hold


@pytest.fixture
def fresh_home() -> Iterator[Hold]:
    """A home with no host yet, for tests that start and stop one."""
    with Hold() as hold:
        yield hold
