"""Autonomy that is earned: a policy holds what an agent does until its record is good, lets it work
then, and holds it again when it breaks something.

Here one program plays both, the agent and the person who approves; in life they are two. The agent
needs rights first: `hold actor add otto --kind agent`, `hold grant otto execute --all`. A new agent
has no record, and everything that it does is held.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast import connect

POLICY = """
default = "hold"

[[rule]]
name = "people-may"
who = ["human"]
then = "allow"

[[rule]]
name = "proven"
who = ["agent"]
score_from = 90
actions_from = 3
then = "allow"
"""


async def act(agent, person, command, files):
    """One action; whether it had to be approved, and its score."""
    acting = asyncio.create_task(agent.act(command, intent="do the work", expect={"files": files}))
    approved = False
    while not acting.done():
        for each in await person.approvals(agent.id):
            if each.status == "pending":
                await person.approve(each.id, note="looks right")
                approved = True
        await asyncio.wait([acting], timeout=0.05)
    return approved, (await acting).score


async def main() -> None:
    directory = tempfile.mkdtemp()
    async with connect() as person, connect(actor="otto") as otto:
        session = await person.run(["bash", "--norc"], name="earned", cwd=directory)
        await session.wait_for(state="prompt", timeout=30)
        hold = Path(sys.executable).with_name("hold")
        policy = [hold, "policy", "set", "-", "--session", "earned"]
        subprocess.run(policy, input=POLICY, text=True, stdout=subprocess.DEVNULL, check=True)
        agent = await otto.session("earned")
        for number in range(4):
            approved, score = await act(agent, person, f"date > part{number}", ["part*"])
            print(f"{'approved' if approved else 'by itself'}: score {score:.2f}")
        _, score = await act(agent, person, "rm part*; false", [])
        print(f"it breaks something: score {score:.2f}")
        approved, _ = await act(agent, person, "date > part9", ["part*"])
        print("approved again" if approved else "by itself")
        await session.end()


asyncio.run(main())
