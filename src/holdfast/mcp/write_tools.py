"""Tools that write. The host checks each like any operator's input: the agent's envelope, and the
turn. Writing takes a free turn."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.mcp import answers
from holdfast.mcp.agent_command import ASKING, AgentCommand
from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.bounding import (
    CELL_MAX_CHARS,
    TEXT_MAX_CHARS,
    MaxChars,
    first_page,
    one_line,
    tail,
)
from holdfast.mcp.read_tools import Cursor, SessionName, Wait
from holdfast.mcp.refusing import refusal
from holdfast.model.errors import HoldfastError, InputUnknown, InvalidArgument
from holdfast.model.limits import ACTION_RETRIES_MAX, EXEC_KEY_MAX_CHARS
from holdfast.model.measured import ActionTrace, Deviation
from holdfast.model.state import SessionState
from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Piece, Result
from holdfast.sdk.settled_text import settled

SignalName = Literal["INT", "TERM", "KILL", "HUP", "QUIT", "STOP", "CONT", "USR1", "USR2", "WINCH"]

_KEYS_MAX = 200  # in one call: more is text, which `answer` types
_HANDLE_MAX_CHARS = EXEC_KEY_MAX_CHARS + 200  # a session's name or id, and a key
_DEVIATIONS = 20  # of each sort, in one answer; the trace has the rest
_TYPED_S = 10.0  # for the session to take an input: a program that reads does so at once


class Expect(BaseModel):
    """What a command is expected to do. Everything else that it does counts as undeclared."""

    model_config = ConfigDict(extra="forbid")
    status: Annotated[int | None, Field(description="exit status; 0 unless said")] = None
    files: Annotated[
        list[str] | None,
        Field(description="globs of files it creates, changes or deletes: out/**, *.log"),
    ] = None
    ports: Annotated[list[int] | None, Field(description="TCP ports open afterwards")] = None
    processes: Annotated[
        list[str] | None, Field(description="names of processes it leaves running")
    ] = None
    env: Annotated[
        list[str] | None, Field(description="names of variables, aliases, ... it changes")
    ] = None
    cwd: Annotated[str | None, Field(description="where the shell is afterwards")] = None


class WriteTools:
    """The public methods are the tools, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def submit(
        self,
        session: SessionName,
        command: Annotated[
            str, Field(description="one command line for the session's own shell", min_length=1)
        ],
        intent: Annotated[
            str, Field(description="what this is for, in one sentence; recorded for people to read")
        ],
        seconds: Wait = 20.0,
        max_chars: MaxChars = TEXT_MAX_CHARS,
        expect: Annotated[
            Expect | None,
            Field(description="what it should do: then what it did is measured and scored"),
        ] = None,
        retry: Annotated[
            int, Field(ge=0, le=ACTION_RETRIES_MAX, description="if turn or shell is busy")
        ] = 0,
        key: Annotated[
            str | None,
            Field(
                description="names this act: the same key again runs nothing and gives its result",
                min_length=1,
                max_length=EXEC_KEY_MAX_CHARS,
            ),
        ] = None,
    ) -> answers.CommandAnswer:
        """Run a command in the session's own shell, which must be at its prompt, and give its exit
        status and output. One that asks something comes back at once, `running`, with `state` and
        `waits_for`: answer it, then ask for its `result`. One that does not end in `seconds` goes
        on: its `handle` is for `result`. One that a policy holds for approval comes back at once
        with `held` and has not run: ask for its `result` later. A refusal says who holds the turn
        and what to do; then nothing was typed. `cut_off` says why no more is known of one that had
        begun. With `expect`, `measured` says what was expected and not found, what was found and
        not expected, and a score: your record is made of these."""
        until = time.monotonic() + seconds
        found, name = await self._desk.session(session), key or secrets.token_hex(8)

        async def begin() -> Running:
            if expect is None and not retry:
                return await found.start(command, key=name, intent=intent)
            declared = {} if expect is None else expect.model_dump(exclude_none=True)
            again = {"times": retry}
            return await found.begin_act(
                command, intent=intent, expect=declared, key=name, retry=again
            )

        return await _answer(self._desk.begin(found, name, command, begin), until, max_chars)

    async def result(
        self,
        handle: Annotated[
            str,
            Field(
                description="of a command: SESSION/KEY, as submit gave it",
                max_length=_HANDLE_MAX_CHARS,
            ),
        ],
        seconds: Wait = 20.0,
        max_chars: MaxChars = TEXT_MAX_CHARS,
        since: Annotated[
            Cursor | None,
            Field(description="the `next` of an earlier answer: only output from there on"),
        ] = None,
    ) -> answers.CommandAnswer:
        """What became of a command begun by `submit`, also before you or this server started anew:
        its status and output when it has ended, otherwise what it printed last. Ask as often as you
        like. Waits for its end, and comes back at once when it asks something."""
        until = time.monotonic() + seconds
        return await _answer(await self._desk.command(handle), until, max_chars, since)

    async def keys(
        self,
        session: SessionName,
        keys: Annotated[
            list[Annotated[str, Field(min_length=1, max_length=100)]],
            Field(
                min_length=1,
                max_length=_KEYS_MAX,
                description='named keys in order: "C-c", "Enter", "Up", "Esc", "q", "F5", "M-x"',
            ),
        ],
    ) -> answers.TypedAnswer:
        """Press keys, for programs that are not a shell prompt: an editor, a pager, a menu, or C-c
        to interrupt. Observe afterwards to see what it did."""
        found = await self._desk.session(session)
        return await _typed(found, found.keys(*keys))

    async def answer(
        self,
        session: SessionName,
        text: Annotated[str, Field(description="the answer, without the Enter")],
        enter: Annotated[bool, Field(description="press Enter behind it")] = True,
        secret: Annotated[
            bool, Field(description="true: you mean to answer a prompt for a secret")
        ] = False,
    ) -> answers.TypedAnswer:
        """Type text and Enter, to answer what a program asks. When it asks for a secret (a
        password; nothing is echoed), do not make one up: hand the session to a person with
        hand_to. Only with `secret` true is text typed there, and then nowhere else: a secret that
        is asked for is kept nowhere, any other text is shown and recorded."""
        found, info = await self._desk.found(session)
        if info.state is SessionState.SECRET and not secret:
            raise InvalidArgument(
                "the session waits for a secret, and this answer was not marked as one",
                hint="hand_to a person, or say secret=true if you were given it for this purpose",
            )
        if secret and info.state is not SessionState.SECRET:
            raise InvalidArgument(
                "no secret is asked for: it would be shown on the screen, and recorded",
                hint="observe what the session waits for; leave out secret=true otherwise",
            )
        return await _typed(found, found.type(text, enter=enter, secret=secret))

    async def signal(
        self,
        session: SessionName,
        signal: Annotated[SignalName, Field(description="to the foreground program")],
    ) -> answers.SignalAnswer:
        """Send a signal to what runs in the foreground of a session: INT to interrupt it, TERM or
        KILL to end it, STOP and CONT. At its prompt that is the shell itself."""
        found = await self._desk.session(session)
        await found.signal(signal)
        return {"session": found.name, "sent": signal}


