"""Screen and journal of a session as resources, for clients that show or follow them."""

from __future__ import annotations

import json
from contextlib import aclosing

from mcp_types import Resource

from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.bounding import ROWS_MAX, tail
from holdfast.sdk.aio.session import Session

SCREEN, JOURNAL = "screen", "journal"


def uri_of(session: str, kind: str) -> str:
    return f"hold://session/{session}/{kind}"


def parts_of(uri: str) -> tuple[str, str] | None:
    """Session and kind that a URI names; None when it is not one of ours."""
    scheme, _, rest = uri.partition("://")
    words = rest.split("/")
    if scheme != "hold" or len(words) != 3 or words[0] != "session" or not words[1]:
        return None
    return (words[1], words[2]) if words[2] in (SCREEN, JOURNAL) else None


async def listed(desk: AgentDesk) -> list[Resource]:
    """Those of the sessions there are now: a screen and a journal each."""
    return [
        Resource(
            uri=uri_of(info.id, kind),
            name=f"{info.name}/{kind}",
            title=f"{title} of {info.name}",
            description=f"{title} of the session {info.name}, which is {info.state}",
            mime_type=mime_type,
        )
        for info in (await desk.sessions())[:ROWS_MAX]
        for kind, title, mime_type in (
            (SCREEN, "Screen", "text/plain"),
            (JOURNAL, "Journal", "application/jsonl"),
        )
    ]


async def screen_text(desk: AgentDesk, session: str) -> str:
    screen = await (await desk.session(session)).screen()
    return tail(screen.text.rstrip())[0]


async def journal_lines(desk: AgentDesk, session: str) -> str:
    """The latest entries, one JSON object in a line. What was typed is not in it: that is for
    people who investigate (`hold log`)."""
    found = await desk.session(session)
    last = desk.heads[found.id] = await head(found, desk.heads.get(found.id, 1))
    latest: list[str] = []
    async for entry in found.journal(since=max(1, last - ROWS_MAX + 1)):
        latest.append(
            json.dumps(
                {
                    "seq": entry.seq,
                    "at": entry.at,
                    "actor": entry.actor,
                    "kind": type(entry.body).tag or "unknown",
                }
            )
        )
        del latest[:-ROWS_MAX]
    return "\n".join(latest)


async def head(session: Session, known: int = 1) -> int:
    """The number of a journal's last record. `known`: a number that exists. Found by steps that
    double, then halve. `catch_up` reports it too, but it counts as a look and asks the shell for
    its prompt text, which makes the shell print."""
    step = ROWS_MAX
    while await _has(session, known + step):
        known, step = known + step, 2 * step
    while step > ROWS_MAX:
        step //= 2
        if await _has(session, known + step):
            known += step
    async for entry in session.journal(since=known):
        known = entry.seq
    return known


async def _has(session: Session, seq: int) -> bool:
    async with aclosing(session.journal(since=seq)) as found:
        async for _ in found:
            return True
    return False
