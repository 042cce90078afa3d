"""`hold forward`: a port of a session's program, here."""

from __future__ import annotations

import argparse
import contextlib
import sys

from holdfast.cli.arguments import MixedParser, Options, Parser, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.model.graph import Graph
from holdfast.model.record import Record
from holdfast.model.state import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.forward import Forwarder, ForwardEvent

SUMMARY = "forward a port of a session's programs to this machine"

_PORT_MAX = (1 << 16) - 1
_LOOPBACK = ("127.", "::1")


class PortOption(Record):
    """A port of the session, and where it is to be here."""

    port: int
    local: int | None  # 0: anywhere; None: the same, if it is free


def parser() -> Parser:
    parser = verb_parser(
        "forward",
        "Listen on this machine and carry each connection to a port on which a program of the "
        "session listens: a dev server, its WebSockets, anything over TCP. Only ports of the "
        "session's own processes can be reached. Needs the rights to observe and to input, not "
        "the turn; each connection is judged, and recorded with your name. Goes on until ^C or "
        "the session's end; when the host or its relay is away for a while, open connections are "
        "closed and new ones wait.",
        "  hold forward build 3000             http://127.0.0.1:3000 is the session's port 3000\n"
        "  hold forward laptop/build 5173:8080 8000\n"
        "  hold forward build 3000 -v          report each connection",
        kind=MixedParser,
    )
    parser.add_value(
        "--listen",
        "ADDRESS",
        "where to listen; default 127.0.0.1. Whoever gets there acts as you",
        type=_address,
        default="127.0.0.1",
    )
    parser.add_flag("-v", "--verbose", help="report each connection on standard error")
    parser.add_session()
    parser.add_value(
        "ports",
        "PORT[:LOCALPORT]",
        "of the session, and here; without LOCALPORT the same if it is free, 0 for any",
        type=wanted,
        nargs="+",
    )
    return parser


def _address(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_address("127.0.0.1" if text == "localhost" else text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"not an address to listen on: {text[:80]!r}") from None


def wanted(text: str) -> PortOption:
    port, colon, local = text.partition(":")
    if not (_is_port(port, 1) and (not colon or _is_port(local, 0))):
        raise argparse.ArgumentTypeError(f"not PORT or PORT:LOCALPORT: {text[:40]!r}")
    return PortOption(int(port), int(local) if colon else None)


def _is_port(text: str, least: int) -> bool:
    return text.isascii() and text.isdecimal() and least <= int(text[:6]) <= _PORT_MAX


def run(options: Options) -> None:
    import asyncio

    ending = asyncio.run(_forward(options))
    print(f"hold: the session {ending.sentence()}", file=sys.stderr)


async def _forward(options: Options) -> Ending:
    from holdfast.sdk.client import Host
    from holdfast.sdk.forward import Forwarder

    with Host(client="hold forward") as host:
        graph = host.graph(options.session)
    forwarder = Forwarder(options.session, tell=_Teller(options.verbose))
    try:
        await forwarder.start()
        await _listen(forwarder, options, graph)
        return await forwarder.run()
    finally:
        forwarder.close()


async def _listen(forwarder: Forwarder, options: Options, graph: Graph) -> None:
    if not options.listen.startswith(_LOOPBACK):
        _say(f"whoever reaches {options.listen} talks to the session's programs as you")
    name = sanitize(forwarder.info.name)
    for one in options.ports:
        address, port = await forwarder.listen(one.port, one.local, options.listen)
        shown = f"[{address}]" if ":" in address else address
        print(f"http://{shown}:{port}  is port {one.port} of {name}{_listener(graph, one.port)}")
    sys.stdout.flush()


def _listener(graph: Graph, port: int) -> str:
    """Who listens there now."""
    for process in graph.processes:
        for socket in process.sockets:
            if socket.state == "listen" and socket.local.endswith(f":{port}"):
                return f" ({sanitize(process.name)}, pid {process.pid})"
    return ", where nothing listens yet"


class _Teller:
    """What happens, as people read it. Refusals and losses are always reported."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._refused: tuple[int, str] | None = None  # reported last; not repeated

    def __call__(self, told: ForwardEvent) -> None:
        from holdfast.sdk import forward as f

        if isinstance(told, f.ForwardRefused):
            if (told.port, told.code) != self._refused or self._verbose:
                hint = f"; {told.hint}" if told.hint else ""
                _say(f"{sanitize(told.message)} ({told.code}){hint}")
            self._refused = (told.port, told.code)
        elif isinstance(told, f.ForwardLost):
            cut = f"; {_many(told.connections)} closed" if told.connections else ""
            _say(f"{sanitize(told.message)}{cut}; looking for it again")
        elif isinstance(told, f.ForwardReconnected):
            _say("the host is back; new connections go through")
        elif isinstance(told, f.ConnectionOpened):
            self._refused = None
            if self._verbose:
                process = f"{sanitize(told.process)}, pid {told.pid}"
                _say(f"{told.number} opened: {told.peer} to {told.address} ({process})")
        elif isinstance(told, f.ConnectionClosed) and (self._verbose or told.code):
            why = f", {sanitize(told.message)} ({told.code})" if told.code else ""
            _say(
                f"{told.number} closed: {told.sent_bytes} bytes sent, "
                f"{told.received_bytes} received{why}"
            )


def _many(count: int) -> str:
    return "1 connection was" if count == 1 else f"{count} connections were"


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"hold: {text}", file=sys.stderr, flush=True)
