"""Tools that only read. None of them needs the turn, and none changes anything."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from pydantic import Field

from holdfast.mcp.agent_desk import AgentDesk, bounded_wait
from holdfast.mcp.bounding import ROWS_MAX, TEXT_MAX_CHARS, one_line, tail
from holdfast.mcp.refusing import Answer
from holdfast.model.errors import InvalidArgument, TimedOut
from holdfast.model.graph import Process
from holdfast.model.info import CommandRecord, SessionInfo
from holdfast.sdk.aio.session import Session
from holdfast.sdk.plain_text import page, plain

SessionName = Annotated[str, Field(description="name or whole id")]
Wait = Annotated[float, Field(description="seconds to wait at most; 55 is the limit")]

_PAGE_BYTES = 64 << 10


class ReadTools:
    """The public methods are the tools, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def list_sessions(
        self,
        ended: Annotated[bool, Field(description="also those that ended recently")] = False,
    ) -> Answer:
        """List the live sessions you may see: name, what each does or waits for, who holds the
        turn. Sessions are shared with people and other agents and go on without you."""
        found = await self._desk.sessions(ended=ended)
        return {
            "sessions": [_listed(info) for info in found[:ROWS_MAX]],
            "left_out": max(0, len(found) - ROWS_MAX),
        }

    async def observe(
        self,
        session: SessionName,
        since: Annotated[
            int | None,
            Field(description="the cursor of an earlier answer: then only what changed is given"),
        ] = None,
    ) -> Answer:
        """Look at a session: its screen as text, its state and what it waits for, who holds the
        turn, and a cursor. With `since`, `changed` says whether anything was printed, and `printed`
        is what was; an unchanged screen is not sent again. This disturbs nobody."""
        found, info = await self._desk.found(session)
        looking, yours = self._desk.screen(found, info), False
        if info.holder:
            screen, yours = await asyncio.gather(looking, _is_ours(found, info))
        else:
            screen = await looking
        answer = _present(info, yours=yours)
        answer["cursor"] = screen.offset
        if since is not None and since == screen.offset:
            return {**answer, "changed": False}
        text, cut = tail(screen.text.rstrip())
        answer |= {
            "changed": True,
            "screen": text,
            "cut_chars": cut,
            "size": str(screen.size),
            "title": one_line(screen.title),
            "cursor_position": {"col": screen.cursor.col, "row": screen.cursor.row},
            "full_screen_program": screen.alternate,
        }
        if since is not None and since < screen.offset and not screen.alternate:
            answer["printed"], answer["printed_lost_bytes"] = await _printed(
                found, since, screen.offset
            )
        return answer

    async def read_output(
        self,
        session: SessionName,
        offset: Annotated[int, Field(description="where to begin: a cursor, or 0", ge=0)],
    ) -> Answer:
        """Read what a session printed, from an offset on, one page at a time: text without escape
        sequences, and `next` to go on from, now or when more was printed. `lost_bytes` before it
        are no longer held."""
        found, info = await self._desk.found(session)
        head = info.output_offset
        if offset >= head:
            return {"text": "", "next": head, "more": False, "lost_bytes": 0}
        data, begin = await _bytes(found, offset, min(head, offset + _PAGE_BYTES))
        more = begin + len(data) < head
        text, taken = page(data, last=not more)
        return {
            "text": text,
            "next": begin + taken,
            "more": more,
            "lost_bytes": begin - offset,
        }

    async def graph(
        self,
        session: SessionName,
        port: Annotated[
            int | None,
            Field(description="ask about one TCP port: is it listening, and whose is it"),
        ] = None,
    ) -> Answer:
        """What really runs in a session, from the kernel: processes with their parents, working
        directories and ports. With `port`, whether something of this session listens there."""
        graph = await (await self._desk.session(session)).graph()
        if port is not None:
            owner = graph.listening(port)
            return {
                "port": port,
                "listening": owner is not None,
                "owner": None if owner is None else _process(owner),
            }
        return {
            "processes": [_process(each) for each in graph.processes[:ROWS_MAX]],
            "left_out": max(0, len(graph.processes) - ROWS_MAX),
            "ports": {str(number): who.pid for number, who in graph.ports().items()},
        }

    async def catch_up(self, session: SessionName) -> Answer:
        """What others did in a session since you last called this: commands by whom with their
        status, changes of directory, environment, aliases and jobs, text left at the prompt
        (`text_known` false: there may be some, the shell did not say). Call it when you come back,
        and whenever the turn comes to you."""
        handoff = await (await self._desk.session(session)).catch_up()
        line, cut = tail(handoff.unsubmitted)
        return {
            "journal_records": [handoff.since_seq + 1, handoff.through_seq],
            "commands": [_command(each) for each in handoff.commands],
            "commands_left_out": handoff.commands_left_out,
            "turn_moves": [
                {
                    "step": move.step,
                    "from": move.before,
                    "to": move.holder,
                    "reason": one_line(move.reason),
                }
                for move in handoff.moves
            ],
            "directory": handoff.cwd,
            "changes": [each.pack() for each in handoff.changes[:ROWS_MAX]],
            "changes_left_out": max(0, len(handoff.changes) - ROWS_MAX),
            "changes_known": handoff.changes_known,
            "jobs": [one_line(job) for job in handoff.jobs[:ROWS_MAX]],
            "jobs_left_out": max(0, len(handoff.jobs) - ROWS_MAX),
            "text_at_the_prompt": line,
            "text_known": handoff.unsubmitted_known,
            "text_at_the_prompt_known": handoff.unsubmitted_known,
            "cut_chars": cut,
            "typed_by": list(handoff.unsubmitted_by[:ROWS_MAX]),
            "writes_refused": handoff.refused,
            "halted": handoff.halted,
        }

    async def wait(
        self,
        session: SessionName,
        state: Annotated[
            str,
            Field(description="one of working, prompt, input, secret, stopped, halted, ended"),
        ] = "",
        text: Annotated[str, Field(description="a regular expression, matched by lines")] = "",
        port: Annotated[int, Field(description="a TCP port that something listens on")] = 0,
        since: Annotated[
            int | None, Field(description="for text: only in what was printed from this cursor on")
        ] = None,
        seconds: Wait = 20.0,
    ) -> Answer:
        """Wait until a session is in a state, prints a text, or listens on a port: one of them.
        Comes back at the latest after `seconds`, with `happened` false when it did not; call again
        to go on waiting."""
        if [bool(state), bool(text), bool(port)].count(True) != 1:
            raise InvalidArgument("wait for one of state, text, port")
        found = await self._desk.session(session)
        limit = bounded_wait(seconds)
        answer: Answer = {"happened": True}
        try:
            if state == "ended":
                await found.wait_for(ended=True, timeout=limit)
            elif state:
                await found.wait_for(state=state, timeout=limit)
            elif text:
                answer["line"] = one_line(
                    await found.wait_for(text=text, since=since, timeout=limit)
                )
            else:
                answer["owner"] = _process(await found.wait_for(port=port, timeout=limit))
        except TimedOut:
            answer = {"happened": False}
        info = await found.info()
        return answer | _present(info, yours=await _is_ours(found, info))


