"""Standard input and output on the event loop. The SDK's own streams use a thread for each line,
which takes longer than reading a screen."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import anyio

_LINE_MAX_BYTES = 4 << 20


@asynccontextmanager
async def standard_streams() -> AsyncIterator[
    tuple[anyio.AsyncFile[str] | None, anyio.AsyncFile[str] | None]
]:
    """The streams for `stdio_server`; None if they are not pipes. Anything else printed meanwhile
    goes to standard error: on standard output it would be taken for an answer."""
    if not (_carries(0) and _carries(1)):
        yield None, None
        return
    loop = asyncio.get_running_loop()
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=_LINE_MAX_BYTES)
    reading, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0)
    )
    writing, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(outgoing, "wb", 0)
    )
    writer = asyncio.StreamWriter(writing, protocol, None, loop)
    try:
        yield (
            cast("anyio.AsyncFile[str]", _lines(reader)),
            cast("anyio.AsyncFile[str]", _Out(writer)),
        )
    finally:
        reading.close()
        writing.close()
        sys.stdout.flush()


def _carries(descriptor: int) -> bool:
    """Whether it is a pipe or a socket: an event loop cannot wait for a file."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    async for line in reader:
        yield line.decode(errors="replace")


class _Out:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        await self._writer.drain()
