"""Tools that only read. None of them needs the turn, and none changes anything."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Annotated, Any, cast

from pydantic import Field

from holdfast.mcp import answers
from holdfast.mcp.agent_desk import WAIT_MAX_S, AgentDesk
from holdfast.mcp.bounding import (
    CELL_MAX_CHARS,
    ROWS_MAX,
    TEXT_MAX_CHARS,
    FirstRow,
    MaxChars,
    first_page,
    one_line,
    rows_from,
    rows_of,
    tail,
)
from holdfast.model.errors import InvalidArgument, TimedOut
from holdfast.model.graph import Process
from holdfast.model.info import CommandRecord, SessionInfo
from holdfast.model.state import SessionState
from holdfast.model.turn_info import Handoff
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import LiveGraph, Screen, StateName, TurnState
from holdfast.sdk.settled_text import settled

SessionName = Annotated[str, Field(description="name or whole id", min_length=1, max_length=200)]
Wait = Annotated[float, Field(description="seconds to wait at most", ge=0, le=WAIT_MAX_S)]
Port = Annotated[int, Field(ge=1, le=65535)]
_OFFSET_MAX = (1 << 63) - 1  # a message carries no larger number
Cursor = Annotated[int, Field(ge=0, le=_OFFSET_MAX)]

_PORT_CHARS = 24  # of one port and its pid, in an answer
_PROMPT_TEXT_CHARS = TEXT_MAX_CHARS // 2  # the rest of the answer is for what happened
_PAGE_BYTES = 128 << 10  # looked at for one page: progress takes many bytes for few characters
_LOST_NOTE = (
    "lost: how it would have ended is not known, so do not assume that its last command completed"
)
_ASLEEP_NOTE = "asleep: it is on disk, with its processes as they were; restore brings it back"


class ReadTools:
    """The public methods are the tools, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def list_sessions(
        self,
        ended: Annotated[bool, Field(description="also those that ended recently")] = False,
        first: FirstRow = 0,
    ) -> answers.SessionsAnswer:
        """List the sessions you may see: name, what each does or waits for, who holds the turn.
        Those with the state `lost` are gone and nobody has acknowledged it yet; those that are
        `asleep` can be restored. Sessions are shared with people and other agents and go on
        without you."""
        found = await self._desk.sessions(ended=ended, lost=True)
        page = rows_from(map(_listed, found), first)
        return {"sessions": page.rows, **page.behind}

    async def list_operators(
        self, session: SessionName, first: FirstRow = 0
    ) -> answers.OperatorsAnswer:
        """Who is attached to a session now, with which program, and who holds or waits for the
        turn. Names from here can be given to hand_to."""
        found, info = await self._desk.found(session)
        turn = await found.turn_state()
        waiting = {each.name for each in turn.turn.queue}
        present: list[answers.OperatorRow] = [
            {
                "name": each.name,
                "client": one_line(each.client, 100),
                "only_watches": each.observe,
                "holds_turn": each.actor == turn.turn.holder,
                "waits_for_turn": each.name in waiting,
                "since_s": round(max(0.0, time.time() - each.since)),
            }
            for each in info.present
        ]
        page = rows_from(present, first)
        shown: answers.OperatorsAnswer = {"operators": page.rows, "turn": shown_turn(turn)}
        shown = {**shown, **page.behind}
        shown["left_out"] += info.operators - len(present)  # of which the host names no more
        return shown

    async def observe(
        self,
        session: SessionName,
        since: Annotated[
            Cursor | None,
            Field(description="the cursor of an earlier answer: then only what changed is given"),
        ] = None,
        max_chars: MaxChars = TEXT_MAX_CHARS,
    ) -> answers.ObserveAnswer:
        """Look at a session: its screen as text, its state and what it waits for, who holds the
        turn, and a cursor. With `since`, `changed` says whether anything was printed; then
        `printed` is what was, or of a full-screen program `changed_rows`, in place of the whole
        screen. This disturbs nobody."""
        found, info = await self._desk.found(session)
        before = self._desk.last_screen(found)
        looking, yours = self._desk.screen(found, info), False
        if info.holder:
            screen, yours = await asyncio.gather(looking, _is_ours(found, info))
        else:
            screen = await looking
        shown = cast(answers.ObserveAnswer, present(info, yours=yours))
        shown["cursor"] = screen.offset
        if since is not None and since == screen.offset:
            return {**shown, "changed": False}
        shown |= {
            "changed": True,
            "size": str(screen.size),
            "title": one_line(screen.title),
            "cursor_position": {"col": screen.cursor.col, "row": screen.cursor.row},
            "full_screen_program": screen.alternate,
        }
        if since is not None and since < screen.offset:
            if screen.alternate:
                if before is not None and _comparable(before, screen, since):
                    rows = _changed_rows(before, screen)
                    if sum(map(len, rows.values())) <= max_chars:
                        return {**shown, "changed_rows": rows}
            elif info.ending is None:
                text, left_out, drawn = await _printed(found, since, screen.offset, max_chars)
                if not drawn:
                    return {**shown, "printed": text, "printed_lost_bytes": left_out}
        text, cut = tail(screen.text.rstrip(), max_chars)
        return {**shown, "screen": text, "cut_chars": cut}

    async def read_output(
        self,
        session: SessionName,
        offset: Annotated[Cursor, Field(description="where to begin: a cursor, or 0")],
        max_chars: MaxChars = TEXT_MAX_CHARS,
    ) -> answers.PageAnswer:
        """Read what a session printed, from an offset on, one page at a time: text without escape
        sequences, each progress line in its last state, nothing of what full-screen programs drew;
        and `next` to go on from, now or when more was printed. `lost_bytes` before it are no
        longer held."""
        found, info = await self._desk.found(session)
        head = info.output_offset
        if offset >= head:
            return {"text": "", "next": head, "more": False, "lost_bytes": 0}
        data, begin = await _bytes(found, offset, min(head, offset + _PAGE_BYTES))
        text, taken = first_page(data, max_chars, last=begin + len(data) >= head)
        shown: answers.PageAnswer = {
            "text": text.text,
            "next": begin + taken,
            "more": begin + taken < begin + len(data) or begin + len(data) < head,
            "lost_bytes": begin - offset,
        }
        if text.full_screen:
            shown["full_screen_program"] = True
        return shown

    async def graph(
        self,
        session: SessionName,
        port: Annotated[
            Port | None,
            Field(description="ask about one TCP port: is it listening, and whose is it"),
        ] = None,
        first: FirstRow = 0,
    ) -> answers.GraphAnswer:
        """What really runs in a session, from the kernel: processes with their parents, working
        directories and ports; pids as programs in the session see them, and the host's. With
        `port`, whether something of this session listens there."""
        graph = await (await self._desk.session(session)).graph()
        if port is not None:
            owner = graph.listening(port)
            return {
                "port": port,
                "listening": owner is not None,
                "owner": None if owner is None else _process(owner, graph),
            }
        ports = list(graph.ports().items())[:ROWS_MAX]
        room = TEXT_MAX_CHARS - _PORT_CHARS * len(ports)
        page = rows_from((_process(each, graph) for each in graph.processes), first, room)
        shown: answers.GraphAnswer = {
            "processes": page.rows,
            "ports": {str(number): who.pid_inside for number, who in ports},
        }
        return {**shown, **page.behind}

    async def catch_up(
        self,
        session: SessionName,
        include_own: Annotated[bool, Field(description="list your own commands too")] = False,
        first: FirstRow = 0,
    ) -> answers.CatchUpAnswer:
        """What others did in a session since you last called this: commands by whom with their
        status, changes of directory, environment, aliases and jobs, text left at the prompt
        (`text_known` false: there may be some, the shell did not say). Call it when you come back,
        and whenever the turn comes to you. With `first` you get more of what the last call found,
        and nothing is looked at."""
        handoff = await self._desk.handoff(await self._desk.session(session), again=first > 0)
        me = (await self._desk.hold()).host.actor
        commands = [each for each in handoff.commands if include_own or each.actor != me]
        line, cut = tail(handoff.unsubmitted, _PROMPT_TEXT_CHARS)
        page = rows_from(_happened(handoff, commands), first, TEXT_MAX_CHARS - len(line))
        shown: answers.CatchUpAnswer = {
            "journal_records": [handoff.since_seq + 1, handoff.through_seq],
            "commands": rows_of("command", page.rows),
            "commands_left_out": handoff.commands_left_out,
            "own_commands": len(handoff.commands) - len(commands),
            "turn_moves": rows_of("move", page.rows),
            "directory": handoff.cwd,
            "changes": rows_of("change", page.rows),
            "changes_known": handoff.changes_known,
            "jobs": rows_of("job", page.rows),
            "text_at_the_prompt": line,
            "text_known": handoff.unsubmitted_known,
            "cut_chars": cut,
            "typed_by": list(handoff.unsubmitted_by[:ROWS_MAX]),
            "requests_refused": handoff.refused,
            "halted": handoff.halted,
        }
        return {**shown, **page.behind}

    async def why(
        self,
        session: SessionName,
        target: Annotated[
            str,
            Field(
                description="var:NAME, alias:NAME, func:NAME, cwd, pid:N (of the host), port:N, "
                "file:PATH, line:N of the scrollback, or command:N",
                min_length=1,
                max_length=4096,
            ),
        ],
        first: FirstRow = 0,
    ) -> answers.WhyAnswer:
        """Who is behind something in a session: the actors that set, started, wrote or printed it,
        and the chain of commands by which it came about. Ask before you rely on state that others
        may have left."""
        found = await (await self._desk.session(session)).why(target)
        chain: list[answers.ChainRow] = [
            {
                "command": link.number,
                "text": one_line(link.text, CELL_MAX_CHARS),
                "by": link.actor,
                "typed_by": list(link.authors),
                "at": link.at,
                "did": one_line(link.what, CELL_MAX_CHARS),
            }
            for link in found.chain
        ]
        page = rows_from(chain, first)
        return {
            "target": one_line(found.target, CELL_MAX_CHARS),
            "known": found.known,
            "originators": list(found.originators[:ROWS_MAX]),
            "trigger": found.trigger,
            "chain": page.rows,
            "adopted": found.adopted,
            "note": one_line(found.note),
            **page.behind,
        }

    async def wait(
        self,
        session: SessionName,
        state: Annotated[StateName | None, Field(description="wait for this state")] = None,
        text: Annotated[
            str | None,
            Field(
                description="a regular expression (RE2 syntax), matched by lines",
                min_length=1,
                max_length=1000,
            ),
        ] = None,
        port: Annotated[
            Port | None, Field(description="a TCP port that something listens on")
        ] = None,
        since: Annotated[
            Cursor | None,
            Field(description="for text: only in what was printed from this cursor on"),
        ] = None,
        seconds: Wait = 20.0,
    ) -> answers.WaitAnswer:
        """Wait until a session is in a state, prints a text, or listens on a port: one of them.
        Comes back at the latest after `seconds`, with `happened` false when it did not; call again
        to go on waiting."""
        if [state, text, port].count(None) != 2:
            raise InvalidArgument(
                "wait for one of state, text, port", hint="give exactly one of the three"
            )
        found = await self._desk.session(session)
        waited: answers.WaitAnswer = {"happened": True}
        try:
            if state == "ended":
                await found.wait_for(ended=True, timeout=seconds)
            elif state is not None:
                await found.wait_for(state=state, timeout=seconds)
            elif text is not None:
                waited["line"] = one_line(
                    await found.wait_for(text=text, since=since, timeout=seconds)
                )
            elif port is not None:
                owner = await found.wait_for(port=port, timeout=seconds)
                waited["owner"] = _process(owner, await found.graph())
        except TimedOut:
            waited = {"happened": False}
        info = await found.info()
        return {**waited, **present(info, yours=await _is_ours(found, info))}


