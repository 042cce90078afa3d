"""A policy and agents: what it holds waits until another agent with the right decides, what it
refuses is not run, and what was done is looked up by a tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from e2e.agent_thread import AgentThread
from e2e.agents import host_of_otto
from process.acting import add_actor
from process.commanding import Hold

HELD = 'default = "hold"\n[[rule]]\nwho = ["human"]\nthen = "allow"\n'
REFUSED = 'default = "allow"\n[[rule]]\nwho = ["agent"]\nthen = "refuse"\nreason = "not yours"\n'


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with host_of_otto("--all") as made:
        add_actor(made, "judge", "approve", "--all")
        yield made


@pytest.fixture(scope="module")
def otto(hold: Hold) -> Iterator[AgentThread]:
    with AgentThread(hold, "otto") as connected:
        yield connected


@pytest.fixture(scope="module")
def judge(hold: Hold) -> Iterator[AgentThread]:
    with AgentThread(hold, "judge") as connected:
        yield connected


def gated(hold: Hold, name: str, policy: str) -> None:
    hold.shell(name)
    hold.ok("policy", "set", "-", "--session", name, stdin=policy.encode())


def held(otto: AgentThread, session: str, command: str) -> dict[str, Any]:
    waits = otto("submit", session=session, command=command, intent="try", seconds=50)
    assert waits["running"] and not waits["begun"] and waits["held"], waits
    return waits


@pytest.mark.requirement("A8", "R6")
def test_a_held_line_runs_when_another_agent_with_the_right_approves_it(
    hold: Hold, otto: AgentThread, judge: AgentThread, tmp_path: Path
) -> None:
    gated(hold, "held", HELD)
    out = tmp_path / "out"
    waits = held(otto, "held", f"touch {out}; echo done")
    behind = otto.refused("submit", session="held", command="true", intent="behind it")
    assert behind["code"] == "gate_held" and "take it back" in behind["what_to_do"]
    [asked] = [each for each in judge("list_approvals")["approvals"] if each["session"] == "held"]
    assert (asked["id"], asked["status"], asked["actor"]) == (waits["held"], "pending", "otto")
    assert asked["text"] == f"touch {out}; echo done" and not out.exists()

    assert otto.refused("approve", id=asked["id"])["code"] == "not_permitted"
    hold.ok("grant", "otto", "execute", "approve", "held")
    own = otto.refused("approve", id=asked["id"])
    assert own["code"] == "not_permitted" and "somebody else" in own["what_to_do"]
    with AgentThread(hold, "judge", "--session", "another") as elsewhere:
        assert elsewhere.refused("approve", id=asked["id"])["code"] == "no_such_approval"
    assert not out.exists()

    approved = judge("approve", id=asked["id"], note="looks right")["approval"]
    assert approved["status"] == "approved" and approved["approved_by"] == ["judge"]
    done = otto("result", handle=waits["handle"], seconds=50)
    assert (done["status"], done["output"]) == (0, "done\n") and out.exists()
    assert judge.refused("approve", id=asked["id"])["code"] == "no_such_approval"


@pytest.mark.requirement("A8", "R6")
def test_a_held_line_that_another_agent_denies_is_refused_with_its_reason(
    hold: Hold, otto: AgentThread, judge: AgentThread, tmp_path: Path
) -> None:
    gated(hold, "denied", HELD)
    waits = held(otto, "denied", f"touch {tmp_path}/out")
    assert judge("deny", id=waits["held"], note="not on a Friday")["approval"]["status"] == "denied"
    for _ in ("once", "again"):
        why = otto.refused("result", handle=waits["handle"], seconds=50)
        assert why["code"] == "gate_refused" and "not on a Friday" in why["message"]
    assert not (tmp_path / "out").exists()


@pytest.mark.requirement("A8")
def test_a_line_that_a_policy_refuses_is_not_run(
    hold: Hold, otto: AgentThread, tmp_path: Path
) -> None:
    gated(hold, "refused", REFUSED)
    why = otto.refused("submit", session="refused", command=f"touch {tmp_path}/out", intent="try")
    assert why["code"] == "gate_refused" and "not yours" in why["message"]
    assert "ask a person" in why["what_to_do"]
    typed = otto("answer", session="refused", text=f"touch {tmp_path}/out")
    assert typed.get("refused", {}).get("code") == "gate_refused", typed
    assert not (tmp_path / "out").exists()


@pytest.mark.requirement("G3")
def test_what_an_action_did_and_an_actors_record_are_looked_up(
    hold: Hold, otto: AgentThread, judge: AgentThread, tmp_path: Path
) -> None:
    hold.ok("run", "-d", "--name", "traced", "--cwd", str(tmp_path), "--", "bash", "--norc")
    hold.ok("wait", "traced", "--for", "prompt", "--timeout", "20")
    done = otto(
        "submit",
        session="traced",
        command="echo > out; echo > stray; sleep 1000 &",
        intent="build it",
        expect={"files": ["out"]},
        key="build-1",
    )
    for action in (done["measured"]["action"], "build-1", "1"):
        trace = judge("trace", session="traced", action=action)
        assert (trace["actor"], trace["intent"], trace["state"]) == ("otto", "build it", "done")
        assert trace["undeclared"][0] == f"file_created: {tmp_path}/stray"
        assert f"file_created: {tmp_path}/out" in trace["effects"]
        assert any(each.startswith("process: sleep 1000") for each in trace["effects"])
        assert (trace["status"], trace["missing"], trace["success"]) == (0, [], True)
        assert trace["score"] == done["measured"]["score"] < 1.0
        assert {"action", "command_began"} <= {each["what"] for each in trace["steps"]}
    own, seen = otto("score"), judge("score", actor="otto", days=1)
    assert own["recent_actions"] == seen["recent_actions"] >= 1 and seen["actor"] == "otto"
    assert seen["days"][-1]["totals"]["scored"] >= 1
    assert judge.refused("trace", session="traced", action="none")["code"] == "invalid_argument"
