"""Wait until a program asks something, read the question, and answer it.

That it waits for input is told by the kernel, not guessed from the text.
"""

import asyncio

from holdfast import connect, events

PROGRAM = "read -p 'Drop the table? [y/N] ' answer; echo you said $answer"


async def main() -> None:
    async with connect() as hold:
        session = await hold.run(["bash", "-c", PROGRAM], name="asking")
        async for event in session.events():
            if isinstance(event, events.StateChanged) and event.state == "input":
                print(f"it asks: {event.waiting_line.strip()}")
                await session.type("no", enter=True)
            elif isinstance(event, events.Ended):
                print(f"it ended: {event.ending}")
        print((await session.screen()).lines[1])


asyncio.run(main())
