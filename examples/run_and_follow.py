"""Start a session, run a command in its shell, read the output as it comes, and get its status.

While it runs, `hold attach follow` shows it. Without the last line the session would stay.
"""

import asyncio

from holdfast import connect


async def main() -> None:
    async with connect() as hold:
        session = await hold.run(["bash", "--norc"], name="follow")
        await session.wait_for(state="prompt", timeout=30)
        job = await session.start("for n in 1 2 3; do echo step $n; done; false")
        async for piece in job.output():
            print(piece.data.decode(), end="")
        result = await job.result()
        print(f"status {result.status} after {result.duration_s:.1f} s, journal {result.seq}")
        await session.end()


asyncio.run(main())