def _happened(handoff: Handoff, commands: Iterable[CommandRecord]) -> list[tuple[str, Any]]:
    """The rows of what happened, each with its kind."""
    return [
        *(("command", _command(each)) for each in commands),
        *(
            (
                "move",
                {
                    "step": move.step,
                    "from": move.before,
                    "to": move.holder,
                    "reason": one_line(move.reason),
                },
            )
            for move in handoff.moves
        ),
        *(("change", _cells(each.pack())) for each in handoff.changes),
        *(("job", one_line(job)) for job in handoff.jobs),
    ]


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: one_line(cell, CELL_MAX_CHARS) if isinstance(cell, str) else cell
        for key, cell in row.items()
    }


def _listed(info: SessionInfo) -> answers.SessionRow:
    shown: answers.SessionRow = {
        "name": info.name,
        "id": info.id,
        "state": info.state.value,
        "waits_for": one_line(info.waiting_line),
        "turn_holder": info.holder,
        "operators": info.operators,
        "directory": one_line(info.cwd, CELL_MAX_CHARS),
        "command": " ".join(info.argv)[:200],
        "last_command": _command(info.last_command) if info.last_command else None,
        "labels": list(info.labels),
        "age_s": round(max(0.0, time.time() - info.created_at)),
    }
    if info.full_screen:
        shown["full_screen_program"] = True
    if info.ending is not None:
        shown["ending"] = info.ending.pack()
    if info.state is SessionState.LOST:
        shown["note"] = _LOST_NOTE
    if info.state is SessionState.ASLEEP:
        shown["note"] = _ASLEEP_NOTE
    return shown


