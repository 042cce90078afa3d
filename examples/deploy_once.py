"""A deployment that may be retried as often as one likes: the key makes it happen once.

Run it again, kill it in the middle and run it again: the second call does not run the command, it
gets the result of the first.
"""

import asyncio

from holdfast import connect, errors

COMMAND = "echo deployed as $$"


async def main() -> None:
    async with connect() as hold:
        try:
            session = await hold.session("deploys")
        except errors.NoSuchSession:
            session = await hold.run(["bash", "--norc"], name="deploys")
            await session.wait_for(state="prompt", timeout=30)
        first = await session.submit(COMMAND, key="release-42")
        again = await session.submit(COMMAND, key="release-42")
        print(first.output, end="")
        print("the same deployment" if again == first else "a second deployment")


asyncio.run(main())
