"""Refusals of the host as answers that an agent can act on: the reason, and what to do next. A
refusal is an answer and not a failure of the tool, because models read answers."""

from __future__ import annotations

import asyncio
import functools
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec

from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

from holdfast.mcp.answers import RefusalAnswer
from holdfast.mcp.bounding import one_line
from holdfast.model.errors import HoldfastError, InvalidArgument, TimedOut, ending_of

P = ParamSpec("P")
Answer = dict[str, Any]

_CALL_S = 58.0  # limit of any call: clients give up after a minute
_SAID_CHARS = 200  # of one argument's fault

# What to do, in terms of these tools, where the error itself does not say.
_NEXT = {
    "turn_held": "call request_turn with a message that says what you want to do, and wait",
    "turn_lost": "the turn was taken from you: stop, call catch_up, and ask before you continue",
    "turn_not_held": "call request_turn first",
    "gate_refused": "a policy, or whoever was asked, refuses this: do not try it in another way; "
    "ask a person, or do something else",
    "gate_held": 'your line before it waits for approval: wait, or take it back with keys ["C-c"]',
    "no_such_approval": "it was decided, or never there; list_approvals shows what waits",
    "session_halted": "a person has frozen this session: stop, and wait until it runs again",
    "no_shell_integration": "use keys or answer, and observe what happens",
    "session_ended": "it has ended; list_sessions shows the live sessions",
    "session_lost": "it was lost, and how it would have ended is not known: do not assume that "
    "its last command completed; `ending` names its successor if it has one",
    "no_such_session": "list_sessions shows the sessions you may see",
    "no_such_actor": "list_operators shows who is there; check the name",
    "ambiguous_name": "give the whole id, from list_sessions",
    "name_taken": "choose another name, or use the session that has it",
    "command_not_found": "check the program's name and path, then call start_session again",
    "launch_failed": "nothing was started; the message says why",
    "level_unavailable": "ask a person to start the session",
    "not_permitted": "you do not have this right; ask a person to do it or to grant it",
    "access_revoked": "your access to it was revoked: leave it; a person may grant it again",
    "actor_revoked": "your access was revoked; tell the person you work for",
    "envelope_expired": "your access has expired; ask a person to grant it again",
    "rate_limited": "wait a moment, then send less at a time",
    "limit_reached": "end what you no longer need, or ask a person",
    "fenced": "its host has lost the right to run it for now: wait, then observe again",
    "storage_failed": "the host's disk does not take records: tell a person, and try again later",
    "host_lost": "the host cannot be reached; sessions continue; try again in a moment",
    "host_down": "no host is running; ask a person to run `hold up`",
    "checkpoint_failed": "the session runs on; can_move says what stands in the way",
    "no_such_checkpoint": "there is nothing to restore it from: ask a person",
    "checkpoint_invalid": "nothing was restored: tell a person",
    "checkpoint_rolled_back": "the latest checkpoint is missing: ask a person before you take an "
    "older one",
    "files_changed": "everything is as it was before: ask a person whether files are put back",
    "restore_failed": "everything is as it was before: tell a person the reason",
    "checkpoint_quota_reached": "checkpoints use all the room they may have: ask a person",
    "checkpoint_store_down": "the session runs on: try again later, or tell a person",
    "timed_out": "it is still running; ask again later",
}
# The same, where the error itself usually says it better.
_UNLESS_SAID = {
    "session_busy": "a command runs: wait for the state prompt, or ask for the result of yours",
    "text_at_prompt": 'somebody left text there: ask them, or clear it with keys ["C-c"]',
    "terminal_in_use": 'observe what it asks; answer it, or end it with keys ["C-c"]',
    "session_asleep": "it is on disk: call restore, or ask a person to",
    "input_unknown": "observe before you send it again: it may have been typed",
    "invalid_argument": "correct the argument that the message names, and call again",
}
# Command lines in hints that a tool does as well, by that tool.
_AS_TOOLS = (
    (re.compile(r"`hold keys \S+ ([^\s`]+)`"), r'keys ["\1"]'),
    (re.compile(r"`hold keys`"), "the tool keys"),
    (re.compile(r"`hold send \S+ --enter LINE`"), "answer"),
    (re.compile(r"`hold wait \S+ --for (\w+)`"), r"wait with the state \1"),
    (re.compile(r"`hold restore [^\s`-]\S*`"), "restore"),
    (re.compile(r"`hold turn \S+ request`"), "request_turn"),
)
_FOR_PEOPLE = "`hold "  # in a hint: it names a command line
_OTHERWISE = "observe the session, and tell a person what the message says"


def refused(error: HoldfastError) -> Answer:
    return {"refused": refusal(error)}


def refusal(error: HoldfastError) -> RefusalAnswer:
    said: RefusalAnswer = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "what_to_do": _what_to_do(error),
    }
    if (ending := ending_of(error)) is not None:
        said["ending"] = ending.pack()
    return said


def _what_to_do(error: HoldfastError) -> str:
    """In terms of the tools, and then the hint that came with it, which knows the case; one that
    names a command line for which there is no tool is for people."""
    said, hint = _NEXT.get(error.code, ""), error.hint
    for command, tool in _AS_TOOLS:
        hint = command.sub(tool, hint)
    if _FOR_PEOPLE in hint:
        said, hint = said or _UNLESS_SAID.get(error.code, ""), f"for a person: {hint}"
    elif not hint:
        said = said or _UNLESS_SAID.get(error.code, _OTHERWISE)
    return "; ".join(filter(None, (said, hint)))


def bad_arguments(error: ValidationError) -> Answer:
    """Arguments that do not fit the tool's schema: which, and why."""
    faults = [
        f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}"
        for each in error.errors(include_url=False, include_input=False)
    ]
    return refused(InvalidArgument(one_line("; ".join(faults), _SAID_CHARS)))


def answer(content: Mapping[str, Any]) -> CallToolResult:
    """As structured content, and as compact text for clients that know no other."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=dict(content)
    )


def answering(
    tool: Callable[P, Awaitable[Mapping[str, Any]]],
) -> Callable[P, Awaitable[CallToolResult]]:
    """The tool, with every HoldfastError as an answer, and with a time limit."""

    @functools.wraps(tool)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            async with asyncio.timeout(_CALL_S):
                return answer(await tool(*args, **kwargs))
        except HoldfastError as error:
            return answer(refused(error))
        except TimeoutError:
            return answer(refused(TimedOut(f"the host did not answer within {_CALL_S:g} s")))

    return answered
