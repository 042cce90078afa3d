"""The async SDK in tests: one event loop for each test, and never without an end."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from holdfast import Hold as Host
from holdfast import Session, connect
from process.commanding import Hold

T = TypeVar("T")

PATIENCE_S = 60.0  # far beyond what anything here takes


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_S))


@asynccontextmanager
async def reached(hold: Hold, actor: str | None = None, on: str = "") -> AsyncIterator[Host]:
    """A host of the tests, by its socket; or `on` a machine that was joined."""
    address = on or f"{hold.home}/run/hold.sock"
    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        async with connect(address, actor=actor, client="test") as host:
            yield host


async def shell(host: Host, name: str) -> Session:
    """A bash at its prompt."""
    environment = {"PS1": "$ ", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    session = await host.run(["bash", "--norc"], name=name, env=environment)
    await session.wait_for(state="prompt", timeout=PATIENCE_S)
    return session


async def until_gone(path: Path) -> None:
    """A file is removed by another process; the kernel has no event for it to us here."""
    while path.exists():
        await asyncio.sleep(0.01)


def lines_of(path: Path) -> list[str]:
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().splitlines()
    return []
