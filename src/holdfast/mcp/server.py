"""The tools and resources, and the instructions for the agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import (
    CallToolResult,
    InputRequiredResult,
    SubscribeRequestParams,
    ToolAnnotations,
    UnsubscribeRequestParams,
)
from mcp_types import Resource as McpResource
from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast import __version__
from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.changes import Changes
from holdfast.mcp.continuity_tools import ContinuityLooks, ContinuityTools
from holdfast.mcp.gate_tools import GateDecisions, GateLooks
from holdfast.mcp.read_tools import ReadTools
from holdfast.mcp.refusing import answer, answering, bad_arguments
from holdfast.mcp.resources import JOURNAL, SCREEN, journal_lines, listed, screen_text, uri_of
from holdfast.mcp.session_tools import SessionTools
from holdfast.mcp.turn_tools import TurnTools
from holdfast.mcp.write_tools import WriteTools

INSTRUCTIONS = """\
You work in live terminal sessions that you share with people and other agents. Nobody owns them;
they go on when you leave, and nothing you see was started for you.
- observe before you act. list_sessions says what there is; the state says what a session waits for.
- One actor writes at a time: the holder of the turn. A free turn is yours when you write. If
  somebody else holds it, request_turn with a message, and yield_turn when you are done.
- A person may take the turn from you at any moment. Then stop: do not try again in another way.
  Call catch_up, and go on only when the turn is given to you again.
- A result with `refused` means that nothing was done, unless its code is input_unknown or
  host_lost; `what_to_do` says what comes next.
- An answer that says `running` goes on without you: if `waits_for` says what it asks, answer it;
  otherwise ask for its result later.
- Prompts for secrets are for people: hand_to one of them.
- Say truly what each command is for: everything you type is recorded under your name."""

_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_TURNS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
_TOOLS = (
    (ReadTools, _LOOKS),
    (GateLooks, _LOOKS),
    (WriteTools, _WRITES),
    (SessionTools, _WRITES),
    (TurnTools, _TURNS),
    (GateDecisions, _WRITES),
    (ContinuityLooks, _LOOKS),
    (ContinuityTools, _WRITES),
)


class AgentServer(MCPServer[None]):
    """The server for one agent: what is wrong with a call's arguments is an answer like any other
    refusal, and the resources are those of the sessions there are now."""

    def __init__(self, desk: AgentDesk, **how: Any) -> None:
        super().__init__("holdfast", **how)
        self._desk = desk

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                return answer(bad_arguments(error.__cause__))
            raise

    async def list_resources(self) -> list[McpResource]:
        return await listed(self._desk)


def build(desk: AgentDesk) -> MCPServer[None]:
    """The server for one agent."""
    changes = Changes(desk)

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncIterator[None]:
        async with desk.open():
            try:
                yield
            finally:
                changes.close()

    server = AgentServer(
        desk,
        title="holdfast",
        instructions=INSTRUCTIONS,
        version=__version__,
        lifespan=lifespan,
        subscriptions=changes.bus,
        middleware=[changes.middleware],
        tools=[
            _tool(getattr(kind(desk), name), hints)
            for kind, hints in _TOOLS
            for name in vars(kind)
            if not name.startswith("_")
        ],
        log_level="WARNING",
    )
    _add_resources(server, desk)
    lowlevel = server._lowlevel_server  # subscriptions of older clients have no public API
    lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, changes.subscribe)
    lowlevel.add_request_handler(
        "resources/unsubscribe", UnsubscribeRequestParams, changes.unsubscribe
    )
    return server


def _tool(method: Callable[..., Any], hints: ToolAnnotations) -> Tool:
    """With an output schema, and without arguments that it does not know: one that is misspelt
    would be left out without a word."""
    tool = Tool.from_function(answering(method), annotations=hints, structured_output=True)
    known = tool.fn_metadata.arg_model
    forbids = {"model_config": ConfigDict(extra="forbid")}
    strict = cast("type[BaseModel]", type(known.__name__, (known,), forbids))
    tool.fn_metadata.arg_model = cast(Any, strict)
    tool.parameters = strict.model_json_schema(by_alias=True)
    return tool


def _add_resources(server: MCPServer[None], desk: AgentDesk) -> None:
    @server.resource(uri_of("{session}", SCREEN), mime_type="text/plain", title="Screen")
    async def screen(session: str) -> str:
        """A session's screen as text."""
        return await screen_text(desk, session)

    @server.resource(uri_of("{session}", JOURNAL), mime_type="application/jsonl", title="Journal")
    async def journal(session: str) -> str:
        """The latest records of what was done to a session, and by whom."""
        return await journal_lines(desk, session)