async def _answer(
    command: AgentCommand, until: float, max_chars: int, since: int | None = None
) -> answers.CommandAnswer:
    try:
        result = await command.result(max(0.0, until - time.monotonic()))
    except HoldfastError as error:
        if command.begun or command.is_over:
            return await _cut_off(error, command, max_chars, since)
        if not command.is_refused:  # it is not known
            raise _with_handle(error, command.handle) from error
        raise
    if result is None:
        return await _going_on(command, max_chars, since)
    return _done(result, command, max_chars, since)


def _with_handle(error: HoldfastError, handle: str) -> HoldfastError:
    said = f"ask result with the handle {handle}: it says whether it ran"
    return type(error)(error.message, hint="; ".join(filter(None, (error.hint, said))))


async def _cut_off(
    error: HoldfastError, command: AgentCommand, max_chars: int, since: int | None
) -> answers.CommandAnswer:
    """It had begun, so it was not refused, and no status will come: its session ended or was lost;
    or it goes on and this agent may see it no longer."""
    text, read = _output(command, max_chars, since)
    shown: answers.CommandAnswer = {"running": not command.is_over}
    if command.begun:
        shown["begun"] = True
    shown |= {"handle": command.handle, "status": None, "output": text, **read}
    if command.is_over:
        with contextlib.suppress(HoldfastError):  # what is known of it was said
            if (ending := (await command.session.info()).ending) is not None:
                shown["ending"] = ending.pack()
    shown["cut_off"] = refusal(error)
    return shown


