"""Structured actions against a real host: what they declare, what they do, what is said of it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast import Session, errors
from holdfast.model.measured import ActionTrace, ActorScore
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.action_retry import Attempts
from holdfast.wire.messages.gate_actions import Act, ActionTaken, GetScore, ScoreShown
from process.acting import add_actor, connected
from process.commanding import HOLD, PATIENCE_S, Hold
from process.sdking import reached, run

NUMBERS = itertools.count()


class Shell:
    """A bash in a directory of its own."""

    def __init__(self, hold: Hold, name: str, directory: Path) -> None:
        self.hold, self.name, self.directory = hold, name, directory
        hold.ok("run", "-d", "--name", name, "--cwd", str(directory), "--", "bash", "--norc")
        hold.ok("wait", name, "--for", "prompt", "--timeout", "20")

    def act(self, *words: str, status: int | None = None) -> dict[str, Any]:
        """`hold submit ... --json`, which must exit with this status if one is given."""
        done = self.hold("submit", self.name, "--intent", "test it", "--json", *words)
        assert done.stderr == "", done
        if status is not None:
            assert done.returncode == status, done
        trace: dict[str, Any] = json.loads(done.stdout)
        return trace

    def kinds(self, *words: str) -> tuple[list[str], list[str]]:
        """What was missing, and what was unexpected."""
        trace = self.act(*words)
        assert trace["effects"] is not None, trace
        return (
            [f"{each['kind']} {each['what']}" for each in trace["missing"]],
            [f"{each['kind']} {each['what']}" for each in trace["unexpected"]],
        )

    def path(self, name: str) -> str:
        return str(self.directory / name)


@pytest.fixture
def shell(host_home: Hold, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    made = Shell(host_home, f"a{abs(hash(request.node.name))}", tmp_path)
    yield made
    host_home("end", made.name)


# -- what it did, against what it declared ----------------------------------------------------


@pytest.mark.requirement("G1", "G3")
def test_an_action_that_does_what_it_declares_has_the_full_score(shell: Shell) -> None:
    trace = shell.act("--expect-file", "new/**", "--", "mkdir new && date > new/x", status=0)
    assert trace["effects"]["files"]["created"] == [shell.path("new/x")]
    assert (trace["missing"], trace["unexpected"]) == ([], [])
    assert trace["score"] == {
        "valid": True, "success": True, "side_effects": 0, "kinds": {}, "score": 1.0,
    }  # fmt: skip


def test_an_expected_file_that_is_not_there_is_missing(shell: Shell) -> None:
    trace = shell.act("--expect-file", "out.txt", "--", "true", status=1)
    assert trace["missing"] == [{"kind": "file", "what": "out.txt"}]
    assert trace["score"]["success"] is False and trace["score"]["score"] == 0.5


def test_files_that_were_not_declared_are_unexpected(shell: Shell) -> None:
    (shell.directory / "old").write_text("1")
    (shell.directory / "gone").write_text("1")
    missing, unexpected = shell.kinds("--", "echo > stray; echo 2 >> old; rm gone; mkdir -p d/e")
    assert missing == []
    assert sorted(unexpected) == [
        f"file_changed {shell.path('old')}",
        f"file_created {shell.path('d/e')}/",
        f"file_created {shell.path('stray')}",
        f"file_deleted {shell.path('gone')}",
    ]


def test_a_file_declared_outside_of_the_workspace_is_looked_for_there(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    there = str(other / "x*")
    assert shell.kinds("--expect-file", there, "--", f"echo > {other}/x1; echo > {other}/y") == (
        [],
        [],
    )
    assert shell.kinds("--expect-file", there, "--", f"rm {other}/x1") == ([], [])
    assert shell.kinds("--expect-file", there, "--", "true") == ([f"file {there}"], [])


SERVER = (
    'python3 -c \'import socket,signal; s = socket.socket(); s.bind(("127.0.0.1", 0)); '
    's.listen(); print("port", s.getsockname()[1], flush=True); signal.pause()\''
)


def test_a_port_left_open_is_unexpected_unless_it_was_declared(shell: Shell) -> None:
    # The server has printed its port, and so it listens, before the command ends.
    script = f"coproc {{ {SERVER}; }}; read -u ${{COPROC[0]}} _ port; echo $port"
    trace = shell.act("--", script)
    port = int(trace["output"].strip().splitlines()[-1])
    assert trace["effects"]["ports"]["opened"] == [port]
    kinds = {each["kind"] for each in trace["unexpected"]}
    assert {"port_opened", "process"} <= kinds
    missing, unexpected = shell.kinds("--", "kill %1; wait %1 2>/dev/null; true")
    assert f"port_closed {port}" in unexpected and missing == []


def test_a_declared_port_is_waited_for_and_its_process_is_declared_with_it(
    shell: Shell, tmp_path: Path
) -> None:
    port = _free_port()
    late = (
        "python3 -c 'import socket,signal,time; time.sleep(0.6); s = socket.socket(); "
        f's.bind(("127.0.0.1", {port})); s.listen(); signal.pause()\' &'
    )
    assert shell.kinds("--expect-port", str(port), "--", late) == ([], [])
    assert shell.kinds("--expect-port", str(port), "--", "true") == ([], [])
    missing, _ = shell.kinds("--expect-port", str(port), "--", "kill %1; wait %1 2>/dev/null; true")
    assert missing == [f"port {port}"]


def _free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def test_a_process_left_running_is_unexpected(shell: Shell) -> None:
    trace = shell.act("--", "sleep 1000 &")
    (left,) = trace["effects"]["processes"]
    assert (left["name"], left["command"]) == ("sleep", "sleep 1000")
    assert trace["unexpected"] == [{"kind": "process", "what": f"sleep ({left['pid']})"}]
    assert shell.kinds("--", "true") == ([], []), "it is an earlier action's"


def test_what_changed_in_the_shell_is_unexpected(shell: Shell) -> None:
    missing, unexpected = shell.kinds("--", "export FOO=secret; alias ls=rm; set -f; umask 027")
    assert missing == []
    assert sorted(unexpected) == [
        "env alias ls added", "env env FOO added", "env option noglob added", "env umask changed",
    ]  # fmt: skip
    assert "secret" not in shell.hold.ok("log", shell.name, "--json").split("action_measured")[1]


def test_a_prompt_that_takes_its_time_is_waited_for(shell: Shell) -> None:
    shell.act("--", "PROMPT_COMMAND='sleep 0.3'")
    assert shell.kinds("--", "export LATE=1") == ([], ["env env LATE added"])


def test_a_changed_directory_is_unexpected_unless_the_action_runs_below_the_shell(
    shell: Shell,
) -> None:
    assert shell.kinds("--", "cd /") == ([], ["cwd /"])
    form = {"intent": "look", "command": "cd /tmp; pwd", "cwd": str(shell.directory)}
    path = shell.directory / "action.json"
    path.write_text(json.dumps(form))
    trace = json.loads(shell.hold.ok("submit", shell.name, "--file", str(path), "--json"))
    assert trace["output"].strip() == "/tmp"
    assert trace["unexpected"] == [] and trace["cwd"] == "/"


def test_a_file_can_declare_what_the_options_cannot(shell: Shell) -> None:
    form = {
        "intent": "set up",
        "command": ["bash", "-c", "exec sleep 1000 &"],
        "expect": {"processes": ["sleep"]},
    }
    done = shell.hold(
        "submit", shell.name, "--file", "-", "--json", stdin=json.dumps(form).encode()
    )
    assert json.loads(done.stdout)["unexpected"] == []
    form = {"intent": "set up", "command": "export A=1; cd /tmp", "expect": {"env": ["A"]}}
    form["expect"]["cwd"] = "/tmp"  # type: ignore[index]
    done = shell.hold("submit", shell.name, "--file", "-", stdin=json.dumps(form).encode())
    assert done.returncode == 0 and "score 1.00" in done.stderr


def test_an_exit_status_that_was_not_expected(shell: Shell) -> None:
    trace = shell.act("--", "(exit 7)", status=7)
    assert trace["missing"] == [{"kind": "status", "what": "expected 0, was 7"}]
    assert (trace["status"], trace["state"]) == (7, "done")
    shell.act("--expect-status", "7", "--", "(exit 7)", status=0)
    assert shell.act("--expect-status", "7", "--", "true", status=1)["missing"] != []


def test_more_files_than_can_be_looked_at_are_said(host_home: Hold, shell: Shell) -> None:
    many = shell.directory / "many"
    many.mkdir()
    for number in range(21_000):
        (many / f"f{number}").touch()
    trace = shell.act("--", "echo > near; echo > many/far")
    assert any(why.startswith("more than 20000 files") for why in trace["effects"]["partial"])
    assert [each["what"] for each in trace["unexpected"]] == [shell.path("near")]


def test_an_incomplete_line_and_a_control_character_are_refused(shell: Shell) -> None:
    for command in ("echo 'open", "echo \x03"):
        done = shell.hold("submit", shell.name, "--intent", "x", "--", command)
        assert done.returncode != 0 and "(invalid_argument)" in done.stderr
    assert shell.hold.ok("exec", shell.name, "--", "echo free") == "free\n"


# -- before anything runs ---------------------------------------------------------------------


@pytest.mark.requirement("G1", "G4")
@pytest.mark.parametrize(
    ("form", "field"),
    [
        ('{"command": "touch ran"}', "action.intent is missing"),
        ('{"intent": "x", "command": "touch ran", "expects": {}}', "action.expects is not"),
        ('{"intent": "x", "command": "touch ran", "expect": {"ports": ["80"]}}', "ports[0]"),
        ('["touch ran"]', "action must be an object"),
        ("touch ran", "not JSON"),
    ],
)
def test_a_malformed_action_is_refused_before_anything_runs(
    shell: Shell, form: str, field: str
) -> None:
    said = shell.hold.fails(
        "invalid_argument", "submit", shell.name, "--file", "-", stdin=form.encode()
    )
    assert field in said and "nothing was run" in said and "; " in said
    assert list(shell.directory.iterdir()) == []


def test_a_malformed_action_counts_against_its_actor_and_is_in_the_journal(
    host_home: Hold, shell: Shell
) -> None:
    add_actor(host_home, "clumsy", "execute", "--all")
    words = ("--as", "clumsy", "submit", shell.name, "--", "touch ran")
    assert "action.intent is missing" in host_home.fails("invalid_argument", *words)
    score = host_home.json("score", "clumsy")
    assert (score["totals"]["actions"], score["totals"]["valid"], score["score"]) == (1, 0, 0.0)
    assert "was refused: input (invalid_argument" in host_home.ok("log", shell.name)


def test_without_the_right_to_write_nothing_runs_and_it_counts(
    host_home: Hold, shell: Shell
) -> None:
    add_actor(host_home, "reader", "read", "--all")
    words = ("--as", "reader", "submit", shell.name, "--intent", "x", "--", "touch ran")
    host_home.fails("not_permitted", *words)
    assert list(shell.directory.iterdir()) == []
    totals = host_home.json("score", "reader")["totals"]
    assert (totals["actions"], totals["valid"]) == (1, 0)


# -- once -------------------------------------------------------------------------------------


@pytest.mark.requirement("G4")
def test_the_same_key_runs_once_and_gives_the_same_trace(shell: Shell) -> None:
    words = ("--key", "deploy", "--expect-file", "ran", "--", "echo $$ >> ran; echo done")
    first, again = shell.act(*words, status=0), shell.act(*words, status=0)
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert {**again, "repeated": False} == first and first["output"] == "done\n"
    assert len((shell.directory / "ran").read_text().split()) == 1
    done = shell.hold("submit", shell.name, "--intent", "x", "--key", "deploy", "--", "other")
    assert "(invalid_argument)" in done.stderr and "another command line" in done.stderr


async def test_a_key_of_an_exec_is_no_action(host_home: Hold, shell: Shell) -> None:
    async with reached(host_home) as host:
        session = await host.session(shell.name)
        await session.submit("echo one", key="k")
        with pytest.raises(errors.InvalidArgument, match="no action"):
            await session.act("echo one", intent="again", key="k")


# -- refusals and retries ---------------------------------------------------------------------


@contextlib.contextmanager
def _refusals() -> Iterator[asyncio.Event]:
    """Set when an action of this program was refused and is about to be tried again."""
    refused, after = asyncio.Event(), Attempts.after

    def noted(self: Attempts, refusal: errors.HoldfastError, *, taken: bool) -> float:
        pause = after(self, refusal, taken=taken)
        refused.set()
        return pause

    with mock.patch.object(Attempts, "after", noted):
        yield refused


async def test_a_busy_shell_refuses_and_a_retry_gets_through(host_home: Hold, shell: Shell) -> None:
    fifo = shell.directory / "fifo"
    os.mkfifo(fifo)
    shell.hold.ok("send", shell.name, "--enter", f"read x < {fifo}")

    async with reached(host_home) as host:
        session = await host.session(shell.name)
        with open(fifo, "w") as release, _refusals() as refused:  # it opens once it is read
            with pytest.raises(errors.SessionBusy):
                await session.act("true", intent="at once or never")
            assert not refused.is_set()
            retry = {"times": 10, "backoff_s": 0.05}
            waiting = asyncio.create_task(session.act("echo hi", intent="soon", retry=retry))
            await refused.wait()
            release.write("go\n")
        done = await waiting
        assert (done.output, done.ok) == ("hi\n", True)
        assert done.trace.retries and set(done.trace.retries) == {"session_busy"}


@pytest.mark.requirement("G4")
def test_a_held_turn_is_tried_again_as_often_as_was_said_and_the_trace_says_so(
    host_home: Hold, shell: Shell
) -> None:
    add_actor(host_home, "holder", "execute", "--all")
    add_actor(host_home, "patient", "execute", "--all")

    async def both() -> None:
        async with reached(host_home, "holder") as one, reached(host_home, "patient") as other:
            mine, session = await one.session(shell.name), await other.session(shell.name)
            await mine.request_turn(hold_for=60)
            with pytest.raises(errors.TurnHeld):
                retry = {"times": 2, "backoff_s": 0.01}
                await session.act("touch ran", intent="twice more", retry=retry)
            assert list(shell.directory.iterdir()) == []
            retry = {"times": 10, "backoff_s": 0.05}
            with _refusals() as refused:
                waiting = asyncio.create_task(
                    session.act("touch ran", intent="x", retry=retry, expect={"files": ["ran"]})
                )
                await refused.wait()
                await mine.yield_turn()
                done = await waiting
            assert done.ok
            assert done.trace.retries and set(done.trace.retries) == {"turn_held"}

    run(both())
    totals = host_home.json("score", "patient")["totals"]
    assert (totals["actions"], totals["valid"]) == (1, 1), "a held turn is nobody's fault"


@contextlib.contextmanager
def _submitting(shell: Shell, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    made = shell.hold.start("submit", shell.name, "--intent", "x", "--json", *words)
    try:
        yield made
    finally:
        made.kill()
        made.wait()
        for stream in (made.stdout, made.stderr):
            if stream is not None:
                stream.close()


# -- the trace --------------------------------------------------------------------------------


@pytest.mark.requirement("G2")
def test_a_trace_is_found_by_id_key_and_number_also_when_the_session_has_ended(
    shell: Shell,
) -> None:
    made = shell.act("--key", "release", "--", "echo > stray")
    hold, name = shell.hold, shell.name
    by_id = hold.json("trace", name, made["id"])
    assert by_id.keys() == {*ActionTrace._fields}
    assert hold.json("trace", name, "release") == by_id
    assert hold.json("trace", name, str(made["command"])) == by_id
    assert [step["what"] for step in by_id["steps"]] == [
        "action", "input", "command_began", "command_ended", "action_measured",
    ]  # fmt: skip
    assert by_id["decision"]["outcome"] == "none"
    assert by_id["latency_s"] >= by_id["seconds"] > 0
    assert by_id["declared"]["intent"] == "test it"
    sheet = hold.ok("trace", name, made["id"])
    assert "stray" in sheet and "score:" in sheet and "0.75" in sheet
    assert made["id"] in hold.fails("invalid_argument", "trace", name, "nothing")
    session = hold.json("show", name)["id"]
    hold.ok("end", name)
    assert hold.json("trace", session, "release") == by_id


def test_a_session_that_ends_with_the_action_leaves_a_true_trace(shell: Shell) -> None:
    session = shell.hold.json("show", shell.name)["id"]
    done = shell.hold("submit", shell.name, "--intent", "leave", "--key", "k", "--", "exit 3")
    assert done.returncode != 0
    trace = shell.hold.json("trace", session, "k")
    assert trace["effects"] is None and trace["score"]["score"] is None
    assert "session ended" in trace["message"]
    assert trace["status"] == 3


def daemon_pid(hold: Hold) -> int:
    pid: int = hold.json("daemon", "status")["daemon_pid"]
    return pid


def kill_daemon(hold: Hold) -> None:
    handle = os.pidfd_open(daemon_pid(hold))
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        assert select.select([handle], [], [], 20)[0]
    finally:
        os.close(handle)


@pytest.mark.requirement("G2", "G4")
def test_a_daemon_killed_in_the_middle_leaves_a_true_trace_and_the_action_runs_once(
    shell: Shell,
) -> None:
    fifo = shell.directory / "fifo"
    os.mkfifo(fifo)
    command = f"echo ran >> ran; read x < {fifo}; (exit 5)"
    with _submitting(shell, "--key", "once", "--expect-status", "5", "--", command) as submitting:
        with open(fifo, "w") as release:  # it opens once the command is there
            kill_daemon(shell.hold)
            assert shell.hold.json("trace", shell.name, "once")["state"] == "running"
            release.write("go\n")
        trace = json.loads(submitting.communicate(timeout=PATIENCE_S)[0])
    assert (trace["state"], trace["status"], trace["effects"]) == ("done", 5, None)
    assert "the daemon was replaced" in trace["message"]
    assert trace["score"] == {
        "valid": True, "success": None, "side_effects": None, "kinds": {}, "score": None,
    }  # fmt: skip
    again = shell.act("--key", "once", "--expect-status", "5", "--", command)
    assert again["repeated"] and again["id"] == trace["id"]
    assert (shell.directory / "ran").read_text() == "ran\n"


# -- scores -----------------------------------------------------------------------------------


@pytest.mark.requirement("G5")
def test_scores_are_kept_per_actor_and_survive_the_daemon(host_home: Hold, shell: Shell) -> None:
    add_actor(host_home, "scored", "execute", "--all")

    def act(*words: str) -> None:
        host_home("--as", "scored", "submit", shell.name, "--intent", "x", *words)

    act("--", "true")
    act("--", "echo > stray")
    act("--", "false")
    score = host_home.json("score", "scored")
    assert score.keys() == {*ActorScore._fields}
    totals = score["totals"]
    assert (totals["actions"], totals["valid"], totals["success"]) == (3, 3, 2)
    assert (totals["clean"], totals["side_effects"]) == (2, 1)
    assert score["score"] == score["recent"] == pytest.approx((1 + 0.75 + 0.5) / 3)
    assert [day["totals"] for day in score["days"]] == [totals]
    host_home.ok("daemon", "restart")
    assert host_home.json("score", "scored", "--days", "1") == score
    assert "75.0" not in (sheet := host_home.ok("score", "scored")) and "66.7 %" in sheet
    assert host_home.ok("--as", "scored", "score", "scored") == sheet
    host_home.fails("no_such_actor", "score", "nobody")
    host_home.fails("invalid_argument", "score", "scored", "--days", "9999")


def test_an_actor_without_actions_has_no_score(host_home: Hold) -> None:
    add_actor(host_home, "idle")
    assert host_home.json("score", "idle")["score"] is None
    assert "no actions" in host_home.ok("score", "idle")


# -- the SDK ----------------------------------------------------------------------------------


async def test_the_sdk_acts_and_gives_the_trace(host_home: Hold, shell: Shell) -> None:
    async with reached(host_home) as host:
        session: Session = await host.session(shell.name)
        done = await session.act(
            ["sh", "-c", "echo 'a  b' | tee out"], intent="say it", expect={"files": ["out"]}
        )
        assert (done.status, done.ok, done.score, done.output) == (0, True, 1.0, "a  b\n")
        assert await session.trace(done.id) == done.trace
        failed = await session.act("echo > stray; false", intent="fail")
        assert not failed.ok and failed.status == 1 and failed.score == 0.25
        with pytest.raises(errors.InvalidArgument, match=r"action\.expect\.prots"):
            await session.act("true", intent="typo", expect={"prots": [80]})
        with pytest.raises(errors.TimedOut):
            await session.act("sleep 1000", intent="wait", key="slow", timeout=0.2)
        assert (await session.trace("slow", wait=False)).state == "running"
        await session.keys("C-c")
        assert (await session.trace("slow")).status == 130
        assert (await host.score()).totals.actions >= 3


def test_blocking_programs_have_the_same(host_home: Hold, shell: Shell) -> None:
    with connected(host_home) as host:  # the protocol itself, as any client speaks it
        info = host.show(shell.name)
        assert isinstance(host.ask(GetScore(0), ScoreShown).score, ActorScore)
    script = (
        "from holdfast import blocking\n"
        "with blocking.connect() as hold:\n"
        f"    session = hold.session({info.name!r})\n"
        "    done = session.act('echo hi', intent='greet')\n"
        "    print(done.output, done.ok, session.trace(done.id) == done.trace)\n"
    )
    python = str(Path(HOLD).with_name("python"))
    done = subprocess.run(
        [python, "-c", script],
        env=host_home.env, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("hi\n True True\n", "")


def test_the_host_says_first_what_the_action_is_called(host_home: Hold, shell: Shell) -> None:
    with connected(host_home) as host:
        io, info = host.io(time.monotonic() + PATIENCE_S), host.show(shell.name)
        text = json.dumps({"intent": "x", "command": "echo hi"})
        first = _first_answer(host, io, Act(0, info.id, host.next_seq(info.id), text))
        assert isinstance(first, ActionTaken) and len(first.action) == 16 and not first.repeated


def _first_answer(host: Host, io: Any, request: Act) -> object:
    from holdfast.sdk.client_core.client_machine import finish
    from holdfast.sdk.client_core.exec_reader import ExecReader

    with contextlib.closing(ExecReader(io, request)) as reader:
        return finish(reader.next())


# -- other shells -----------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["zsh", "fish"])
def test_other_shells_are_measured_alike(host_home: Hold, tmp_path: Path, program: str) -> None:
    name = f"other-{program}"
    host_home.ok("run", "-d", "--name", name, "--cwd", str(tmp_path), "--", program)
    host_home.ok("wait", name, "--for", "prompt", "--timeout", "30")
    words = ("submit", name, "--intent", "x", "--expect-file", "it's", "--json", "--")
    trace = json.loads(host_home.ok(*words, "touch", "it's"))
    assert (trace["missing"], trace["unexpected"]) == ([], []), trace
    trace = json.loads(host_home("submit", name, "--intent", "x", "--json", "--", "cd /").stdout)
    assert [each["kind"] for each in trace["unexpected"]] == ["cwd"], trace
    host_home.ok("end", name)
