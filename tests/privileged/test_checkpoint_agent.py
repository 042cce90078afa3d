"""An agent checkpoints a session, restores it, and is told what stands in the way."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from e2e.agent_thread import AgentThread
from privileged.checkpointing import movable_host, put_to_sleep, said, started
from process.acting import add_actor
from process.commanding import Hold

ANSWER_MAX_CHARS = 20_000  # of 16,000 of rows and what is around them


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        add_actor(hold, "ada", "admin", "--all")
        add_actor(hold, "otto", "execute", "--all")
        yield hold


@pytest.fixture(scope="module")
def ada(hold: Hold) -> Iterator[AgentThread]:
    with AgentThread(hold, "ada") as connected:
        yield connected


@pytest.mark.requirement("M2", "R6")
def test_an_agent_puts_a_session_to_sleep_and_restores_it(hold: Hold, ada: AgentThread) -> None:
    session = started(hold, "work")
    pid = said(hold, "work", "export KEPT=yes; echo $$")
    running = ada("checkpoint", session="work", note="before the upgrade")
    assert (running["session"], running["kind"]) == ("work", "memory")
    assert running["state"] in ("prompt", "working")
    assert hold.json("checkpoints", "work")[0]["note"] == "before the upgrade"

    made = ada("checkpoint", session="work", end=True)
    assert made["state"] == "asleep" and made["checkpoint"] != running["checkpoint"]
    (row,) = [each for each in ada("list_sessions")["sessions"] if each["name"] == "work"]
    assert row["state"] == "asleep" and "restore" in row["note"]
    why = ada.refused("keys", session="work", keys=["x"])
    assert why["code"] == "session_asleep" and "restore" in why["what_to_do"]
    assert "`hold" not in why["what_to_do"]

    back = ada("restore", session="work")
    assert (back["id"], back["epoch"]) == (session, 2)
    assert ada("wait", session="work", state="prompt", seconds=50)["happened"]
    assert (back["checkpoint"], back["kind"]) == (made["checkpoint"], "memory")
    assert (back["inputs_lost"], back["resets"], back["left_out"]) == (0, [], 0)
    done = ada("submit", session="work", command="echo $KEPT $$", intent="look")
    assert done["output"] == f"yes {pid}\n"


@pytest.mark.requirement("M5")
def test_an_older_checkpoint_is_restored_by_its_id_and_the_answer_says_what_is_missing(
    hold: Hold, ada: AgentThread
) -> None:
    started(hold, "older")
    older = ada("checkpoint", session="older")["checkpoint"]
    ada("submit", session="older", command="echo later", intent="print")
    assert "later" in ada("observe", session="older")["screen"]
    put_to_sleep(hold, "older")
    back = ada("restore", session="older", checkpoint=older)
    assert (back["checkpoint"], back["inputs_lost"]) == (older, 1)
    assert "later" not in ada("observe", session="older")["screen"]


def test_what_cannot_be_restored_is_refused_and_the_next_step_is_said(
    hold: Hold, ada: AgentThread
) -> None:
    started(hold, "awake")
    why = ada.refused("restore", session="awake")
    assert why["code"] == "invalid_argument" and "awake runs" in why["message"]
    started(hold, "other")
    of_other = ada("checkpoint", session="other")["checkpoint"]
    why = ada.refused("restore", session="awake", checkpoint=of_other)
    assert why["code"] == "no_such_checkpoint" and "latest" in why["what_to_do"]
    hold.ok("run", "-d", "--name", "flat", "--level", "plain", "--", "bash", "--norc")
    assert ada.refused("checkpoint", session="flat")["what_to_do"]


@pytest.mark.requirement("A2")
def test_an_agent_may_checkpoint_only_with_the_right_and_only_its_own_sessions(hold: Hold) -> None:
    started(hold, "given")
    started(hold, "kept")
    with AgentThread(hold, "otto") as otto:
        assert otto("can_move", session="given")["movable"]
        why = otto.refused("checkpoint", session="given")
        assert why["code"] == "not_permitted" and "checkpoint" in why["message"]
        put_to_sleep(hold, "given")
        assert otto.refused("restore", session="given")["code"] == "not_permitted"
    with AgentThread(hold, "ada", "--session", "given") as ada:
        assert ada.refused("checkpoint", session="kept")["code"] == "no_such_session"
        assert ada("restore", session="given")["epoch"] == 2


@pytest.mark.requirement("R6")
def test_what_stands_in_the_way_comes_the_worst_first_and_in_bounds(
    hold: Hold, ada: AgentThread
) -> None:
    started(hold, "crowd", "python3", "-c", CROWD, prompt=False)
    assert ada("wait", session="crowd", text="crowded", seconds=50)["happened"]
    answer = ada("can_move", session="crowd")
    assert not answer["movable"] and answer["processes"] > COUNT
    assert answer["findings"][0]["verdict"] == "blocks"
    assert {"what", "why", "remedy", "pid", "command"} <= answer["findings"][0].keys()
    assert len(json.dumps(answer)) < ANSWER_MAX_CHARS
    assert answer["left_out"] > 0
    behind = ada("can_move", session="crowd", first=answer["next"])
    assert behind["findings"] and behind["findings"] != answer["findings"]
    why = ada.refused("checkpoint", session="crowd")
    assert why["code"] == "checkpoint_failed" and "can_move" in why["what_to_do"]
    hold.ok("end", "crowd")


COUNT = 60
# Each of these is traced by the one program, so each has something in the way of a checkpoint.
CROWD = f"""
import ctypes, os, signal, time
for _ in range({COUNT}):
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).ptrace(0, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
print("crow" + "ded", flush=True)
time.sleep(1000)
"""
