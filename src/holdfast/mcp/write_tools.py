"""Tools that write. The host checks each like any operator's input: the agent's envelope, and the
turn. Writing takes a free turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Annotated

from pydantic import Field

from holdfast.mcp.agent_desk import AgentCommand, AgentDesk, bounded_wait
from holdfast.mcp.bounding import tail
from holdfast.mcp.read_tools import SessionName, Wait
from holdfast.mcp.refusing import Answer
from holdfast.model.errors import HoldfastError, InputUnknown, InvalidArgument
from holdfast.model.state import SessionState
from holdfast.sdk.aio.values import Result

_TYPED_S = 10.0  # for the session to take an input: a program that reads does so at once


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
    ) -> Answer:
        """Run a command in the session's own shell, which must be at its prompt, and give its exit
        status and output. One that does not end in `seconds` goes on: you get a `handle` for
        `result`. A refusal says who holds the turn and what to do; then nothing was typed."""
        until = time.monotonic() + bounded_wait(seconds)
        found = await self._desk.session(session)
        return await self._follow(self._desk.keep(AgentCommand(found, command, intent)), until)

    async def result(
        self,
        handle: Annotated[str, Field(description="from submit")],
        seconds: Wait = 20.0,
    ) -> Answer:
        """Go on waiting for a command begun by `submit`: its status and output when it has ended,
        otherwise what it printed last."""
        return await self._follow(handle, time.monotonic() + bounded_wait(seconds))

    async def keys(
        self,
        session: SessionName,
        keys: Annotated[
            list[str],
            Field(description='named keys in order: "C-c", "Enter", "Up", "Esc", "q", "F5", "M-x"'),
        ],
    ) -> Answer:
        """Press keys, for programs that are not a shell prompt: an editor, a pager, a menu, or C-c
        to interrupt. Observe afterwards to see what it did."""
        return await _typed((await self._desk.session(session)).keys(*keys))

    async def answer(
        self,
        session: SessionName,
        text: Annotated[str, Field(description="the answer, without the Enter")],
        enter: Annotated[bool, Field(description="press Enter behind it")] = True,
        secret: Annotated[
            bool, Field(description="true: you mean to answer a prompt for a secret")
        ] = False,
    ) -> Answer:
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
        return await _typed(found.type(text, enter=enter, secret=secret))

    async def _follow(self, handle: str, until: float) -> Answer:
        command = self._desk.command(handle)
        try:
            result = await command.result(max(0.0, until - time.monotonic()))
        except HoldfastError:
            self._desk.drop(handle)
            raise
        if result is None:
            text, cut = tail(command.printed())
            return {
                "running": True,
                "begun": command.begun,
                "handle": handle,
                "output_so_far": text,
                "cut_chars": cut,
            }
        self._desk.drop(handle)
        return _done(result)


async def _typed(typing: Awaitable[int]) -> Answer:
    """A program that does not read may take the input later, or never."""
    try:
        async with asyncio.timeout(_TYPED_S):
            offset = await typing
    except TimeoutError:
        raise InputUnknown(
            f"the session has not taken it within {_TYPED_S:g} s: the program does not read",
            hint="it may still be typed; look before you type it again",
        ) from None
    return {"typed": True, "cursor": offset}


def _done(result: Result) -> Answer:
    text, cut = tail(result.output)
    return {
        "running": False,
        "status": result.status,
        "output": text,
        "cut_chars": cut,
        "lost_bytes": result.lost_bytes,
        "seconds": round(result.duration_s, 3),
        "directory": result.cwd,
        "journal_seq": result.seq,
    }
