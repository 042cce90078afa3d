"""What became of an agent's command is had by its handle: again, from another server, from an
offset on, and when it was cut off, which is no refusal."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from e2e.agent_thread import AgentThread
from e2e.agents import host_of_otto
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


def servers_of(hold: Hold) -> list[int]:
    """The `hold mcp` that this process started for this host."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            home = f"HOLDFAST_HOME={hold.home}".encode()
            if int(parent) == os.getpid() and b"mcp" in words and home in environment:
                found.append(int(pid))
    return found


# -- handles ----------------------------------------------------------------------------------


@pytest.mark.requirement("G4")
def test_a_handle_outlives_the_server_that_gave_it(hold: Hold, tmp_path: Path) -> None:
    session = hold.shell("outlived")
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    lines = f"echo begun; cat {gate}; (exit 6)"

    with contextlib.suppress(Exception), AgentThread(hold, "otto") as first:
        begun = first("submit", session="outlived", command=lines, intent="wait", seconds=0.2)
        [server] = servers_of(hold)
        os.kill(server, signal.SIGKILL)
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
    assert begun["running"] and begun["handle"].startswith(f"{session}/")

    with AgentThread(hold, "otto") as second:
        still = second("result", handle=begun["handle"], seconds=0.2)
        assert still["running"] and "begun" in still["output_so_far"]
        gate.write_text("a word\n")
        for _ in ("once", "again"):
            ended = second("result", handle=begun["handle"], seconds=40)
            assert (ended["status"], ended["output"]) == (6, "begun\na word\n")
            assert not ended["running"] and ended["handle"] == begun["handle"]
        never = second.refused("result", handle=f"{session}/never-begun")
        assert never["code"] == "invalid_argument"
        assert second.refused("result", handle="nonsense")["code"] == "invalid_argument"


