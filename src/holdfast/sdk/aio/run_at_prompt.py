"""A command line for a shell that is about to be at its prompt.

Between the end of one command and the next prompt a shell is busy for a moment, and so is one that
starts. Whoever runs one command after another must not be refused for that; a command that really
runs is not waited for.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.model.errors import SessionBusy, TimedOut
from holdfast.model.state import SessionState
from holdfast.sdk.aio.command_run import Running
from holdfast.sdk.aio.driver import HostLink, InputCounter
from holdfast.sdk.client_core.event_reader import about_to_prompt
from holdfast.sdk.client_core.retry_policy import PROMPT_S

if TYPE_CHECKING:
    from holdfast.sdk.aio.session import Session

_PAUSES_S = (0.02, 0.2)  # when it is at its prompt already, and the host has yet to hear of it


async def run_at_prompt(
    session: Session, link: HostLink, inputs: InputCounter, command: str, key: str, intent: str
) -> Running:
    """The command, begun. Raises SessionBusy and whatever else the host refuses it with."""
    for pause in (*_PAUSES_S, None):
        running = Running(link, inputs, session, command, key, intent)
        try:
            await running.begun()
            return running
        except SessionBusy:
            info = await session.info()
            if pause is None or not about_to_prompt(info):
                raise
        except asyncio.CancelledError:
            running.forget()
            raise
        with suppress(TimedOut):  # the next refusal says what is the matter
            if info.state is SessionState.PROMPT:
                await asyncio.sleep(pause)
            await session.wait_for(state=SessionState.PROMPT, timeout=PROMPT_S)
    raise AssertionError("unreachable")
