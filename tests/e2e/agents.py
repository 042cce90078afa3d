"""An AI agent's client, as the official MCP SDK has it, driving the real `hold mcp`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mcp import Client, StdioServerParameters

from process.acting import add_actor
from process.commanding import HOLD, Hold

PATIENCE_S = 60.0


class Agent:
    """One connected client: tools by name, answers as they were written."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        done = await self.client.call_tool(tool, arguments)
        assert not done.is_error, done
        text = done.content[0].text  # type: ignore[union-attr]
        answer = json.loads(text)
        assert isinstance(answer, dict) and done.structured_content == answer
        assert text == json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return answer

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self(tool, **arguments)
        assert list(answer) == ["refused"], answer
        why: dict[str, Any] = answer["refused"]
        assert why["message"] and why["what_to_do"], why
        return why

    async def resource(self, uri: str) -> str:
        read = await self.client.read_resource(uri, cache_mode="bypass")
        text: str = read.contents[0].text  # type: ignore[union-attr]
        return text


def server(hold: Hold, *words: str) -> StdioServerParameters:
    return StdioServerParameters(command=HOLD, args=list(words), env=hold.env)


@asynccontextmanager
async def agent(hold: Hold, name: str, *words: str, **how: Any) -> AsyncIterator[Agent]:
    """`hold --as NAME mcp`, over its standard input and output."""
    command = server(hold, "--as", name, "mcp", *words)
    async with Client(command, read_timeout_seconds=PATIENCE_S, **how) as client:
        yield Agent(client)


@contextmanager
def host_of_otto(*where: str) -> Iterator[Hold]:
    """A host with an agent called otto, which may work there."""
    with Hold() as made:
        made.ok("up", "-d")
        add_actor(made, "otto", "execute", *where)
        yield made


@asynccontextmanager
async def served(hold: Hold) -> AsyncIterator[tuple[str, str]]:
    """`hold mcp --http 0`: its URL and its token."""
    server = await asyncio.to_thread(hold.start, "--as", "otto", "mcp", "--http", "0")
    try:
        assert server.stderr is not None
        url = (await asyncio.to_thread(server.stderr.readline)).decode().strip()
        line = (await asyncio.to_thread(server.stderr.readline)).decode()
        said = re.fullmatch(r"Authorization: Bearer (\S+)\n", line)
        assert said is not None, (url, line)
        yield url, said[1]
    finally:
        server.terminate()
        await asyncio.to_thread(server.wait, PATIENCE_S)
        for pipe in (server.stdout, server.stderr):
            assert pipe is not None
            pipe.close()
