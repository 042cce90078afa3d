"""What an agent's client is told of the tools, and answers that fit a model's window."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from e2e.agent_thread import AgentThread
from e2e.agents import agent, host_of_otto
from process.acting import add_actor
from process.commanding import Hold


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with host_of_otto("--all") as made:
        yield made


@pytest.fixture(scope="module")
def otto(hold: Hold) -> Iterator[AgentThread]:
    with AgentThread(hold, "otto") as connected:
        yield connected


# -- schemas ----------------------------------------------------------------------------------


@pytest.mark.requirement("R6")
async def test_every_tool_says_what_it_takes_and_what_it_answers(hold: Hold) -> None:
    async with agent(hold, "otto") as otto:
        tools = {tool.name: tool for tool in (await otto.client.list_tools()).tools}
    assert {"start_session", "end_session", "signal", "list_operators"} <= tools.keys()
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False, tool.name
        assert tool.output_schema is not None, tool.name
        assert "refused" in tool.output_schema["properties"], tool.name
    wait = tools["wait"].input_schema["properties"]
    assert wait["seconds"]["maximum"] == 55
    assert "prompt" in wait["state"]["anyOf"][0]["enum"]


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("observe", {"session": "x", "sinse": 3}, "sinse"),
        ("wait", {"session": "x", "state": "sleeping"}, "state"),
        ("wait", {"session": "x", "state": "prompt", "seconds": 900}, "seconds"),
        ("graph", {"session": "x", "port": 70_000}, "port"),
        ("signal", {"session": "x", "signal": "NOPE"}, "signal"),
        ("observe", {}, "session"),
        ("wait", {"session": "x", "text": "y", "since": 10**30}, "since"),
        ("submit", {"session": "x", "command": "", "intent": "nothing"}, "command"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_by_its_name(
    otto: AgentThread, tool: str, arguments: dict[str, object], named: str
) -> None:
    why = otto.refused(tool, **arguments)
    assert why["code"] == "invalid_argument" and named in why["message"]


async def test_the_resources_are_those_of_the_sessions_there_are(hold: Hold) -> None:
    session = hold.shell("listed")

    async with agent(hold, "otto") as otto:
        found = {str(each.uri) for each in (await otto.client.list_resources()).resources}
        assert f"hold://session/{session}/screen" in found
        assert f"hold://session/{session}/journal" in found


# -- sessions ---------------------------------------------------------------------------------


def test_it_starts_a_session_signals_it_sees_who_is_there_and_ends_it_if_it_may(
    hold: Hold, tmp_path: Path
) -> None:
    add_actor(hold, "ada", "admin", "--all")
    os.environ["HOLDFAST_TEST_API_KEY"] = "not-for-sessions"
    try:
        with AgentThread(hold, "ada") as ada:
            begun = ada(
                "start_session",
                name="own",
                command=["bash", "--norc"],
                directory=str(tmp_path),
                environment={"COLOUR": "blue"},
            )
            assert not begun["existed"]
            again = ada("start_session", name="own", reuse=True)
            assert again["existed"] and again["id"] == begun["id"]
            why = ada.refused("start_session", name="own")
            assert why["code"] == "name_taken"
            assert ada("wait", session="own", state="prompt", seconds=40)["happened"]
            done = ada("submit", session="own", command="pwd; echo $COLOUR; env", intent="look")
            assert done["output"].startswith(f"{tmp_path}\nblue\n")
            assert "not-for-sessions" not in done["output"]
            here = ada("list_operators", session="own")
            assert here["turn"]["yours"] and here["operators"] == []
            slow = ada("submit", session="own", command="sleep 1000", intent="wait", seconds=0.2)
            assert ada("signal", session="own", signal="TERM")["sent"] == "TERM"
            assert ada("result", handle=slow["handle"], seconds=40)["status"] == 143
            ended = ada("end_session", session="own")
            assert ended["ending"]["signal"] or ended["ending"]["code"] is not None
    finally:
        del os.environ["HOLDFAST_TEST_API_KEY"]


def test_a_session_that_a_policy_does_not_let_it_start_is_refused_with_the_reason(
    hold: Hold,
) -> None:
    add_actor(hold, "eve", "execute", "--all")
    hold.ok("policy", "set", "starter:hold-destructive")
    try:
        with AgentThread(hold, "eve") as eve:
            why = eve.refused("start_session", name="bad", command=["sh", "-c", "rm -rf /x"])
            assert why["code"] == "gate_refused" and "may destroy something" in why["message"]
            assert "start a shell" in why["what_to_do"]
            assert not eve("start_session", name="good", command=["bash", "--norc"])["existed"]
    finally:
        hold.ok("policy", "off")


def test_ending_a_session_without_the_right_to_is_refused_with_what_to_do(
    hold: Hold, otto: AgentThread
) -> None:
    hold.shell("kept")
    why = otto.refused("end_session", session="kept")
    assert why["code"] == "not_permitted" and "ask a person" in why["what_to_do"]


# -- questions --------------------------------------------------------------------------------


@pytest.mark.requirement("S7")
def test_a_command_that_asks_comes_back_at_once_with_its_question(
    hold: Hold, otto: AgentThread
) -> None:
    hold.shell("asks")
    asked = otto(
        "submit",
        session="asks",
        command="read -rp 'Proceed? ' word; echo $word",
        intent="ask",
        seconds=50,
    )
    assert asked["running"] and asked["state"] == "input" and asked["waits_for"] == "Proceed?"
    again = otto("result", handle=asked["handle"], seconds=50)
    assert again["running"] and again["waits_for"] == "Proceed?"
    otto("answer", session="asks", text="yes")
    done = otto("result", handle=asked["handle"], seconds=50)
    assert (done["status"], done["output"].splitlines()[-1]) == (0, "yes")


def test_an_expression_that_would_take_for_ever_stops_nothing(
    hold: Hold, otto: AgentThread
) -> None:
    hold.shell("expression")
    otto("submit", session="expression", command=f"echo {'a' * 2000}!", intent="print")
    waited = otto("wait", session="expression", text="^(a+)+x$", seconds=0.5)
    assert not waited["happened"]


# -- a model's window -------------------------------------------------------------------------


def test_progress_is_given_in_its_last_state_and_output_within_what_was_asked_for(
    hold: Hold, otto: AgentThread
) -> None:
    hold.shell("progress")
    done = otto(
        "submit",
        session="progress",
        command=r"for i in $(seq 1000); do printf '\r%d of 1000' $i; done; echo; seq 500",
        intent="count",
        max_chars=200,
    )
    assert len(done["output"]) <= 200 and done["output"].endswith("\n500\n")
    assert done["cut_chars"] < 3000
    page = otto("read_output", session="progress", offset=done["output_begins"], max_chars=100)
    assert page["text"].startswith("1000 of 1000\n1\n2\n") and len(page["text"]) <= 100
    assert page["more"]


def test_a_full_screen_program_is_flagged_and_sent_as_a_screen(
    hold: Hold, otto: AgentThread
) -> None:
    hold.shell("drawn")
    draw = r"printf '\033[?1049h\033[H\033[2Jtop line\033[5;3Hlower'; "
    draw += "read -n1 x; printf 'more'; read x"
    shown = otto(
        "submit", session="drawn", command=draw + r"; printf '\033[?1049l'", intent="d", seconds=50
    )
    assert shown["full_screen_program"] and "top line" in shown["screen"]
    listed = {each["name"]: each for each in otto("list_sessions")["sessions"]}
    assert listed["drawn"]["full_screen_program"] and listed["drawn"]["state"] == "input"
    assert "output_so_far" not in shown
    first = otto("observe", session="drawn")
    otto("keys", session="drawn", keys=["Enter"])
    assert otto("wait", session="drawn", text="more", seconds=40)["happened"]
    later = otto("observe", session="drawn", since=first["cursor"])
    assert "screen" not in later and "0" not in later["changed_rows"]
    assert any("more" in row for row in later["changed_rows"].values())
    otto("keys", session="drawn", keys=["Enter"])
    done = otto("result", handle=shown["handle"], seconds=50)
    assert done["full_screen_program"] and "top line" not in done["output"]


def test_its_own_commands_are_left_out_of_what_it_catches_up_on(
    hold: Hold, otto: AgentThread
) -> None:
    hold.shell("own-left-out")
    otto("catch_up", session="own-left-out")
    otto("submit", session="own-left-out", command="echo mine", intent="one")
    otto("yield_turn", session="own-left-out")
    hold.ok("exec", "own-left-out", "--", "echo theirs")
    told = otto("catch_up", session="own-left-out")
    assert [each["command"] for each in told["commands"]] == ["echo theirs"]
    assert told["own_commands"] == 1
    otto("submit", session="own-left-out", command="echo mine again", intent="two")
    told = otto("catch_up", session="own-left-out", include_own=True)
    assert [each["command"] for each in told["commands"]] == ["echo mine again"]


def test_processes_have_the_pid_that_the_session_sees(hold: Hold, otto: AgentThread) -> None:
    hold.shell("pids")
    done = otto("submit", session="pids", command="echo $$", intent="look")
    pids = {each["pid"]: each for each in otto("graph", session="pids")["processes"]}
    assert "bash" in pids[int(done["output"])]["command"]
    assert all(each["host_pid"] > 0 for each in pids.values())
