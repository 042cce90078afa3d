"""What an agent's looking leaves behind: nothing of what `catch_up` owes it, and no watch after its
client."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from e2e.agents import PATIENCE_S, agent, host_of_otto, served
from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.changes import Changes
from holdfast.mcp.read_tools import ReadTools
from holdfast.mcp.resources import head, journal_lines
from holdfast.model.shell_state import Change, ChangeKind, What
from holdfast.model.size import Size
from holdfast.sdk.aio.session import Session
from holdfast.sdk.plain_text import plain
from process.acting import connected
from process.commanding import Hold
from process.sdking import reached, run


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with host_of_otto("--all") as made:
        yield made


def left_alone(hold: Hold, session: str) -> None:
    """Return once nobody is attached. Each look is a command of its own, so this does not spin."""
    deadline = time.monotonic() + PATIENCE_S / 2
    while hold.json("show", session)["operators"]:
        assert time.monotonic() < deadline, f"somebody still watches {session}"


async def test_whatever_it_looks_at_what_others_did_is_told_by_catch_up(hold: Hold) -> None:
    session = hold.shell("polled")

    async with agent(hold, "otto") as otto:
        cursor = (await otto("observe", session="polled"))["cursor"]
        await otto("catch_up", session="polled")
        changed = ("exec", "polled", "--", "export PATH=/tmp/evil:$PATH; echo done")
        await asyncio.to_thread(hold.ok, *changed)
        seen = await otto("observe", session="polled", since=cursor)
        assert "done" in seen["printed"]
        await otto("read_output", session="polled", offset=cursor)
        await otto("wait", session="polled", text="^done", since=cursor)
        for kind in ("screen", "journal"):
            await otto.resource(f"hold://session/{session}/{kind}")
        told = await otto("catch_up", session="polled")
        assert [each["command"] for each in told["commands"]] == [changed[-1]]
        assert any(each["name"] == "PATH" for each in told["changes"]), told["changes"]
        assert (await otto("catch_up", session="polled"))["commands"] == []


async def test_however_much_happened_it_is_told_in_bounds(hold: Hold) -> None:
    session = hold.shell("much")

    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        desk = AgentDesk(None, "otto", ())
        async with desk.open():
            told = await (await desk.session(session)).catch_up()
            much = told.replace(
                changes=(Change(ChangeKind.ALIAS, "a", What.ADDED, "", "b"),) * 250,
                jobs=("x" * 5000,) * 130,
                unsubmitted="x" * 20_000,
            )
            looks = mock.AsyncMock(return_value=much)
            found: dict[str, list[Any]] = {"changes": [], "jobs": []}
            first: int | None = 0
            pages = 0
            with mock.patch.object(Session, "catch_up", looks):
                while first is not None:
                    answer = await ReadTools(desk).catch_up(session, first=first)
                    assert len(json.dumps(answer)) < 17_000
                    for kind, rows in found.items():
                        rows += answer[kind]  # type: ignore[literal-required]
                    first, pages = answer.get("next"), pages + 1
            assert pages > 5 and looks.await_count == 1, "only the first call is a look"
    assert answer["left_out"] == 0 and answer["requests_refused"] == much.refused
    assert (len(found["changes"]), len(found["jobs"])) == (250, 130)
    assert max(map(len, found["jobs"])) == 1000
    assert (len(answer["text_at_the_prompt"]), answer["cut_chars"]) == (8000, 12_000)


async def test_a_session_with_many_processes_is_shown_in_pages(hold: Hold) -> None:
    session = hold.shell("crowded")

    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        desk = AgentDesk(None, "otto", ())
        async with desk.open():
            graph = await (await desk.session(session)).graph()
            one = graph.processes[0].replace(argv=("x" * 1000,))
            many = graph.replace(
                processes=tuple(one.replace(pid=pid, pid_inside=pid) for pid in range(1, 251))
            )
            pids: list[int] = []
            first: int | None = 0
            with mock.patch.object(Session, "graph", mock.AsyncMock(return_value=many)):
                while first is not None:
                    answer = await ReadTools(desk).graph(session, first=first)
                    assert len(json.dumps(answer)) < 17_000
                    pids += [each["pid"] for each in answer["processes"]]
                    first = answer.get("next")
            assert pids == list(range(1, 251)) and answer["left_out"] == 0


async def test_pages_of_output_lose_nothing_where_they_meet(hold: Hold, tmp_path: Path) -> None:
    piece = "\U0001f41f\x1b[1mü\x1b]0;t\x07\r\n"
    printed = tmp_path / "printed"
    printed.write_text(piece.replace("\r", "") * 8000)
    words = ("sh", "-c", 'cat "$1"; read x', "sh", str(printed))
    session = hold.ok("run", "-d", "--", *words).strip()
    hold.ok("wait", session, "--for", "input", "--timeout", "30")

    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        desk = AgentDesk(None, "otto", ())
        async with desk.open():
            for begin in range(len(piece.encode())):  # the pages meet at each of its bytes
                text, at, more = "", begin, True
                while more:
                    page = await ReadTools(desk).read_output(session, at)
                    assert not page["lost_bytes"]
                    text, at, more = text + page["text"], page["next"], page["more"]
                whole = (piece * 8000).encode()
                assert at == len(whole) and text == plain(whole[begin:]), begin


def test_following_a_journal_asks_nothing_of_the_shell(hold: Hold) -> None:
    """The line that stands at the prompt is asked for by a key, and the shell prints it anew: who
    asked for it whenever something is printed would never come to an end."""
    session = hold.shell("half")
    uri = f"hold://session/{session}/journal"
    hold.ok("keys", "half", "e", "c", "h", "o")
    hold.ok("wait", "half", "--for", "text:echo", "--timeout", "20")
    before = hold.json("show", "half")["output_offset"]

    async def work() -> list[str]:
        async with (
            agent(hold, "otto") as otto,
            otto.client.listen(resource_subscriptions=[uri]) as changes,
        ):
            await anext(changes)
            for count in (1, 2, 3):
                await asyncio.to_thread(hold.ok, "keys", "half", "x")
                while (await otto.resource(uri)).count('"input"') < count + 1:
                    await anext(changes)
            return [json.loads(line)["actor"] for line in (await otto.resource(uri)).splitlines()]

    actors = run(work())
    hold.ok("wait", "half", "--for", "text:echoxxx", "--timeout", "20")
    assert hold.json("show", "half")["output_offset"] == before + 3, actors


async def test_the_end_of_a_long_journal_is_found_from_wherever_one_begins(hold: Hold) -> None:
    session = hold.shell("long")
    with connected(hold) as host:
        for rows in range(260):
            host.resize(session, Size(80, 24 + rows % 2))

    async with reached(hold) as host:
        found = await host.session(session)
        last = [entry.seq async for entry in found.journal()][-1]
        assert last > 260
        for known in (1, 2, 99, 100, 150, last - 100, last - 1, last):
            assert await head(found, known) == last


async def test_what_an_older_client_takes_back_is_watched_no_longer(hold: Hold) -> None:
    session = hold.shell("taken-back")
    uri = f"hold://session/{session}/journal"

    told = asyncio.Event()

    async def hear(message: object) -> None:
        if "updated" in str(getattr(message, "method", "")):
            told.set()

    async with agent(hold, "otto", mode="legacy", message_handler=hear) as otto:
        with pytest.warns(match="subscribe"):
            await otto.client.session.subscribe_resource(uri)
        await asyncio.wait_for(told.wait(), PATIENCE_S)
        await asyncio.to_thread(hold.attached, "taken-back", 1)
        with pytest.warns(match="subscribe"):
            await otto.client.session.unsubscribe_resource(uri)
        await asyncio.to_thread(left_alone, hold, "taken-back")


async def test_a_client_that_left_watches_nothing(hold: Hold) -> None:
    """The server stays, as it does over HTTP."""
    session = hold.shell("left")
    uri = f"hold://session/{session}/screen"

    async with served(hold) as (url, token):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as carrier:
            transport = streamable_http_client(url, http_client=carrier)
            async with Client(transport, mode="legacy") as client:
                with pytest.warns(match="subscribe"):
                    await client.session.subscribe_resource(uri)
                await asyncio.to_thread(hold.attached, "left", 1)
        await asyncio.to_thread(left_alone, hold, "left")


async def test_nothing_is_kept_of_a_session_that_ended(hold: Hold) -> None:
    ended, other = hold.shell("over"), hold.shell("after")
    uri = f"hold://session/{ended}/journal"

    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        desk = AgentDesk(None, "otto", ())
        async with desk.open():
            changes = Changes(desk)
            await desk.screen(*await desk.found(ended))
            assert await journal_lines(desk, ended)
            with changes._watched(uri):
                watch = changes._watches[uri]
                await asyncio.to_thread(hold.ok, "end", ended)
                await asyncio.wait_for(watch, PATIENCE_S)
                assert changes._watches == {}
            for name in (ended, other):
                await desk.found(name)
            assert list(desk._sessions) == [other]
            assert (desk._screens, desk.heads) == ({}, {})