def test_output_is_had_from_where_one_was(hold: Hold, otto: AgentThread, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    hold.shell("paged")
    begun = otto(
        "submit",
        session="paged",
        command=f"seq 1 400; cat {gate}; echo the end",
        intent="count",
        seconds=0.3,
    )
    assert otto("wait", session="paged", text="^400$", seconds=40)["happened"]
    handle = begun["handle"]

    first = otto("result", handle=handle, seconds=0, since=0, max_chars=500)
    assert first["output_so_far"].startswith("1\n2\n") and len(first["output_so_far"]) <= 500
    assert first["more"] and not first["lost_bytes"]
    text, page = first["output_so_far"], first
    while page["more"]:
        page = otto("result", handle=handle, seconds=0, since=page["next"], max_chars=500)
        text += page["output_so_far"]
    assert text.splitlines() == [str(number) for number in range(1, 401)]
    nothing = otto("result", handle=handle, seconds=0, since=page["next"])
    assert (nothing["output_so_far"], nothing["next"]) == ("", page["next"])

    gate.write_text("")
    rest = otto("result", handle=handle, seconds=40, since=page["next"])
    assert (rest["status"], rest["output"], rest["more"]) == (0, "the end\n", False)
    whole = otto("result", handle=handle)
    assert whole["output"].startswith("1\n") and whole["output"].endswith("the end\n")
    assert whole["next"] == rest["next"]


@pytest.mark.requirement("G4")
def test_a_key_of_its_own_runs_a_command_once(
    hold: Hold, otto: AgentThread, tmp_path: Path
) -> None:
    session = hold.shell("keyed")
    file = tmp_path / "ran"

    def submit(command: str = f"echo once >> {file}; cat {file}", **more: Any) -> dict[str, Any]:
        return otto("submit", session="keyed", command=command, intent="once", key="k/1", **more)

    first, again = submit(), submit()
    assert first["handle"] == f"{session}/k/1" and first["status"] == 0
    assert again == first and file.read_text() == "once\n"
    for handle in ("keyed/k/1", "k/1"):
        assert otto("result", handle=handle)["journal_seq"] == first["journal_seq"]
    assert submit("echo other")["refused"]["code"] == "invalid_argument"
    assert otto("result", handle="keyed/k/1")["output"] == "once\n"
    with AgentThread(hold, "otto") as second:
        joined = second(
            "submit",
            session="keyed",
            command=f"echo once >> {file}; cat {file}",
            intent="once",
            key="k/1",
        )
        assert (joined["status"], joined["output"]) == (0, "once\n")
    assert file.read_text() == "once\n"


def test_what_an_action_did_is_asked_for_again_too(
    hold: Hold, otto: AgentThread, tmp_path: Path
) -> None:
    hold.shell("measured")
    hold.ok("exec", "measured", "--", f"cd {tmp_path}")
    done = otto(
        "submit",
        session="measured",
        command="echo > out",
        intent="build",
        expect={"files": ["out"]},
        key="a",
    )
    with AgentThread(hold, "otto") as second:
        again = second("result", handle=done["handle"])
        assert again["measured"] == done["measured"] and again["measured"]["score"] == 1.0


# -- cut off ----------------------------------------------------------------------------------


@pytest.mark.requirement("G4")
@pytest.mark.parametrize("how", ["kill", "end", "keeper"])
def test_a_command_in_which_its_session_went_was_not_refused(
    hold: Hold, otto: AgentThread, tmp_path: Path, how: str
) -> None:
    session = hold.shell(f"gone-by-{how}")
    file = tmp_path / "file"
    begun = otto(
        "submit",
        session=session,
        command=f"touch {file}; printf 'so far: '; read x; kill -9 $$",
        intent="go",
    )
    assert begun["running"] and begun["waits_for"] == "so far:"
    if how == "kill":
        otto("answer", session=session, text="")
    elif how == "end":
        hold.ok("end", session)
    else:
        os.kill(hold.json("show", session)["keeper_pid"], signal.SIGKILL)

    for _ in ("once", "again"):
        gone = otto("result", handle=begun["handle"], seconds=40)
        assert (gone["running"], gone["begun"], gone["status"]) == (False, True, None)
        assert "so far:" in gone["output"] and gone["output_begins"] == begun["output_begins"]
        assert gone["cut_off"]["code"] == ("session_lost" if how == "keeper" else "session_ended")
        lost, ended_by = gone["ending"].get("lost"), gone["ending"].get("signal")
        assert lost if how == "keeper" else ended_by in (signal.SIGKILL, signal.SIGHUP)
    assert file.exists()
    with AgentThread(hold, "otto") as second:  # to which the host says of it only that it is over
        gone = second("result", handle=begun["handle"])
        assert (gone["running"], gone["status"]) == (False, None) and gone["ending"]


@pytest.mark.requirement("G4")
def test_one_submit_that_kills_its_own_shell_is_not_refused(hold: Hold, otto: AgentThread) -> None:
    hold.shell("at-once")
    gone = otto("submit", session="at-once", command="echo said; kill -9 $$", intent="go")
    assert (gone["running"], gone["status"]) == (False, None), gone
    assert gone["output"] == "said\n" and gone["ending"]["signal"] == 9


@pytest.mark.requirement("G4")
def test_losing_sight_of_a_command_is_no_refusal_of_it(hold: Hold, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    hold.shell("unseen")
    add_actor(hold, "eve", "execute", "unseen")
    with AgentThread(hold, "eve") as eve:
        begun = eve(
            "submit", session="unseen", command=f"echo so far; cat {gate}", intent="w", seconds=1
        )
        waiting = eve.begin("result", handle=begun["handle"], seconds=40)
        hold.ok("revoke", "eve", "unseen")
        for gone in (waiting.result(60), eve("result", handle=begun["handle"])):
            assert "refused" not in gone and gone["running"] and gone["status"] is None
            assert "so far" in gone["output"] and gone["cut_off"]["code"] == "access_revoked"
        why = eve.refused("submit", session="unseen", command="true", intent="x")
        assert why["code"] == "access_revoked" and "revoked" in why["what_to_do"]
        hold.ok("grant", "eve", "execute", "unseen")
        gate.write_text("the rest\n")
        done = eve("result", handle=begun["handle"], seconds=40)
        assert (done["status"], done["output"]) == (0, "so far\nthe rest\n")
