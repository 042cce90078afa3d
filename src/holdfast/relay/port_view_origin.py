"""A second origin, on its own port, for pages that come from ports of sessions: the web app shows
them in a frame (docs/relay.md, *Viewing a port*).

Such a page is untrusted. On the app's own origin it could use the keys of this device; on another
origin it cannot. This server provides only the frame around the page and the worker that passes its
requests to the app; the page itself comes through the app's channel.
"""

from __future__ import annotations

from aiohttp import web

from holdfast.relay.web_app import VIEW, WebApp, origin_at

_SHELL = "shell.html"
# Policy of the frame: it shows frames of its own origin, and runs only its own script.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors {app}"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_NOT_HERE = "pages of a session's port are shown inside the app; there is nothing here\n"


class ViewOrigin:
    """The same host name as the web app, at another port."""

    def __init__(self, web_app: WebApp, app_port: int) -> None:
        self._web_app, self._app_port = web_app, app_port

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/__hold/{name}", self._file)
        app.router.add_post("/__hold/clear", self._clear)
        app.router.add_route("*", "/{rest:.*}", self._nothing)
        return app

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        asset = self._web_app.asset(VIEW + name)
        if asset is None:
            return await self._nothing(request)
        headers = {**_HEADERS, "Content-Type": asset.content_type}
        if name == _SHELL:
            app = origin_at(request, self._app_port)
            headers["Content-Security-Policy"] = _POLICY.format(app=app)
        if name == "sw.js":
            headers["Service-Worker-Allowed"] = "/"  # the script is in a subdirectory of its scope
        return web.Response(body=asset.body, headers=headers)

    async def _clear(self, request: web.Request) -> web.Response:
        """Clear what a page stored, before the page of another port is shown."""
        return web.Response(headers={**_HEADERS, "Clear-Site-Data": '"cache", "storage"'})

    async def _nothing(self, request: web.Request) -> web.Response:
        """No framing, no script: such a request bypassed the worker."""
        policy = "default-src 'none'; frame-ancestors 'none'"
        headers = {**_HEADERS, "Content-Security-Policy": policy}
        return web.Response(status=404, text=_NOT_HERE, headers=headers)
