"""Serves the web app: the files of a build, from memory, with the headers that isolate its page. It
knows nothing of sessions: the page is an operator like any other, and talks to hosts through
`/v1/operator`, encrypted end to end.

A request must name a file of the build exactly, or an address of the app, which is one page. No
path is ever built from a request, so path traversal is impossible. Nothing about a visitor is
stored, and a link's secret (after `#`) never gets here."""

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
VIEW = "view/"  # of another origin: port_view_origin.py
# Files whose names contain a hash of their content: they never change.
_HASHED = "assets/"
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"  # cached, and revalidated by ETag: a new build is used at once
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

# What the page may do. Everything it needs is in the build, and it connects only to the relay it
# came from ('self' includes WebSockets).
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

# Browsers warn about this header on origins they do not trust.
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
    zipped: bytes  # empty if not smaller
    tag: str  # of its content
    for_ever: bool

    def answer(self, request: web.Request) -> web.Response:
        headers = _headers(request, _FOR_EVER if self.for_ever else _ASK_AGAIN)
        headers["Vary"] = "Accept-Encoding"
        # The plain and the compressed form each have their own tag.
        zipped = bool(self.zipped) and _takes_gzip(request.headers.get("Accept-Encoding", ""))
        headers["ETag"] = tag = f'"{self.tag}{"-gz" if zipped else ""}"'
        # Weak tags too: a proxy may have weakened them.
        if any(f'"{each.value}"' == tag for each in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        headers["Content-Type"] = self.content_type
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=self.zipped if zipped else self.body, headers=headers)


class WebApp:
    """The build in one directory, read at the start: later this process may lack permission."""

    def __init__(self, directory: str = BUILT) -> None:
        self._directory = directory
        self._assets = dict(_read(directory))
        self.view_port = 0  # of pages of sessions' ports (port_view_origin.py); 0: nowhere

    def route(self, app: web.Application) -> None:
        """Call it last: any other path may be a file of the build."""
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
        """If there was no build, look again: one may have been made since."""
        if PAGE not in self._assets:
            self._assets = dict(_read(self._directory))
        return self._assets


def _read(directory: str) -> Iterator[tuple[str, Asset]]:
    """Every file of a known type, by its path in the build."""
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
    """The compressed file beside it, if it has the same content."""
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
    """Whether a browser treats this as a secure context. A proxy in front may do the TLS; a false
    claim only adds one header."""
    scheme = request.headers.get("X-Forwarded-Proto", request.scheme)
    return scheme == "https" or _THIS_MACHINE.fullmatch(request.host) is not None


def origin_at(request: web.Request, port: int) -> str:
    """This relay's origin under the requested host name, at another port."""
    name = request.host
    if not name.endswith("]"):  # an IPv6 address in brackets, without a port
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


def is_foreign_page(request: web.Request, names: frozenset[str]) -> bool:
    """Whether the request comes from a page of another origin.

    A browser lets any page connect to any WebSocket, and sends the page's origin. Such a page could
    gain nothing here, since an operator proves itself to hosts with its own key; but a foreign page
    has no business at a relay on this machine or in this network. Programs send no origin. `names`
    are this relay's own names: a proxy may have changed the requested one."""
    origin = request.headers.get("Origin")
    if origin is None:
        return False
    scheme, _, place = origin.partition("://")
    usual = {"http": ":80", "https": ":443"}.get(scheme)
    if usual is None:
        return True
    return not {place, place + usual} & ({request.host} | names)
