"""Tools that start and end sessions. The host decides whether this agent may."""

from __future__ import annotations

import os
from typing import Annotated

from pydantic import Field

from holdfast.mcp import answers
from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.read_tools import SessionName
from holdfast.model.errors import NotPermitted

# Of this program's environment, what a session gets. Not the rest: an agent's client keeps its own
# keys there, and a session is shared.
_PASSED_ON = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR")
)
_ARGV_MAX = 1000
_ENV_MAX = 200


class SessionTools:
    """The public methods are the tools, for one agent."""

    def __init__(self, desk: AgentDesk) -> None:
        self._desk = desk

    async def start_session(
        self,
        name: Annotated[str, Field(description="what it is called", min_length=1, max_length=200)],
        command: Annotated[
            list[str],
            Field(
                description="program and arguments; empty is a login shell, for submit",
                max_length=_ARGV_MAX,
            ),
        ] = [],  # noqa: B006 - never changed; the schema shows it
        directory: Annotated[str, Field(description="absolute; empty is the home directory")] = "",
        environment: Annotated[
            dict[str, str],
            Field(description="variables besides the usual ones", max_length=_ENV_MAX),
        ] = {},  # noqa: B006
        labels: Annotated[
            list[str], Field(description="labels, which rights can be given for", max_length=64)
        ] = [],  # noqa: B006
        reuse: Annotated[
            bool, Field(description="if a live session has this name, use that one")
        ] = False,
    ) -> answers.StartAnswer:
        """Start a session of its own, for work that should not disturb others: a server, a long
        build. It goes on when you leave; end it when it is no longer needed."""
        if not self._desk.has_all:
            raise NotPermitted(
                "this agent was given some sessions only, and may not start others",
                hint="use one of list_sessions, or ask a person to start it",
            )
        hold = await self._desk.hold()
        known = {info.id for info in await hold.sessions()} if reuse else set()
        session = await hold.run(
            command,
            name=name,
            cwd=directory,
            env=_environment() if hold.is_here else {},
            extra_env=environment,
            labels=labels,
            exist_ok=reuse,
        )
        return {
            "session": session.name,
            "id": session.id,
            "state": session.found.state.value,
            "existed": session.id in known,
        }

    async def end_session(self, session: SessionName) -> answers.EndAnswer:
        """End a session and everything that runs in it. Do this only with one that you started, or
        that you were asked to end: others may work there. Gives its true ending."""
        found = await self._desk.session(session)
        return {"session": found.name, "ending": (await found.end()).pack()}


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED_ON or name.startswith("LC_")
    }
