"""Where the host's own relay asks for the host's numbers, for a scraper that has the token.

The relay has no authority: it passes on the token that it was shown, and the daemon judges it. The
socket has a name and no file, because the relay sees none of the host's files; so that nobody else
is taken for the daemon, the relay looks at the user who listens (relay/host_metrics.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import socket
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

_ASKING_S = 5.0  # for the whole exchange
_ASKED_MAX_BYTES = 4096  # a token in one line
_BACKLOG = 4


class MetricsSocket:
    """Of one daemon."""

    def __init__(self, name: str, token: str, text: Callable[[], Awaitable[str]]) -> None:
        """`text`: the host's numbers as they are now."""
        self._name, self._token, self._text = name, token.encode(), text
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """From now on, if there is a token. A daemon that leaves may have the name for a moment."""
        if not self._token:
            return
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(f"\0{self._name}")
        except OSError as error:
            listener.close()
            log.error("the own relay shows no metrics of the host: %s", error.strerror)
            return
        self._server = await asyncio.start_unix_server(
            self._asked, sock=listener, limit=_ASKED_MAX_BYTES, backlog=_BACKLOG
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with asyncio.timeout(_ASKING_S):
                token = await reader.readuntil(b"\n")
                if hmac.compare_digest(token[:-1], self._token):
                    writer.write((await self._text()).encode())
                    await writer.drain()
        writer.close()
