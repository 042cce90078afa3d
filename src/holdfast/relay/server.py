"""One port: HTTP and WebSockets, with TLS or without. Limits sockets before they send anything, and
turns the relay's refusals into HTTP statuses."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import sha256

from aiohttp import web

from holdfast.model.errors import (
    BadSignature,
    HoldfastError,
    InvalidArgument,
    ProtocolViolation,
    TimedOut,
)
from holdfast.relay.address_rate import network_of
from holdfast.relay.host_end import HostEnd, prove
from holdfast.relay.host_metrics import host_metrics
from holdfast.relay.operator_end import OperatorEnd, greet
from holdfast.relay.options import Options
from holdfast.relay.port_view_origin import ViewOrigin
from holdfast.relay.rendezvous import Relay
from holdfast.relay.web_app import WebApp, is_foreign_page
from holdfast.relay.websocket import WebSocketConnection

log = logging.getLogger("relay")

_BACKLOG = 1024  # connections the kernel holds for us: after a relay's restart all come at once


class Server:
    """The relay on its port."""

    def __init__(self, relay: Relay, options: Options) -> None:
        self._relay, self._options = relay, options
        self._names = frozenset(options.names)
        app = web.Application()
        app.router.add_get("/v1/host", self._host)
        app.router.add_get("/v1/operator", self._operator)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        self._web_app = WebApp()
        self._web_app.route(app)
        self._runner = self._runner_of(app)
        self._listening: list[asyncio.Server] = []
        self._viewing: web.AppRunner | None = None
        self._floors: asyncio.Task[None] | None = None

    async def start(self, tls: ssl.SSLContext | None) -> int:
        """Listen; returns the port."""
        wanted, view = self._options.port, self._options.view_port
        port = await self._listen(self._runner, wanted, tls, "--listen ADDRESS:PORT")
        self._floors = asyncio.create_task(self._relay.follow_floors())
        self._floors.add_done_callback(_followed)
        if view is not None:
            beside = ViewOrigin(self._web_app, port).application()
            self._viewing = self._runner_of(beside)
            at = await self._listen(self._viewing, view, tls, "--view-port PORT")
            self._web_app.view_port = at
        return port

    async def _listen(
        self, runner: web.AppRunner, port: int, tls: ssl.SSLContext | None, option: str
    ) -> int:
        await runner.setup()
        bounds, address = self._relay.bounds, self._options.address
        try:
            listening = await asyncio.get_running_loop().create_server(
                partial(self._socket, runner),
                address,
                port,
                ssl=tls,
                backlog=_BACKLOG,
                ssl_handshake_timeout=bounds.handshake_s if tls else None,
                ssl_shutdown_timeout=bounds.close_s if tls else None,
            )
        except OSError as error:
            raise InvalidArgument(
                f"cannot listen on {address}:{port}: {error.strerror}",
                hint=f"choose another port: {option}",
            ) from error
        self._listening.append(listening)
        found: int = listening.sockets[0].getsockname()[1]
        return found

    def _runner_of(self, app: web.Application) -> web.AppRunner:
        # The keep-alive also limits how long a request's head may take, including the first one.
        return web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=self._relay.bounds.handshake_s,
            lingering_time=0,
            handle_signals=False,
        )

    async def stop(self) -> None:
        """Drain, then stop. Health checks are answered until the end."""
        await self._relay.drain()
        for listening in self._listening:
            listening.close()
        if self._floors is not None:
            self._floors.cancel()
        for end in self._relay.ends():
            await end.connection.finish()
        if self._relay.cluster is not None:
            await self._relay.cluster.stop()
        if self._viewing is not None:
            await self._viewing.cleanup()
        await self._runner.cleanup()

    # -- sockets ------------------------------------------------------------------------------

    def _socket(self, runner: web.AppRunner) -> asyncio.BaseProtocol:
        """Called for each connection, before its first byte."""
        server = runner.server
        assert server is not None
        served = [each.server for each in (self._runner, self._viewing) if each is not None]
        count = sum(len(each.connections) for each in served if each is not None)
        if count >= self._relay.bounds.sockets_max:
            self._relay.metrics.count("refused_total")
            return _ExcessSocket()
        return server()

    # -- WebSockets ---------------------------------------------------------------------------

    async def _host(self, request: web.Request) -> web.StreamResponse:
        full = len(self._relay.hosts) >= self._relay.bounds.hosts_max
        wait_s = self._relay.proofs.wait_s(
            network_of(request.remote or ""), asyncio.get_running_loop().time()
        )
        if wait_s:
            self._relay.metrics.count("refused_total")
            return _no(429, "too many failed proofs from this address", wait_s)
        return await self._accept(request, full, self._serve_host)

    async def _operator(self, request: web.Request) -> web.StreamResponse:
        full = len(self._relay.operators) >= self._relay.bounds.operators_max
        return await self._accept(request, full, self._serve_operator)

    async def _accept(
        self,
        request: web.Request,
        full: bool,
        serve: Callable[[WebSocketConnection, str], Awaitable[None]],
    ) -> web.StreamResponse:
        relay, address = self._relay, network_of(request.remote or "")
        if is_foreign_page(request, self._names):
            relay.metrics.count("refused_total")
            return _no(403, "this page did not come from this relay: open the relay's own page")
        if (refused := self._refused(address, full)) is not None:
            relay.metrics.count("refused_total")
            return refused
        connection = WebSocketConnection(request, relay.bounds, relay.held, relay.metrics)
        relay.sockets[address] += 1
        try:
            await connection.accept()
            relay.metrics.count("connections_total")
            await serve(connection, address)
        except HoldfastError as error:
            self._count(error, address)
            connection.dismiss(error)
        except ConnectionError:
            pass  # the client disconnected
        finally:
            relay.sockets[address] -= 1
            if not relay.sockets[address]:
                del relay.sockets[address]
            await connection.finish()
        return connection.response

    def _refused(self, address: str, full: bool) -> web.Response | None:
        """The refusal of a connection, before any work is done for it."""
        relay = self._relay
        if relay.draining:
            return _no(503, "this relay is stopping")
        if full:
            return _no(503, "this relay is full")
        if relay.sockets[address] >= relay.bounds.address_sockets:
            return _no(429, "too many connections from this address")
        return None

    def _count(self, error: HoldfastError, address: str) -> None:
        metrics = self._relay.metrics
        if isinstance(error, BadSignature):
            metrics.count("failed_proofs_total")
            self._relay.proofs.take(address, asyncio.get_running_loop().time())
        elif isinstance(error, ProtocolViolation):
            metrics.count("violations_total")
        elif isinstance(error, TimedOut):
            metrics.count("timeouts_total")

    async def _serve_host(self, connection: WebSocketConnection, address: str) -> None:
        proof = await prove(connection, self._names)
        if proof is None:
            return
        host = HostEnd(self._relay, connection, proof, address)
        self._relay.add_host(host)
        try:
            host.outbox.say(self._relay.greeted())
            await host.serve()
        finally:
            self._relay.remove_host(host)

    async def _serve_operator(self, connection: WebSocketConnection, address: str) -> None:
        if not await greet(connection):
            return
        operator = OperatorEnd(self._relay, connection, address)
        self._relay.operators.add(operator)
        try:
            operator.outbox.say(self._relay.greeted())
            await operator.serve()
        finally:
            self._relay.remove_operator(operator)

    # -- plain HTTP ---------------------------------------------------------------------------

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, request: web.Request) -> web.Response:
        return _no(503, "draining") if self._relay.draining else web.Response(text="ready\n")

    async def _metrics(self, request: web.Request) -> web.Response:
        """Only for whoever has the token, if there is one; else only for this machine, unless made
        public."""
        options = self._options
        if options.metrics_token_hash:
            if not _has_token(request, options.metrics_token_hash):
                return _no(401, "metrics need the bearer token of `metrics_token`")
        elif not options.public_metrics and not _local(request.remote):
            return _no(403, "metrics are only for this machine; see --public-metrics")
        text = self._relay.metrics.text(self._relay.gauges())
        if options.metrics_token_hash and options.host_metrics:
            text += await host_metrics(options.host_metrics, options.host_uid, _token(request))
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})


def _has_token(request: web.Request, wanted: str) -> bool:
    return hmac.compare_digest(sha256(_token(request).encode()).hexdigest(), wanted)


def _token(request: web.Request) -> str:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return given if scheme == "Bearer" else ""


def _followed(task: asyncio.Task[None]) -> None:
    """If this task fails, a later incarnation at another relay no longer ends the one here: log
    it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("no longer following the shared floors", exc_info=error)


class _ExcessSocket(asyncio.Protocol):
    """A socket over the limit: closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


def _no(status: int, text: str, wait_s: float = 0.0) -> web.Response:
    headers = {"Retry-After": str(int(wait_s) + 1)} if wait_s else {}
    return web.Response(status=status, text=f"{text}\n", headers=headers)


def _local(address: str | None) -> bool:
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False
