"""Tools that write. The host checks each like any operator's input: the agent's envelope, and the
turn. Writing takes a free turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.mcp import answers
from holdfast.mcp.agent_desk import ASKING, AgentCommand, AgentDesk
from holdfast.mcp.bounding import TEXT_MAX_CHARS, MaxChars, one_line, tail
from holdfast.mcp.read_tools import SessionName, Wait
from holdfast.model.errors import HoldfastError, InputUnknown, InvalidArgument
from holdfast.model.limits import ACTION_RETRIES_MAX
from holdfast.model.measured import ActionTrace
from holdfast.model.state import SessionState
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import Result
from holdfast.sdk.settled_text import settled

SignalName = Literal["INT", "TERM", "KILL", "HUP", "QUIT", "STOP", "CONT", "USR1", "USR2", "WINCH"]

_KEYS_MAX = 200  # in one call: more is text, which `answer` types
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
        command: Annotated[str, Field(description="one command line for the session's own shell")],
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
    ) -> answers.CommandAnswer:
        """Run a command in the session's own shell, which must be at its prompt, and give its exit
        status and output. One that asks something comes back at once, `running`, with `state` and
        `waits_for`: answer it, then ask for its `result`. One that does not end in `seconds` goes
        on: you get a `handle` for `result`. One that a policy holds for approval comes back at once
        with `held` and has not run: ask for its `result` later. A refusal says who holds the turn
        and what to do; then nothing was typed. With `expect`, `measured` says what was expected and
        not found, what was found and not expected, and a score: your record is made of these."""
        until = time.monotonic() + seconds
        found = await self._desk.session(session)
        declared = None if expect is None else expect.model_dump(exclude_none=True)
        handle = self._desk.keep(AgentCommand(found, command, intent, declared, retry))
        return await self._follow(handle, until, max_chars)

    async def result(
        self,
        handle: Annotated[str, Field(description="from submit", max_length=200)],
        seconds: Wait = 20.0,
        max_chars: MaxChars = TEXT_MAX_CHARS,
    ) -> answers.CommandAnswer:
        """Go on waiting for a command begun by `submit`: its status and output when it has ended,
        otherwise what it printed last. Comes back at once when it asks something."""
        return await self._follow(handle, time.monotonic() + seconds, max_chars)

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

    async def _follow(self, handle: str, until: float, max_chars: int) -> answers.CommandAnswer:
        command = self._desk.command(handle)
        try:
            result = await command.result(max(0.0, until - time.monotonic()))
        except HoldfastError:
            self._desk.drop(handle)
            raise
        if result is None:
            return await _going_on(command, handle, max_chars)
        self._desk.drop(handle)
        return _done(result, command, max_chars)


async def _going_on(command: AgentCommand, handle: str, max_chars: int) -> answers.CommandAnswer:
    info = await command.session.info()
    shown: answers.CommandAnswer = {
        "running": True,
        "begun": command.begun,
        "handle": handle,
        "state": info.state.value,
        "waits_for": one_line(info.waiting_line) if info.state in ASKING else "",
    }
    if (held := command.held) is not None:
        shown["held"], shown["held_because"] = held.id, one_line(held.reason)
        shown["approvers"] = list(held.approvers)
    if command.output_begins is not None:
        shown["output_begins"] = command.output_begins
    read = settled(command.printed())
    if read.full_screen and (screen := await command.session.screen()).alternate:
        text, cut = tail(screen.text.rstrip(), max_chars)
        return {**shown, "full_screen_program": True, "screen": text, "cut_chars": cut}
    text, cut = tail(read.text, max_chars)
    return {**shown, "output_so_far": text, "cut_chars": cut}


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


def _done(result: Result, command: AgentCommand, max_chars: int) -> answers.CommandAnswer:
    read = settled(result.output_bytes)
    text, cut = tail(read.text, max_chars)
    shown: answers.CommandAnswer = {
        "running": False,
        "status": result.status,
        "output": text,
        "cut_chars": cut,
        "lost_bytes": result.lost_bytes,
        "seconds": round(result.duration_s, 3),
        "directory": result.cwd,
        "journal_seq": result.seq,
    }
    if command.output_begins is not None:
        shown["output_begins"] = command.output_begins
    if command.trace is not None:
        shown["measured"] = _measured(command.trace)
    if read.full_screen:
        shown["full_screen_program"] = True
    return shown


def _measured(trace: ActionTrace) -> answers.MeasuredAnswer:
    judged, effects = trace.score, trace.effects
    shown: answers.MeasuredAnswer = {
        "action": trace.id,
        "missing": [f"{each.kind}: {each.what}" for each in trace.missing[:_DEVIATIONS]],
        "undeclared": [f"{each.kind}: {each.what}" for each in trace.unexpected[:_DEVIATIONS]],
        "side_effects": judged.side_effects if judged is not None else None,
        "score": judged.score if judged is not None else None,
    }
    why = effects.partial if effects is not None else (trace.message,)
    if any(why):
        shown["not_measured"] = [text for text in why if text]
    return shown
