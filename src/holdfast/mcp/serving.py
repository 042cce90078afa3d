"""The server, over standard input and output, or over HTTP.

Over HTTP anybody who reaches the port could act as this agent, so every request must carry the
token that is printed at the start, and pages of other origins are refused (a page in a browser on
the same machine can send requests to loopback)."""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from holdfast.mcp.agent_desk import AgentDesk
from holdfast.mcp.pipes import standard_streams
from holdfast.mcp.server import build
from holdfast.model.errors import InvalidArgument

_PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def serve_stdio(desk: AgentDesk) -> None:
    async def serve() -> None:
        server = build(desk)._lowlevel_server  # the public API would make its own streams
        async with (
            standard_streams() as (lines, out),
            stdio_server(lines, out) as (incoming, outgoing),
        ):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve, backend_options={"use_uvloop": True})


def serve_http(desk: AgentDesk, listen: str, token: str) -> None:
    """Serve until stopped. `token`: empty makes one."""
    import uvicorn

    host, port = _place(listen)
    token = token or secrets.token_urlsafe(24)
    app: App = build(desk).streamable_http_app(streamable_http_path=_PATH, host=host)
    config = uvicorn.Config(guarded(app, token), host=host, port=port, log_level="warning")
    server = uvicorn.Server(config)

    async def serve() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(_say_where, server, host, token)
            await server.serve()
            group.cancel_scope.cancel()

    anyio.run(serve)


async def _say_where(server: Any, host: str, token: str) -> None:
    while not server.started:
        await anyio.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    print(f"http://{shown}:{port}{_PATH}", file=sys.stderr)
    print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)


def guarded(app: App, token: str) -> App:
    """The same app, for requests with the token."""
    wanted = f"Bearer {token}".encode()

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shown = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(shown, wanted):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send(
                    {"type": "http.response.body", "body": b"the token is missing or wrong\n"}
                )
                return
        await app(scope, receive, send)

    return guard


def _place(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon:
        host, port = "127.0.0.1", listen
    host = host.strip("[]") or "127.0.0.1"
    if host not in _LOOPBACK:
        raise InvalidArgument(
            f"{host}: agents are served on loopback only",
            hint="run `hold mcp` where the agent is: it reaches other hosts by itself (--on)",
        )
    if not port.isdecimal() or int(port) > 65535:
        raise InvalidArgument(f"not a port: {port[:20]!r}")
    return host, int(port)
