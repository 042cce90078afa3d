"""Refusals of the host as answers that an agent can act on: the reason, and what to do next. A
refusal is an answer and not a failure of the tool, because models read answers."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec

from holdfast.model.errors import HoldfastError, TimedOut, ending_of

P = ParamSpec("P")
Answer = dict[str, Any]

_CALL_S = 58.0  # limit of any call: clients give up after a minute

# What to do, in terms of these tools. The host's own hints name commands for people.
_NEXT = {
    "turn_held": "call request_turn with a message that says what you want to do, and wait",
    "turn_lost": "the turn was taken from you: stop, call catch_up, and ask before you continue",
    "turn_not_held": "call request_turn first",
    "session_halted": "a person has frozen this session: stop, and wait until it runs again",
    "session_busy": "something runs in the foreground: observe, answer it, or wait for the prompt",
    "no_shell_integration": "use keys or answer, and observe what happens",
    "session_ended": "it has ended; list_sessions shows the live sessions",
    "session_lost": "it was lost, and how it would have ended is not known: do not assume that "
    "its last command completed; `ending` names its successor if it has one",
    "no_such_session": "list_sessions shows the sessions you may see",
    "not_permitted": "you do not have this right; ask a person to do it or to grant it",
    "actor_revoked": "your access was revoked; tell the person you work for",
    "envelope_expired": "your access has expired; ask a person to grant it again",
    "rate_limited": "wait a moment, then send less at a time",
    "input_unknown": "observe before you send it again: it may have been typed",
    "host_lost": "the host cannot be reached; sessions continue; try again in a moment",
    "timed_out": "it is still running; ask again later",
}


def refused(error: HoldfastError) -> Answer:
    return {
        "refused": {
            "code": error.code,
            "message": error.message,
            "retryable": error.retryable,
            "what_to_do": _NEXT.get(error.code, error.hint),
            **({"ending": ending.pack()} if (ending := ending_of(error)) is not None else {}),
        }
    }


def answering(tool: Callable[P, Awaitable[Answer]]) -> Callable[P, Awaitable[Answer]]:
    """The tool, with every HoldfastError as an answer, and with a time limit."""

    @functools.wraps(tool)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            async with asyncio.timeout(_CALL_S):
                return await tool(*args, **kwargs)
        except HoldfastError as error:
            return refused(error)
        except TimeoutError:
            return refused(TimedOut(f"the host did not answer within {_CALL_S:g} s"))

    return answered
