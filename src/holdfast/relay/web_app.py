"""The web app as this relay gives it out: the files of a build, from memory, with the headers that
keep a page to itself. It knows nothing of sessions: the page is an operator like any other, and
talks to hosts through `/v1/operator`, sealed from this relay too.

A request names a file exactly as the build made it, or one of the addresses of the app, which is
one page. No path is ever put together from what was asked, so there is nothing to climb out of.
Nothing of a visitor is kept, and a link's secret (after `#`) never comes here at all."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator

from aiohttp import web

from holdfast.model.record import Record

BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "web")
PAGE = "index.html"
VIEW = "view/"  # of another origin: view_origin.py
# Where the names of files hold a hash of what is in them: those never change.
_HASHED = "assets/"
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"  # kept, and asked for with its ETag: a new build is seen at once
_NEVER = "no-store"
_ZIPPED = ".gz"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".webmanifest": "application/manifest+json; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}

# What the page may do. Everything it needs is in the build, and it speaks to nobody but the relay
# it came from ('self' stands for its WebSockets too).
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

# A browser complains of this one, aloud, where it is not sure who sent it.
_OPENER = {"Cross-Origin-Opener-Policy": "same-origin"}
_THIS_MACHINE = re.compile(r"(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?")

_NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>holdfast</title>
<h1>This relay works, but it has no web app</h1>
<p>It was installed without one: building it needs Node.js 20 or newer and its packages.
On the machine of the relay, in its sources, <code>scripts/web-build</code> builds it and says
what is missing. Reload this page then; nothing needs to be started again.
<p>A link to here is good for the command line as well: <code>hold join 'LINK'</code>.
</html>
"""


class Asset(Record):
    """One file of the build."""

    content_type: str
    body: bytes
    zipped: bytes  # empty where that would not be smaller
    tag: str  # of what is in it
    for_ever: bool

    def answer(self, request: web.Request) -> web.Response:
        headers = _headers(request, _FOR_EVER if self.for_ever else _ASK_AGAIN)
        headers["Vary"] = "Accept-Encoding"
        # Two forms of one file are two representations: each has its own tag.
        zipped = bool(self.zipped) and _takes_gzip(request.headers.get("Accept-Encoding", ""))
        headers["ETag"] = tag = f'"{self.tag}{"-gz" if zipped else ""}"'
        # Weak tags too: a proxy on the way may have made them so.
        if any(f'"{each.value}"' == tag for each in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = self.content_type
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=self.zipped if zipped else self.body, headers=headers)


class WebApp:
    """The build in one directory, read at once: later this process may not be allowed to."""

    def __init__(self, directory: str = BUILT) -> None:
        self._directory = directory
        self._assets = dict(_read(directory))
        self.view_port = 0  # where pages of sessions' ports are shown (view_origin.py); 0: nowhere

    def route(self, app: web.Application) -> None:
        """Last: everything that is not something else may be a file of the build."""
        for address in ("/", "/i", "/m/{rest:.+}"):
            app.router.add_get(address, self._page)
        app.router.add_get("/view.json", self._view)
        app.router.add_get("/{name:.+}", self._file)

    async def _view(self, request: web.Request) -> web.Response:
        return web.json_response({"port": self.view_port}, headers=_headers(request, _NEVER))

    async def _page(self, request: web.Request) -> web.Response:
        page = self._found().get(PAGE)
        if page is None:
            return web.Response(
                status=503,
                text=_NOT_BUILT,
                content_type="text/html",
                headers=_headers(request, _NEVER),
            )
        answer = page.answer(request)
        if self.view_port:
            framed = f"; frame-src {origin_at(request, self.view_port)}"
            answer.headers["Content-Security-Policy"] += framed
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        asset = None if name.startswith(VIEW) else self._found().get(name)
        if asset is None:
            headers = _headers(request, _NEVER)
            return web.Response(status=404, text="there is nothing here\n", headers=headers)
        return asset.answer(request)

    def asset(self, name: str) -> Asset | None:
        return self._found().get(name)

    def _found(self) -> dict[str, Asset]:
        """Where there is no build, one may have been made since."""
        if PAGE not in self._assets:
            self._assets = dict(_read(self._directory))
        return self._assets


def _read(directory: str) -> Iterator[tuple[str, Asset]]:
    """Every file that is of a kind we know, by its path in the build."""
    for place, _, names in os.walk(directory):
        for name in names:
            content_type = _TYPES.get(os.path.splitext(name)[1])
            if content_type is None or name.startswith("."):
                continue
            path = os.path.join(place, name)
            asked = os.path.relpath(path, directory).replace(os.sep, "/")
            with open(path, "rb") as file:
                body = file.read()
            tag = hashlib.sha256(body).hexdigest()[:32]
            zipped = _zipped(path, body)
            yield asked, Asset(content_type, body, zipped, tag, asked.startswith(_HASHED))


def _zipped(path: str, body: bytes) -> bytes:
    """As the build left it beside the file, if that is what is in the file."""
    try:
        with open(path + _ZIPPED, "rb") as file:
            packed = file.read()
        if gzip.decompress(packed) == body and len(packed) < len(body):
            return packed
    except (OSError, EOFError, zlib.error):
        pass
    return b""


def _headers(request: web.Request, kept: str) -> dict[str, str]:
    return {**HEADERS, **(_OPENER if _trusted(request) else {}), "Cache-Control": kept}


def _trusted(request: web.Request) -> bool:
    """Whether a browser takes this for a secure context. A proxy before us may have the TLS; who
    claims that falsely gets one header more."""
    scheme = request.headers.get("X-Forwarded-Proto", request.scheme)
    return scheme == "https" or _THIS_MACHINE.fullmatch(request.host) is not None


def origin_at(request: web.Request, port: int) -> str:
    """This relay by the name it was asked by, at another port."""
    name = request.host
    if not name.endswith("]"):  # an address in brackets, without a port
        head, colon, tail = name.rpartition(":")
        name = head if colon and tail.isdecimal() else name
    scheme = request.headers.get("X-Forwarded-Proto", request.scheme)
    return f"{'https' if scheme == 'https' else 'http'}://{name}:{port}"


def _takes_gzip(accepted: str) -> bool:
    for each in accepted.split(","):
        name, _, quality = each.partition(";")
        if name.strip().lower() == "gzip":
            return quality.replace(" ", "").rstrip("0.") not in ("q=", "Q=")
    return False


def from_elsewhere(request: web.Request, names: frozenset[str]) -> bool:
    """Whether a page that this relay did not give out is what dials.

    A browser lets any page dial any WebSocket, and says whose page it is. There is nothing here
    that a page could take by that, since an operator proves itself to hosts with its own key; but a
    page of somebody else has no business at a relay on this machine or in this network. Programs
    say no origin. `names` are this relay's own: a proxy may have changed what was asked for."""
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    scheme, _, place = origin.partition("://")
    usual = {"http": ":80", "https": ":443"}.get(scheme)
    if usual is None:
        return True
    return not {place, place + usual} & ({request.host} | names)
