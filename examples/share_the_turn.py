"""Work in a session that others use too: take the turn, stop at once when somebody takes it away.

Here one program plays both: an agent that works, and you, who take the turn from it. The agent is
an actor of its own, made before with `hold actor add otto` and `hold grant otto execute --all`.
"""

import asyncio

from holdfast import Session, connect, errors


async def work(session: Session, started: asyncio.Event) -> str:
    async with session.turn(message="a hundred small steps") as turn:
        for number in range(100):
            try:
                await session.submit(f"echo step {number}")
            except errors.TurnLost as lost:
                return f"stopped: {turn.reason} ({lost.code})"
            started.set()
    return "all done"


async def main() -> None:
    async with connect() as you, connect(actor="otto") as otto:
        session = await you.run(["bash", "--norc"], name="shared")
        await session.wait_for(state="prompt", timeout=30)
        started = asyncio.Event()
        working = asyncio.create_task(work(await otto.session("shared"), started))
        await started.wait()
        receipt = await session.seize(halt=True, reason="let me look first")
        print(f"halted: {receipt.frozen}")
        await session.resume()
        print(await working)
        await session.end()


asyncio.run(main())
