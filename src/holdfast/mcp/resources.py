"""Screen and journal of a session as resources, for clients that show or follow them."""

from __future__ import annotations

import json

from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.bounding import ROWS_MAX, tail
from holdfast.mcp.recorded import head

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