async def _is_ours(session: Session, info: SessionInfo) -> bool:
    """Whether this agent holds the turn. The holder's name is not enough: another actor may have
    it."""
    return info.holder != "" and (await session.turn_state()).yours


def present(info: SessionInfo, *, yours: bool) -> answers.PresentAnswer:
    shown: answers.PresentAnswer = {
        "session": info.name,
        "state": info.state.value,
        "waits_for": one_line(info.waiting_line),
        "turn": {"holder": info.holder, "yours": yours, "waiting": list(info.waiting)},
    }
    if info.ending is not None:
        shown["ending"] = info.ending.pack()
    return shown


def shown_turn(state: TurnState) -> answers.TurnRow:
    return {
        "holder": state.holder,
        "yours": state.yours,
        "waiting": [each.name for each in state.turn.queue],
    }


def _command(record: CommandRecord) -> answers.CommandRow:
    return {
        "command": one_line(record.text, CELL_MAX_CHARS),
        "by": record.actor,
        "status": record.status,
        "directory": one_line(record.cwd, CELL_MAX_CHARS),
        "seconds": None if record.ended_at is None else round(record.ended_at - record.began_at, 3),
    }


def _process(process: Process, graph: LiveGraph) -> answers.ProcessRow:
    parent = next((each for each in graph.processes if each.pid == process.ppid), None)
    return {
        "pid": process.pid_inside,
        "host_pid": process.pid,
        "parent": 0 if parent is None else parent.pid_inside,
        "command": one_line(" ".join(process.argv) or process.name, CELL_MAX_CHARS),
        "directory": one_line(process.cwd, CELL_MAX_CHARS),
        "state": process.state,
        "waits_for": process.waits_for,
        "listens": [each.local for each in process.sockets if each.state == "listen"][:ROWS_MAX],
    }


def _comparable(before: Screen, now: Screen, since: int) -> bool:
    return before.offset == since and before.alternate and before.size == now.size


def _changed_rows(before: Screen, now: Screen) -> dict[str, str]:
    old = before.lines
    return {
        str(row): line.rstrip()
        for row, line in enumerate(now.lines)
        if row >= len(old) or old[row] != line
    }


async def _printed(session: Session, since: int, until: int, limit: int) -> tuple[str, int, bool]:
    """What was printed between two offsets: its end, when it is long; how much was left out; and
    whether a full-screen program drew meanwhile."""
    begin = max(since, until - _PAGE_BYTES)
    data, start = await _bytes(session, begin, until)
    read = settled(data)
    text, cut = tail(read.text, limit)
    return text, start - since + cut, read.full_screen


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
