"""Tools about the turn: the right to write now, which one actor has at a time."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from holdfast.mcp import answers
from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.read_tools import SessionName, Wait
from holdfast.model.limits import TURN_HOLD_MAX_S, TURN_TEXT_MAX_CHARS
from holdfast.sdk.aio.session import Session
from holdfast.sdk.aio.values import TurnState

Message = Annotated[
    str, Field(description="for the others to read", max_length=TURN_TEXT_MAX_CHARS)
]

Hold = Annotated[
    float,
    Field(description="seconds for which no pause takes it from you", ge=0, le=TURN_HOLD_MAX_S),
]


class TurnTools:
    """The public methods are the tools, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def request_turn(
        self,
        session: SessionName,
        message: Message,
        seconds: Wait = 20.0,
        hold_seconds: Hold = 0.0,
    ) -> answers.TurnAnswer:
        """Ask for the turn and wait for it at most `seconds`. `yours` says whether you have it.
        If not, you stay in the queue and may ask again later; do not try to write meanwhile. When
        it comes to you, call catch_up before you act: things may have changed. A pause may pass the
        turn on to somebody who waits. It does not while a command of yours runs, nor for
        `hold_seconds` after you got it: give these if you need time to think between commands,
        ask again to prolong them, and yield_turn when you are done."""
        found = await self._desk.session(session)
        state = await found.request_turn(message, hold_for=hold_seconds)
        if not state.yours:
            state = await _until_ours(found, state, seconds)
        return _told(state)

    async def yield_turn(self, session: SessionName) -> answers.TurnAnswer:
        """Give the turn up: when you are done, or when you wait for something. People cannot write
        while you hold it, unless they take it."""
        return _told(await (await self._desk.session(session)).yield_turn())

    async def hand_to(
        self,
        session: SessionName,
        to: Annotated[
            str, Field(description="the name of a person or another actor", min_length=1)
        ],
        message: Message,
    ) -> answers.TurnAnswer:
        """Hand the turn to a person, with a message that says what you did and what you need of
        them. Do this when a secret is asked for, when you are unsure, or when something would be
        hard to undo."""
        return _told(await (await self._desk.session(session)).hand_off(to, message))


async def _until_ours(session: Session, state: TurnState, seconds: float) -> TurnState:
    try:
        async with asyncio.timeout(seconds):
            async for _ in session.events():
                state = await session.turn_state()
                if state.yours:
                    break
    except TimeoutError:
        return await session.turn_state()
    return state


def _told(state: TurnState) -> answers.TurnAnswer:
    return {
        "yours": state.yours,
        "holder": state.holder,
        "waiting": [each.name for each in state.turn.queue],
        "policy": state.turn.policy,
    }