def _listed(info: SessionInfo) -> Answer:
    return {
        "name": info.name,
        "id": info.id,
        "state": str(info.state),
        "waits_for": one_line(info.waiting_line),
        "turn_holder": info.holder,
        "operators": info.operators,
        "directory": info.cwd,
        "command": " ".join(info.argv)[:200],
        "last_command": _command(info.last_command) if info.last_command else None,
        "labels": list(info.labels),
        "age_s": round(max(0.0, time.time() - info.created_at)),
    }


async def _is_ours(session: Session, info: SessionInfo) -> bool:
    """Whether this agent holds the turn. The holder's name is not enough: another actor may have
    it."""
    return info.holder != "" and (await session.turn_state()).yours


def _present(info: SessionInfo, *, yours: bool) -> Answer:
    return {
        "session": info.name,
        "state": str(info.state),
        "waits_for": one_line(info.waiting_line),
        "turn": {"holder": info.holder, "yours": yours, "waiting": list(info.waiting)},
        **({"ending": info.ending.pack()} if info.ending is not None else {}),
    }


def _command(record: CommandRecord) -> Answer:
    return {
        "command": one_line(record.text, 400),
        "by": record.actor,
        "status": record.status,
        "directory": record.cwd,
        "seconds": None if record.ended_at is None else round(record.ended_at - record.began_at, 3),
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "parent": process.ppid,
        "command": one_line(" ".join(process.argv) or process.name, 400),
        "directory": process.cwd,
        "state": process.state,
        "listens": [each.local for each in process.sockets if each.state == "listen"],
    }


async def _printed(session: Session, since: int, until: int) -> tuple[str, int]:
    """What was printed between two offsets: its end, when it is long."""
    begin = max(since, until - 4 * TEXT_MAX_CHARS)
    data, start = await _bytes(session, begin, until)
    text, cut = tail(plain(data))
    return text, start - since + cut


async def _bytes(session: Session, begin: int, until: int) -> tuple[bytes, int]:
    """What is held of these bytes, and where it begins."""
    found, start = b"", begin
    pieces = session.output(since=begin)
    try:
        async for piece in pieces:
            if not found:
                start = piece.offset
            found += piece.data
            if piece.end >= until:
                break
    finally:
        await pieces.aclose()
    return found[: max(0, until - start)], start
