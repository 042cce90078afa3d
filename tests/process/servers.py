"""Programs that listen on a port of their own choosing, for sessions in tests; each prints `ready
PORT`. Run as a script, with what to be as its first word."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import socket
import struct
import sys
import threading
from collections.abc import Callable

_ABORT = struct.pack("ii", 1, 0)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
BIG_BYTES = 50 << 20
PIECE = bytes(range(256)) * 256


def digest(conn: socket.socket) -> None:
    """All that is said until the end is said, then how much it was and its hash."""
    size, found = 0, hashlib.sha256()
    while piece := conn.recv(65536):
        size += len(piece)
        found.update(piece)
    conn.sendall(f"{size} {found.hexdigest()}\n".encode())


def big(conn: socket.socket) -> None:
    """A lot, the same each time."""
    for _ in range(BIG_BYTES // len(PIECE)):
        conn.sendall(PIECE)


def flood(conn: socket.socket) -> None:
    """More than anybody takes; how much went is printed now and then."""
    sent = 0
    while True:
        sent += conn.send(PIECE)
        print(f"sent {sent}", flush=True)


def deaf(conn: socket.socket) -> None:
    """Never reads a byte."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    conn.sendall(b"hello\n")
    threading.Event().wait()


def echo(conn: socket.socket) -> None:
    while piece := conn.recv(65536):
        conn.sendall(piece)


def reset(conn: socket.socket) -> None:
    """Something, then it is cut off."""
    conn.sendall(b"half of it")
    conn.recv(1)
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)


def parting(conn: socket.socket) -> None:
    """The end is said first; what comes is still taken, slowly, and printed as a hash."""
    conn.sendall(b"that was all\n")
    conn.shutdown(socket.SHUT_WR)
    found = hashlib.sha256()
    while piece := conn.recv(65536):
        found.update(piece)
    print(f"took {found.hexdigest()[:16]}", flush=True)


def websocket() -> None:
    from aiohttp import WSMsgType, web

    async def talk(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        async for message in answer:
            if message.type == WSMsgType.TEXT:
                await answer.send_str(f"you said {message.data}")
            elif message.type == WSMsgType.BINARY:
                await answer.send_bytes(message.data)
        return answer

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/ws", talk)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"ready {runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


_PAGE = """<!doctype html>
<html><head><title>A site</title></head><body><p id="said">nothing yet</p>
<script type="module" src="/app.js"></script></body></html>"""
_SCRIPT = """
const said = document.getElementById('said')
const posted = await (await fetch('/api', { method: 'POST', body: 'a question' })).text()
const port = %(port)d
const named = await (await fetch(`http://localhost:${port}/cookie`)).text()
const moved = await fetch('/old')
const big = await (await fetch('/big')).arrayBuffer()
const socket = new WebSocket(`${location.protocol.replace('http', 'ws')}//${location.host}/ws`)
socket.binaryType = 'arraybuffer'
const heard = []
socket.onmessage = ({ data }) => {
  heard.push(typeof data === 'string' ? data : data.byteLength)
  if (heard.length === 1) socket.send(new Uint8Array(200000))
  else socket.close(1000)
}
socket.onopen = () => socket.send('hello')
socket.onclose = ({ code }) => {
  said.textContent = JSON.stringify({
    posted, named, moved: new URL(moved.url).pathname + ' ' + moved.status, big: big.byteLength,
    heard, code, native: socket instanceof WebSocket,
  })
}
"""


def site() -> None:
    """What dev servers do: a page, a module, an API, cookies, a redirect, a long answer, a socket,
    and headers that forbid all that is done to show it."""
    from aiohttp import WSMsgType, web

    async def page(request: web.Request) -> web.Response:
        answer = web.Response(text=_PAGE, content_type="text/html")
        answer.headers["Content-Security-Policy"] = "default-src 'self'"
        answer.headers["X-Frame-Options"] = "DENY"
        answer.set_cookie("who", "the session", path="/", httponly=True)
        return answer

    async def script(request: web.Request) -> web.Response:
        text = _SCRIPT % {"port": request.url.port}
        return web.Response(text=text, content_type="text/javascript")

    async def api(request: web.Request) -> web.Response:
        return web.Response(text=f"{await request.text()} to {request.host.partition(':')[0]}")

    async def cookie(request: web.Request) -> web.Response:
        return web.Response(text=request.cookies.get("who", "nobody"))

    async def old(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"http://{request.host}/new")

    async def new(request: web.Request) -> web.Response:
        return web.Response(text="moved here")

    async def big(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(64):
            await answer.write(PIECE)
        return answer

    async def talk(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse(max_msg_size=1 << 20)
        await answer.prepare(request)
        async for message in answer:
            if message.type == WSMsgType.TEXT:
                await answer.send_str(f"you said {message.data}")
            elif message.type == WSMsgType.BINARY:
                await answer.send_bytes(message.data)
        return answer

    async def serve() -> None:
        app = web.Application()
        routes = {
            "/": page, "/app.js": script, "/cookie": cookie, "/old": old, "/new": new,
            "/big": big, "/ws": talk,
        }  # fmt: skip
        for path, handler in routes.items():
            app.router.add_get(path, handler)
        app.router.add_post("/api", api)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(f"ready {runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())


def files() -> None:
    import http.server

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    print(f"ready {server.server_address[1]}", flush=True)
    server.serve_forever()


def serve(talk: Callable[[socket.socket], None], address: str, *, network: bool) -> None:
    if network:
        _loopback_up()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family, backlog=512)
    print(f"ready {listener.getsockname()[1]}", flush=True)

    def served(conn: socket.socket) -> None:
        with conn, contextlib.suppress(OSError):
            talk(conn)

    while True:
        conn, _ = listener.accept()
        threading.Thread(target=served, args=(conn,), daemon=True).start()


def _loopback_up() -> None:
    """In a network namespace that is new."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(sock, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


if __name__ == "__main__":
    kind = sys.argv[1]
    where = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    if kind == "websocket":
        websocket()
    elif kind == "site":
        site()
    elif kind == "files":
        files()
    else:
        serve(globals()[kind], where.removeprefix("inside:"), network="inside:" in where)