async def _going_on(
    command: AgentCommand, max_chars: int, since: int | None
) -> answers.CommandAnswer:
    info = await command.session.info()
    shown: answers.CommandAnswer = {
        "running": True,
        "begun": command.begun,
        "handle": command.handle,
        "state": info.state.value,
        "waits_for": one_line(info.waiting_line) if info.state in ASKING else "",
    }
    if (held := command.held) is not None:
        shown["held"], shown["held_because"] = held.id, one_line(held.reason)
        shown["approvers"] = list(held.approvers)
    text, read = _output(command, max_chars, since)
    if read.get("full_screen_program") and (screen := await command.session.screen()).alternate:
        text, cut = tail(screen.text.rstrip(), max_chars)
        return {**shown, **read, "screen": text, "cut_chars": cut}
    return {**shown, "output_so_far": text, **read}


def _output(
    command: AgentCommand, limit: int, since: int | None
) -> tuple[str, answers.CommandAnswer]:
    """The end of what it printed, or a page of it from `since` on; and what there is to say of
    it."""
    shown: answers.CommandAnswer = {}
    if (begin := command.output_begins) is None:
        return "", {"cut_chars": 0}
    shown["output_begins"] = begin
    pieces = command.printed(since or 0)
    data = b"".join(piece.data for piece in pieces)
    if since is None:
        read, taken = settled(data), len(data)
        text, shown["cut_chars"] = tail(read.text, limit)
    else:
        read, taken = first_page(data, limit, last=True)
        text, shown["cut_chars"] = read.text, 0
        shown["more"] = taken < len(data)
        shown["lost_bytes"] = max(0, pieces[0].offset - max(since, begin)) if pieces else 0
    shown["next"] = _offset_behind(pieces, taken, max(begin, since or 0))
    if read.full_screen:
        shown["full_screen_program"] = True
    return text, shown


def _offset_behind(pieces: Sequence[Piece], taken: int, otherwise: int) -> int:
    """Where so many bytes of these pieces end, by the session's output offset."""
    for piece in pieces:
        if taken <= len(piece.data):
            return piece.offset + taken
        taken -= len(piece.data)
    return otherwise


async def _typed(session: Session, typing: Awaitable[int]) -> answers.TypedAnswer:
    """A program that does not read may take the input later, or never."""
    try:
        async with asyncio.timeout(_TYPED_S):
            offset = await typing
    except TimeoutError:
        raise InputUnknown(
            f"the session has not taken it within {_TYPED_S:g} s: the program does not read",
            hint="observe before you type it again: it may still be typed",
        ) from None
    typed: answers.TypedAnswer = {"typed": True, "cursor": offset}
    if held := (await session.info()).held:
        typed["held"] = held
    return typed


def _done(
    result: Result, command: AgentCommand, max_chars: int, since: int | None
) -> answers.CommandAnswer:
    text, read = _output(command, max_chars, since)
    shown: answers.CommandAnswer = {
        "running": False,
        "handle": command.handle,
        "status": result.status,
        "output": text,
        "lost_bytes": result.lost_bytes,
        "seconds": round(result.duration_s, 3),
        "directory": result.cwd,
        "journal_seq": result.seq,
        **read,
    }
    if command.trace is not None:
        shown["measured"] = _measured(command.trace)
    return shown


def _measured(trace: ActionTrace) -> answers.MeasuredAnswer:
    judged, effects = trace.score, trace.effects
    shown: answers.MeasuredAnswer = {
        "action": trace.id,
        "missing": _deviations(trace.missing),
        "undeclared": _deviations(trace.unexpected),
        "side_effects": judged.side_effects if judged is not None else None,
        "score": judged.score if judged is not None else None,
    }
    why = effects.partial if effects is not None else (trace.message,)
    if any(why):
        shown["not_measured"] = [text for text in why if text]
    return shown


def _deviations(found: Sequence[Deviation]) -> list[str]:
    return [one_line(f"{each.kind}: {each.what}", CELL_MAX_CHARS) for each in found[:_DEVIATIONS]]
