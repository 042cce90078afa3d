"""The same server over HTTP, and resources that tell when they changed, to clients of both
generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated

from e2e.agents import PATIENCE_S, Agent, agent, host_of_otto, served
from process.commanding import Hold
from process.sdking import run


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with host_of_otto("--all") as made:
        yield made


async def test_over_http_with_the_token(hold: Hold) -> None:
    hold.shell("http")

    async with served(hold) as (url, token):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as carrier:
            transport = streamable_http_client(url, http_client=carrier)
            async with Client(transport, read_timeout_seconds=PATIENCE_S) as client:
                done = await Agent(client)(
                    "submit", session="http", command="echo over http", intent="try"
                )
                assert (done["status"], done["output"]) == (0, "over http\n")


def test_nobody_else_gets_in_over_http(hold: Hold) -> None:
    """Not without the token, and not a page in a browser, by whatever name it calls us."""

    def ask(url: str, token: str, header: str, value: str) -> int:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            header: value,
        }
        try:
            request = urllib.request.Request(url, body, headers)
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    async def work() -> list[int]:
        async with served(hold) as (url, token):
            return [
                await asyncio.to_thread(ask, url, token, header, value)
                for header, value in (
                    ("Authorization", "Bearer guessed"),
                    ("Authorization", ""),
                    ("Origin", "http://evil.example"),
                    ("Host", "evil.example"),
                )
            ]

    assert run(work()) == [401, 401, 403, 421]


def test_only_loopback_is_served(hold: Hold) -> None:
    said = hold.fails("invalid_argument", "--as", "otto", "mcp", "--http", "0.0.0.0:0")
    assert "loopback" in said


async def test_a_screen_tells_its_subscriber_that_it_changed(hold: Hold) -> None:
    session = hold.shell("told")
    uri = f"hold://session/{session}/screen"

    async with agent(hold, "otto") as otto:
        before = await otto.resource(uri)
        async with otto.client.listen(resource_subscriptions=[uri]) as changes:
            await asyncio.to_thread(hold.ok, "exec", "told", "--", "echo changed")
            async for event in changes:
                assert isinstance(event, ResourceUpdated) and str(event.uri) == uri
                after = await otto.resource(uri)
                if "\nchanged" in after:
                    break
        assert "changed" not in before


async def test_a_journal_tells_its_subscriber_that_it_grew(hold: Hold) -> None:
    session = hold.shell("recorded")
    uri = f"hold://session/{session}/journal"

    async with (
        agent(hold, "otto") as otto,
        otto.client.listen(resource_subscriptions=[uri]) as changes,
    ):
        await asyncio.to_thread(hold.ok, "exec", "recorded", "--", "true")
        async for _ in changes:
            kinds = [json.loads(line)["kind"] for line in (await otto.resource(uri)).split("\n")]
            if "command_ended" in kinds:
                break


async def test_a_client_of_the_older_protocol_is_told_too(hold: Hold) -> None:
    session = hold.shell("older")
    uri = f"hold://session/{session}/screen"

    told = asyncio.Event()

    async def hear(message: object) -> None:
        if "updated" in str(getattr(message, "method", "")):
            told.set()

    async with agent(hold, "otto", mode="legacy", message_handler=hear) as otto:
        with pytest.warns(match="subscribe"):
            await otto.client.session.subscribe_resource(uri)
        await asyncio.to_thread(hold.ok, "exec", "older", "--", "echo changed")
        await asyncio.wait_for(told.wait(), PATIENCE_S)
        assert "changed" in await otto.resource(uri)
