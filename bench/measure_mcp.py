"""An agent looks at an idle session: the tool `observe` of `hold mcp`, by the official client over
standard input and output, against the same look by the SDK in a program of its own.

Such a look tells what the session is and does and what its screen shows: the SDK asks for the one,
then for the other. The tool does likewise at its first look; while the session prints nothing it
has the screen already and asks only once. So one request by the SDK is given too, and what the
protocol takes by itself: the same client and server with a tool that asks nothing of the host
(`result`, of no command). No look can be faster than that.
"""

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

    def row(name: str, value: str, beside: str, baseline: str, target: Target | None = None) -> Row:
        own = {"holdfast": values[value]}
        return Row(name, "ms", own, beside, baseline=values[baseline], target=target)

    first = "an agent's look at an idle session, p50"
    return [
        row(first, "look", "the SDK", "sdk", Target("<=", 2)),
        row("the same, against one request", "look", "the SDK", "sdk, one request"),
        row(
            "an agent's call that asks nothing of the host, p50", "nothing", "the SDK's look", "sdk"
        ),
    ]


async def _look(host: Holdfast, times: int) -> Samples:
    """By turns, so that all meet the same machine."""
    from mcp import Client, StdioServerParameters

    from holdfast import connect

    server = StdioServerParameters(
        command=host.program, args=["--as", _AGENT, "mcp"], env=dict(host.env)
    )
    async with connect(host.socket) as hold, Client(server) as client:

        async def by_sdk() -> None:
            session = await hold.session("looked-at")
            await session.screen()

        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "sdk": by_sdk,
            "sdk, one request": partial(hold.session, "looked-at"),
            "look": partial(client.call_tool, "observe", {"session": "looked-at"}),
            "nothing": partial(client.call_tool, "result", {"handle": ""}),
        }
        samples: Samples = {name: [] for name in ways}
        for _ in range(times):
            for name, look in ways.items():
                began = time.perf_counter()
                await look()
                samples[name].append((time.perf_counter() - began) * 1000)
    return samples
