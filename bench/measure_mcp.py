"""An agent looks at an idle session: the tool `observe` of `hold mcp`, by the official client over
standard input and output, against the same look by the SDK in a program of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from bench.results import Row, Target
from bench.sampling import Samples, percentile
from bench.stage import Stage
from bench.systems import Holdfast

_LOOKS = 200
_AGENT = "otto"


def measure(stage: Stage) -> list[Row]:
    (host,) = stage.systems(("holdfast",))
    assert isinstance(host, Holdfast)
    for words in (
        ("run", "-d", "--name", "looked-at", "--", "bash", "--norc"),
        ("wait", "looked-at", "--for", "prompt"),
        ("actor", "add", _AGENT, "--kind", "agent"),
        ("grant", _AGENT, "execute", "--all"),
    ):
        host.command([host.program, *words])
    samples = asyncio.run(_look(host, min(_LOOKS, stage.scale.keys)))
    host.command([host.program, "end", "looked-at"])
    values = {name: percentile(taken[len(taken) // 10 :], 50) for name, taken in samples.items()}
    return [
        Row(
            "an agent's look at an idle session, p50", "ms", {"holdfast": values["mcp"]}, "the SDK",
            baseline=values["sdk"], target=Target("<=", 2),
        )
    ]  # fmt: skip


async def _look(host: Holdfast, times: int) -> Samples:
    """By turns, so that both meet the same machine."""
    from mcp import Client, StdioServerParameters

    from holdfast import Session, connect

    async def by_sdk(session: Session) -> None:
        await session.info()
        await asyncio.gather(session.screen(), session.turn_state())

    server = StdioServerParameters(
        command=host.program, args=["--as", _AGENT, "mcp"], env=dict(host.env)
    )
    samples: Samples = {"sdk": [], "mcp": []}
    async with connect(host.socket) as hold, Client(server) as client:
        session = await hold.session("looked-at")
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "sdk": partial(by_sdk, session),
            "mcp": partial(client.call_tool, "observe", {"session": "looked-at"}),
        }
        for _ in range(times):
            for name, look in ways.items():
                began = time.perf_counter()
                await look()
                samples[name].append((time.perf_counter() - began) * 1000)
    return samples
