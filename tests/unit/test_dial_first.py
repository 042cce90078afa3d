"""Several relays lead to a host: the first that works is used, and who hangs is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from holdfast.dial.first_reached import HEAD_START_S, first_of
from holdfast.model.errors import HoldfastError, HostDown, RelayUnreachable
from unit.virtual_time import VirtualLoop

T = TypeVar("T")
HANGS_S = 10.0


def played(scene: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(scene)


class Ways:
    """Each takes so long, and then gives itself or fails."""

    def __init__(self, **ways: tuple[float, HoldfastError | None]) -> None:
        self._ways = ways
        self.tried: list[str] = []
        self.given_up: list[str] = []
        self.discarded: list[str] = []

    async def go(self, way: str) -> str:
        self.tried.append(way)
        takes_s, error = self._ways[way]
        try:
            await asyncio.sleep(takes_s)
        except asyncio.CancelledError:
            self.given_up.append(way)
            raise
        if error is not None:
            raise error
        return way

    def first(self) -> tuple[str, float]:
        """Which one, and after how long."""

        async def scene() -> tuple[str, float]:
            began = asyncio.get_running_loop().time()
            found = await first_of(list(self._ways), self.go, self.discarded.append)
            return found, round(asyncio.get_running_loop().time() - began, 3)

        return played(scene())


def test_one_that_answers_is_the_only_one_that_is_asked() -> None:
    ways = Ways(a=(0.3, None), b=(0.0, None))
    assert ways.first() == ("a", 0.3)
    assert ways.tried == ["a"]


@pytest.mark.requirement("F5")
def test_one_that_hangs_costs_its_head_start_and_is_given_up() -> None:
    ways = Ways(a=(HANGS_S, None), b=(HANGS_S, None), c=(0.2, None))
    assert ways.first() == ("c", round(2 * HEAD_START_S + 0.2, 3))
    assert sorted(ways.given_up) == ["a", "b"]


@pytest.mark.requirement("F5", "R4")
@pytest.mark.parametrize("error", [RelayUnreachable("gone"), HoldfastError("it says nonsense")])
def test_one_that_fails_costs_nothing_whatever_it_says(error: HoldfastError) -> None:
    ways = Ways(a=(0.1, error), b=(0.2, None))
    assert ways.first() == ("b", 0.3)


def test_one_that_was_slow_may_still_be_the_first() -> None:
    ways = Ways(a=(HEAD_START_S + 0.1, None), b=(5.0, None))
    assert ways.first() == ("a", round(HEAD_START_S + 0.1, 3))
    assert ways.given_up == ["b"]


def test_of_two_at_the_same_time_one_is_let_go() -> None:
    ways = Ways(a=(HEAD_START_S + 0.5, None), b=(0.5, None))
    found, _ = ways.first()
    assert sorted([found, *ways.discarded, *ways.given_up]) == ["a", "b"]


def test_when_all_fail_somebodys_answer_is_told_rather_than_nobodys() -> None:
    ways = Ways(
        a=(0.1, RelayUnreachable("nobody")),
        b=(0.2, HostDown("the host is not here")),
        c=(0.1, RelayUnreachable("nobody")),
    )
    with pytest.raises(HostDown):
        ways.first()
    assert ways.tried == ["a", "b", "c"]


def test_who_no_longer_wants_it_leaves_nothing_running() -> None:
    ways = Ways(a=(HANGS_S, None), b=(HANGS_S, None))

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(HEAD_START_S + 1.0):
                await first_of(["a", "b"], ways.go, ways.discarded.append)
        assert sorted(ways.given_up) == ["a", "b"]

    played(scene())
