"""Start a server in a session and go on when it listens: the kernel says so, and whose it is."""

import asyncio
import socket

from holdfast import connect


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def main() -> None:
    port = free_port()
    async with connect() as hold:
        session = await hold.run(["bash", "--norc"], name="web")
        await session.wait_for(state="prompt", timeout=30)
        await session.start(f"python3 -m http.server {port} --bind 127.0.0.1")
        server = await session.wait_for(port=port, timeout=30)
        print(f"pid {server.pid} ({server.name}) listens")
        await session.keys("C-c")
        await session.wait_for(state="prompt", timeout=30)
        gone = (await session.graph()).listening(port) is None
        print("and is gone again" if gone else "and is still there")
        await session.end()


asyncio.run(main())
