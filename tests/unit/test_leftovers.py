"""Trees of sessions that nobody holds, and that do not end at once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.adapters.criu import dump
from holdfast.adapters.halt import cgroup
from holdfast.host import levels, takeover
from holdfast.model.limits import DELETED_FILE_MAX_BYTES
from holdfast.model.restore import DumpedTree
from holdfast.model.spec import Place


@pytest.mark.requirement("M9")
def test_what_does_not_end_in_time_is_said_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: dict[str, int] = {"/own/stuck": 2, "/own/revived": 9}
    removed: list[str] = []

    def kill(directory: str, timeout_s: float) -> bool:
        tries[directory] = tries.get(directory, 0) - 1
        return tries[directory] < 0

    def remove(directory: str) -> bool:
        removed.append(directory)
        return True

    monkeypatch.setattr(cgroup, "home", lambda _: "/own")
    monkeypatch.setattr(cgroup, "kill", kill)
    monkeypatch.setattr(cgroup, "remove", remove)
    monkeypatch.setattr(takeover, "_LEFTOVERS_AGAIN_S", 0.0)
    restoring: set[str] = set()
    daemon = SimpleNamespace(
        instance="i",
        registry=SimpleNamespace(live={}),
        continuity=SimpleNamespace(restoring=restoring),
    )

    async def story() -> None:
        left = levels.end_trees("i", ["gone", "stuck", "revived"], 5.0)
        assert (left, removed) == (["stuck", "revived"], ["/own/gone"])
        restoring.add("revived")  # it lives again under that name
        takeover._try_again(cast(Any, daemon), left)
        async with asyncio.timeout(5):
            while "/own/stuck" not in removed:
                await asyncio.sleep(0)

    asyncio.run(story())
    assert removed == ["/own/gone", "/own/stuck"] and tries["/own/revived"] == 8
    assert "stuck, revived" in caplog.text


def test_the_limit_that_preflight_names_is_the_one_that_criu_gets() -> None:
    place, tree = Place(1, 2, "/dev/pts/0", ""), DumpedTree(2, "", (), (), {}, False)
    options = dump._options(place, tree, 3, leave_running=True, locks=False)
    assert options["ghost_limit"] == DELETED_FILE_MAX_BYTES
