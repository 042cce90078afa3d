"""`hold mcp`: sessions for AI agents, over the Model Context Protocol."""

from __future__ import annotations

import os

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.model.errors import InvalidArgument, Unsupported
from holdfast.sdk import identity

SUMMARY = "let an AI agent work in sessions, as an actor of its own (MCP)"

_TOKEN = "HOLDFAST_MCP_TOKEN"


def parser() -> Parser:
    parser = verb_parser(
        "mcp",
        "Serve the Model Context Protocol to one AI agent, over standard input and output, as its "
        "client starts it. The agent is an operator like any other: it acts under its own key and "
        "envelope, shares the turn, and can be halted, seized and revoked. docs/agents.md has what "
        "to write into the agent's configuration.",
        "  hold actor add otto --kind agent && hold grant otto execute build\n"
        "  hold --as otto mcp\n"
        "  hold --as otto --on buildbox mcp --session build\n"
        "  hold --as otto mcp --http 7430",
    )
    parser.add_values("--session", "SESSION", "only this one, by name or whole id; may be repeated")
    parser.add_value(
        "--http",
        "[ADDRESS:]PORT",
        "streamable HTTP on loopback instead; 0 takes any port. Every request bears a token, "
        f"which is printed, or taken from {_TOKEN}",
    )
    return parser


def run(options: Options) -> None:
    actor = os.environ.get(identity.VARIABLE, "")
    if not actor:
        raise InvalidArgument(
            "which actor is the agent? it needs one of its own",
            hint="`hold actor add otto --kind agent`, `hold grant otto execute SESSION`, then "
            "`hold --as otto mcp`",
        )
    try:
        from holdfast.mcp import serving
        from holdfast.mcp.agent_desk import AgentDesk
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"{error.name} is not installed", hint="pip install 'holdfast[mcp]'"
        ) from error
    desk = AgentDesk(None, actor, options.session)
    if options.http is not None:
        serving.serve_http(desk, options.http, os.environ.get(_TOKEN, ""))
    else:
        serving.serve_stdio(desk)
