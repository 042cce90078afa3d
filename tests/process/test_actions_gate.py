"""Structured actions under a policy: held, approved, denied, refused; and what is measured then."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast import Hold as Host
from holdfast import Session, errors
from holdfast.model.approval_info import ApprovalInfo
from process.acting import add_actor
from process.commanding import Hold
from process.sdking import reached
from process.waiting import PATIENCE_S

HELD = 'default = "hold"\n[[rule]]\nwho = ["human"]\nthen = "allow"\n'
REFUSED = 'default = "allow"\n[[rule]]\nwho = ["agent"]\nthen = "refuse"\nreason = "not yours"\n'


@pytest.fixture(scope="module", autouse=True)
def actors(host_home: Hold) -> Iterator[None]:
    add_actor(host_home, "agent", "execute", "--all")
    yield


@asynccontextmanager
async def gated(
    hold: Hold, name: str, directory: Path, policy: str
) -> AsyncIterator[tuple[Session, Host]]:
    """The agent's handle on a session with a policy, and somebody who may approve."""
    hold.ok("run", "-d", "--name", name, "--cwd", str(directory), "--", "bash", "--norc")
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    hold.ok("policy", "set", "-", "--session", name, stdin=policy.encode())
    async with reached(hold) as person, reached(hold, "agent") as agent:
        yield await agent.session(name), person
    hold.ok("end", name)


async def asked(person: Host, session: Session) -> ApprovalInfo:
    """What waits for approval in the session, once something does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for each in await person.approvals(session.id):
                if each.status == "pending":
                    return each
            await asyncio.sleep(0.01)


async def looked_at(directory: Path) -> None:
    """Once somebody listed the directory from now on: that sets the time of its last access, if it
    is not behind the time of its last change."""
    os.utime(directory, (0, time.time()))
    async with asyncio.timeout(PATIENCE_S):
        while directory.stat().st_atime == 0:
            await asyncio.sleep(0.01)


@pytest.mark.requirement("G2")
async def test_a_held_action_runs_when_it_is_approved_and_its_trace_has_the_decision(
    host_home: Hold, tmp_path: Path
) -> None:
    async with gated(host_home, "held-action", tmp_path, HELD) as (session, person):
        acting = asyncio.create_task(
            session.act("echo > made", intent="build", expect={"files": ["made"]}, key="k")
        )
        approval = await asked(person, session)
        assert approval.text == "echo > made" and not (tmp_path / "made").exists()
        trace = await session.trace("k", wait=False)
        assert (trace.state, trace.decision.outcome) == ("running", "hold")
        await person.approve(approval.id)
        done = await acting
        assert done.ok and done.score == 1.0
        assert done.trace.decision.outcome == "allow"
        what = [step.what for step in done.trace.steps]
        assert what.count("action") == 1 and what.count("judged") == 2, what
        assert what[-3:] == ["command_began", "command_ended", "action_measured"]


async def test_what_others_did_while_an_action_was_held_is_not_its_doing(
    host_home: Hold, tmp_path: Path
) -> None:
    async with gated(host_home, "held-long", tmp_path, HELD) as (session, person):
        acting = asyncio.create_task(session.act("true", intent="look", key="k"))
        approval = await asked(person, session)
        (tmp_path / "others").write_text("while it waited")
        await looked_at(tmp_path)
        await looked_at(tmp_path)  # the look before is complete when the next one begins
        await person.approve(approval.id)
        assert (await acting).trace.unexpected == ()


async def test_a_denied_action_and_a_refused_one_did_not_run_and_count(
    host_home: Hold, tmp_path: Path
) -> None:
    async with gated(host_home, "denied-action", tmp_path, HELD) as (session, person):
        before = (await person.score("agent")).totals
        acting = asyncio.create_task(session.act("echo > made", intent="build", key="k"))
        await person.deny((await asked(person, session)).id, note="no")
        with pytest.raises(errors.GateRefused):
            await acting
        trace = await session.trace("k")
        assert (trace.state, trace.code, trace.command) == ("refused", "gate_refused", None)
        assert trace.score is not None and not trace.score.valid
    async with gated(host_home, "refused-action", tmp_path, REFUSED) as (session, person):
        with pytest.raises(errors.GateRefused):
            await session.act("echo > made", intent="build", key="k", retry={"times": 3})
        trace = await session.trace("k")
        assert (trace.state, trace.decision.outcome) == ("refused", "refuse")
        assert trace.decision.reason.startswith("not yours") and trace.retries == ()
        after = (await person.score("agent")).totals
    assert (after.actions - before.actions, after.valid - before.valid) == (2, 0)
    assert list(tmp_path.iterdir()) == []
