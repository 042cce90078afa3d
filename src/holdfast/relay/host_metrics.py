"""The numbers of the host whose own relay this is, asked of its daemon with the token that a
scraper showed (host/metrics_socket.py)."""

from __future__ import annotations

import asyncio
import socket
import struct

_ASKING_S = 5.0  # a scraper waits about as long


async def host_metrics(name: str, uid: int, token: str) -> str:
    """In the form of Prometheus; a comment when there are none. `uid`: of the host's daemon, for
    anybody can listen under a name."""
    try:
        async with asyncio.timeout(_ASKING_S):
            return await _ask(name, uid, token) or "# the host refused the token\n"
    except (OSError, TimeoutError) as error:
        return f"# no metrics of the host: {error or 'it does not answer'}\n"


async def _ask(name: str, uid: int, token: str) -> str:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.connect(f"\0{name}")  # at once, or it is refused
        peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("3i", peer)[1] != uid:
            raise OSError("another user listens in its place")
    except OSError:
        sock.close()
        raise
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    try:
        writer.write(token.encode() + b"\n")
        await writer.drain()
        return (await reader.read()).decode(errors="replace")
    finally:
        writer.close()
