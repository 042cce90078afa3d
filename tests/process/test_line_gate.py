"""The line gate with real shells: what the shell is about to take is judged before it takes it,
whichever way it was typed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast import blocking
from holdfast.model.errors import GateHeld, GateRefused, NotPermitted
from process.acting import add_actor, connected
from process.gating import GatedHold
from process.reaching import pid_of_daemon
from process.terminals import Terminal
from process.waiting import until

SHELLS = ("bash", "zsh", "fish")
STARTS = {"bash": ["bash", "--norc"], "zsh": ["zsh", "-f"], "fish": ["fish"]}
_numbers = iter(range(1000))


@pytest.fixture(scope="module")
def hold() -> Iterator[GatedHold]:
    with GatedHold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "boss", "admin", "--all")
        add_actor(hold, "agent", "execute", "--all")
        yield hold


@pytest.fixture(params=SHELLS)
def session(request: pytest.FixtureRequest, hold: GatedHold) -> Iterator[str]:
    yield from a_session(hold, request.param)


@pytest.fixture
def bash(hold: GatedHold) -> Iterator[str]:
    yield from a_session(hold, "bash")


def a_session(hold: GatedHold, shell: str) -> Iterator[str]:
    hold.no_rules()
    name = f"{shell}{next(_numbers)}"
    hold.ok("run", "-d", "--name", name, "--", *STARTS[shell])
    hold.ok("wait", name, "--for", "prompt")
    yield name
    hold.no_rules()
    hold("end", name)


def pending(hold: GatedHold, name: str) -> list[dict[str, Any]]:
    return [each for each in hold.json("approvals", name) if each["status"] == "pending"]


def until_held(hold: GatedHold, name: str) -> dict[str, Any]:
    (found,) = until("it is held", lambda: pending(hold, name))
    return dict(found)


def until_state(hold: GatedHold, name: str, state: str) -> None:
    until(state, lambda: hold.json("show", name)["state"] == state)


def ran(hold: GatedHold, name: str) -> list[str]:
    """The command lines that the shell ran, by its own word."""
    entries = [each for each in hold.ok("log", name, "--json").splitlines() if each]
    import json

    found = [json.loads(each) for each in entries]
    return [each["body"]["text"] for each in found if each["kind"] == "command_began"]


@pytest.mark.requirement("A8")
def test_a_line_that_is_refused_is_not_run_and_not_left(session: str, hold: GatedHold) -> None:
    hold.rules(refuse=["forbidden"])
    assert "fine" in hold.ok("exec", session, "--", "echo fine")
    said = hold.fails("gate_refused", "exec", session, "--", "echo forbidden")
    assert "no such lines here" in said
    assert "after" in hold.ok("exec", session, "--", "echo after")


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["send", "--enter", "NAME", "touch OUT forbidden"], id="send"),
        pytest.param(
            ["exec", "NAME", "--", "true; touch OUT\n: forbidden"], id="exec of two lines"
        ),
    ],
)
def test_every_way_in_is_judged(
    words: list[str], bash: str, hold: GatedHold, tmp_path: Path
) -> None:
    hold.rules(refuse=["forbidden"])
    out = tmp_path / "out"
    hold.fails("gate_refused", *(w.replace("NAME", bash).replace("OUT", str(out)) for w in words))
    hold.ok("exec", bash, "--", "true")
    assert not out.exists()


@pytest.mark.requirement("A8")
def test_keys_typed_one_by_one_and_history_are_judged(session: str, hold: GatedHold) -> None:
    hold.ok("exec", session, "--", "echo forbidden")
    hold.rules(refuse=["forbidden"])
    with connected(hold) as host:
        host.keys(session, ["Up"])
        with pytest.raises(GateRefused):
            host.keys(session, ["Enter"])
        for key in "echo forb":
            host.type_bytes(session, key.encode())
        host.type_bytes(session, b"idden")
        with pytest.raises(GateRefused):
            host.type_bytes(session, b"\r")
        host.type_bytes(session, b"echo good")
        host.type_bytes(session, b"\n")
    hold.ok("wait", session, "--for", "prompt")
    assert "after" in hold.ok("exec", session, "--", "echo after")
    assert hold.lines_asked()[-4:-1] == ["echo forbidden", "echo forbidden", "echo good"]


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("keys", [["M-C-e"], ["C-x", "C-e"], ["Tab"], ["C-d"], ["M-a"], ["F5"]])
def test_a_key_that_may_run_something_is_judged_and_one_that_edits_is_not(
    keys: list[str], bash: str, hold: GatedHold
) -> None:
    hold.rules(refuse=["$("])
    with connected(hold) as host:
        asked = len(hold.lines_asked())
        host.type_bytes(bash, b"echo $(true)")
        host.keys(bash, ["Left", "C-a", "C-e", "Up", "Down", "Home", "End", "Backspace", ")"])
        assert len(hold.lines_asked()) == asked
        with pytest.raises(GateRefused):
            host.keys(bash, keys)
    assert "after" in hold.ok("exec", bash, "--", "echo after")


@pytest.mark.requirement("A8")
def test_where_keys_are_bound_anew_text_is_judged_before_it_is_typed(
    bash: str, hold: GatedHold
) -> None:
    hold.ok("exec", bash, "--", """bind '"x": accept-line'""")
    hold.ok("wait", bash, "--for", "prompt")  # where the shell says what its keys do now
    hold.rules(refuse=["forbidden"])
    with connected(hold) as host:
        host.type_bytes(bash, b"echo for")
        with pytest.raises(GateRefused):
            host.type_bytes(bash, b"biddenx")
    assert "after" in hold.ok("exec", bash, "--", "echo after")
    assert "echo forbidden" not in ran(hold, bash)


@pytest.mark.requirement("A8")
def test_a_policy_is_told_what_is_other_in_the_environment(session: str, hold: GatedHold) -> None:
    hold.ok("exec", session, "--", "export PYTHONPATH=/tmp/x API_KEY=hidden")
    hold.rules()
    hold.ok("exec", session, "--", "true")
    line = hold.asked()[-1]
    assert line["kind"] == "line"
    found = [each for each in line["environment"] if not each.startswith(("_", "SHLVL", "OLDPWD"))]
    assert sorted(found) == ["API_KEY", "PYTHONPATH=/tmp/x"]


def test_no_rule_no_judgement(bash: str, hold: GatedHold) -> None:
    before = len(hold.asked())
    assert "fine" in hold.ok("exec", bash, "--", "echo fine")
    assert len(hold.asked()) == before


@pytest.mark.requirement("A8")
def test_the_second_of_two_lines_is_judged_on_its_own(
    session: str, hold: GatedHold, tmp_path: Path
) -> None:
    """Typed raw, at once: the first runs, the second and what is behind it does not."""
    hold.rules(refuse=["forbidden"])
    one, two, three = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    with connected(hold) as host, pytest.raises(GateRefused):
        host.type_bytes(
            session,
            f"touch {one}\rtouch {two} # forbidden\rtouch {three}\r".encode(),
        )
    until("the first ran", one.exists)
    hold.ok("exec", session, "--", "true")
    assert not two.exists() and not three.exists()


@pytest.mark.requirement("A8")
def test_lines_of_one_command_are_judged_together(
    session: str, hold: GatedHold, tmp_path: Path
) -> None:
    """A shell that wants the rest of a line has run nothing of it."""
    out = tmp_path / "out"
    hold.rules(refuse=[f"t\\\nouch {out}", f"t\\\n\ntouch {out}"])
    if session.startswith("bash"):
        hold.ok("exec", session, "--", "HISTCONTROL=ignorespace")
    with connected(hold) as host:
        host.type_bytes(session, b" t\\\r")
        try:
            host.type_bytes(session, f"ouch {out}\r".encode())
        except GateRefused:
            pass
        else:
            raise AssertionError(hold.lines_asked()[-2:])
    assert "after" in hold.ok("exec", session, "--", "echo after")
    assert not out.exists()


@pytest.mark.requirement("A8")
def test_a_paste_of_several_lines_is_one_line_to_judge(session: str, hold: GatedHold) -> None:
    hold.rules(refuse=["forbidden"])
    assert "a\nb\n" in hold.ok("exec", session, "--", "echo a\necho b").replace("\r", "")
    assert hold.lines_asked()[-1].rstrip() == "echo a\necho b"
    hold.fails("gate_refused", "exec", session, "--", "echo a\necho forbidden")


@pytest.mark.requirement("A8")
def test_a_paste_behind_half_a_key_is_no_paste(bash: str, hold: GatedHold, tmp_path: Path) -> None:
    """^V makes its first byte text: then the shell sees no paste, and its newline is an Enter."""
    hold.rules(refuse=["touch"], refuse_unknown=True)
    out = tmp_path / "out"
    with connected(hold) as host, pytest.raises(GateRefused):
        host.type_bytes(bash, b"\x16\x1b[200~;touch " + str(out).encode() + b"\n\x1b[201~")
    assert "after" in hold.ok("exec", bash, "--", "echo after")
    assert not out.exists()


@pytest.mark.requirement("A8")
def test_where_pastes_are_unbound_their_newlines_commit(
    bash: str, hold: GatedHold, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    hold.ok("exec", bash, "--", r"""bind '"\e[200~": "#"'; bind '"\e[201~": "#"'""")
    hold.rules(refuse=["touch"])
    with connected(hold) as host:
        with pytest.raises(GateRefused):
            host.type_bytes(bash, b"\x1b[200~touch " + str(out).encode() + b"\n\x1b[201~")
        host.type_bytes(bash, b"echo af''ter\r")
    until("the shell goes on", lambda: "\nafter" in hold.ok("screen", bash))
    assert not out.exists()


@pytest.mark.requirement("A8")
def test_type_ahead_is_judged_when_the_shell_reads_it(
    session: str, hold: GatedHold, tmp_path: Path
) -> None:
    hold.rules(refuse=["forbidden"])
    fifo, one, two = tmp_path / "fifo", tmp_path / "one", tmp_path / "two"
    os.mkfifo(fifo)
    with connected(hold) as host:
        host.type_bytes(session, f"cat {fifo}\r".encode())
        until_state(hold, session, "working")
        asked = len(hold.asked())
        # Kept, and answered, before anybody reads it.
        host.type_bytes(session, f"touch {one}\r".encode())
        assert len(hold.asked()) == asked
        fifo.write_text("go on\n")
        until("it ran", one.exists)
        hold.rules(refuse=[str(two)])
        with pytest.raises(GateRefused):
            host.type_bytes(session, f"touch {two}\r".encode())
    assert not two.exists()


@pytest.mark.requirement("A8")
def test_an_interrupt_takes_back_what_was_typed_ahead(bash: str, hold: GatedHold) -> None:
    hold.rules(refuse=["forbidden"])
    with connected(hold) as host:
        host.type_bytes(bash, b"sleep 1000\r")
        until_state(hold, bash, "working")
        host.type_bytes(bash, b"echo ahead\r")
        host.keys(bash, ["C-c"])
    hold.ok("wait", bash, "--for", "prompt")
    assert "after" in hold.ok("exec", bash, "--", "echo after")
    assert "echo ahead" not in ran(hold, bash)


@pytest.mark.requirement("A8")
def test_a_program_that_reads_the_terminal_gets_its_line_judged_as_input(
    bash: str, hold: GatedHold
) -> None:
    hold.rules(refuse=["forbidden"])
    with connected(hold) as host:
        host.type_bytes(bash, b"read -p 'name? ' name; echo got $name\r")
        hold.ok("wait", bash, "--for", "input")
        with pytest.raises(GateRefused):
            host.send(bash, "forbidden")
        host.send(bash, "bob")
    until("it is read", lambda: "got bob" in hold.ok("screen", bash))
    asked = [each for each in hold.asked() if each["kind"] == "input"]
    assert [each["text"] for each in asked[-2:]] == ["forbidden", "bob"]


@pytest.mark.requirement("A8")
def test_a_secret_is_judged_without_being_told(bash: str, hold: GatedHold) -> None:
    hold.rules(refuse=["forbidden"])
    with connected(hold) as host:
        host.type_bytes(bash, b"read -s word; echo ${#word}\r")
        hold.ok("wait", bash, "--for", "secret")
        host.send(bash, "swordfish")
    until("it is read", lambda: "9" in hold.ok("screen", bash))
    assert "swordfish" not in str(hold.asked())
    assert "swordfish" not in hold.ok("log", bash, "--json")


# -- approvals ----------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_a_held_line_runs_once_when_somebody_else_approves(
    session: str, hold: GatedHold, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    out = tmp_path / "out"
    line = f"echo drop >> {out}; echo done-it"
    running = hold.start("exec", session, "--", line)
    approval = until_held(hold, session)
    assert approval["text"].rstrip() == line and approval["reason"] == "two must agree"
    assert approval["session"] and approval["name"] == session and approval["quorum"] == 1
    (who,) = approval["contributors"][:1]
    assert who["part"] == "trigger" and who["name"] == approval["actor"]
    assert hold.json("show", session)["held"] == approval["id"]
    assert approval["id"] in hold.ok("ls")
    hold.fails("not_permitted", "approve", approval["id"])
    with hold.acting("agent"):
        hold.fails("not_permitted", "approve", approval["id"])
    with hold.acting("boss"):
        assert "no level can branch" in hold.fails(
            "level_unavailable", "approve", "--try", approval["id"]
        )
    assert not out.exists()
    with hold.acting("boss"):
        assert "approved" in hold.ok("approve", approval["id"][:4], "--note", "go on")
    told, err = running.communicate(timeout=20)
    assert (running.returncode, b"done-it" in told) == (0, True), (told, err)
    assert b"waits for approval" in err
    assert out.read_text() == "drop\n"
    assert hold.json("show", session)["held"] == ""
    (over,) = [each for each in hold.json("approvals", session) if each["id"] == approval["id"]]
    assert (over["status"], over["approved_by"]) == ("approved", ["boss"])
    with hold.acting("boss"):
        hold.fails("no_such_approval", "approve", approval["id"])


@pytest.mark.requirement("A8")
def test_a_denied_line_is_taken_away_and_its_asker_gets_the_note(
    session: str, hold: GatedHold
) -> None:
    hold.rules(hold=["drop"])
    running = hold.start("exec", session, "--", "echo drop")
    approval = until_held(hold, session)
    with hold.acting("boss"):
        hold.ok("deny", approval["id"], "--note", "not on a Friday")
    _, err = running.communicate(timeout=20)
    assert b"gate_refused" in err and b"not on a Friday" in err
    assert "after" in hold.ok("exec", session, "--", "echo after")


@pytest.mark.requirement("A8")
def test_behind_a_held_line_its_actor_types_nothing_but_an_interrupt(
    session: str, hold: GatedHold
) -> None:
    hold.rules(hold=["drop"])
    with connected(hold) as host:
        accepted = host.send(session, "echo drop")
        approval = until_held(hold, session)
        assert accepted.held == approval["id"]
        with pytest.raises(GateHeld) as why:
            host.type_bytes(session, b"more")
        assert approval["id"] in why.value.hint
        host.keys(session, ["C-c"])
        assert pending(hold, session) == []
    assert "after" in hold.ok("exec", session, "--", "echo after")
    (over,) = [each for each in hold.json("approvals", session) if each["id"] == approval["id"]]
    assert over["status"] == "withdrawn"


@pytest.mark.requirement("A8")
def test_what_was_approved_is_judged_again_when_it_goes_on(
    bash: str, hold: GatedHold, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    out = tmp_path / "out"
    running = hold.start("exec", bash, "--", f"touch {out} # drop")
    approval = until_held(hold, bash)
    hold.rules(refuse=["drop"])
    with hold.acting("boss"):
        hold.ok("approve", approval["id"])
    _, err = running.communicate(timeout=20)
    assert b"gate_refused" in err and not out.exists()


@pytest.mark.requirement("A8")
def test_as_many_must_approve_as_the_policy_says(bash: str, hold: GatedHold) -> None:
    add_actor(hold, "chief", "admin", "--all")
    hold.rules(hold=["drop"], quorum=2, approvers=["boss", "chief"])
    running = hold.start("exec", bash, "--", "echo drop; echo done-it")
    approval = until_held(hold, bash)
    with hold.acting("boss"):
        assert "1 of 2" in hold.ok("approve", approval["id"])
        assert "1 of 2" in hold.ok("approve", approval["id"])
    with hold.acting("chief"):
        hold.ok("approve", approval["id"])
    assert b"done-it" in running.communicate(timeout=20)[0]


@pytest.mark.requirement("A8")
def test_whoever_typed_of_it_does_not_approve_it(bash: str, hold: GatedHold) -> None:
    hold.rules(hold=["drop"])
    with hold.acting("boss"):
        hold.ok("send", bash, "echo drop")
    hold.ok("grant", "agent", "execute", "seize", bash)
    with hold.acting("agent"):
        hold.ok("seize", bash)
        with connected(hold, "agent") as host:
            host.keys(bash, ["Enter"])
    approval = until_held(hold, bash)
    assert {each["name"] for each in approval["contributors"]} == {"boss", "agent"}
    with hold.acting("boss"):
        hold.fails("not_permitted", "approve", approval["id"])
        hold.ok("seize", bash)
    assert pending(hold, bash) == []


@pytest.mark.requirement("A8")
def test_a_terminal_says_that_its_line_waits_and_for_whom(bash: str, hold: GatedHold) -> None:
    hold.rules(hold=["drop"], refuse=["forbidden"], approvers=["boss"])
    with closing(Terminal(hold, "attach", bash)) as terminal:
        terminal.until_shown("attached to")
        terminal.type(b"echo forbidden\r")
        terminal.until_shown("no such lines here")
        terminal.until_true(lambda text: "no such lines" not in text)
        terminal.type(b"echo dr''op drop\r")
        terminal.until_shown("your line waits for approval by boss; ^C takes it back")
        approval = until_held(hold, bash)
        terminal.type(b"x")
        terminal.until_shown("the line before it waits for approval; ^C takes it back")
        with hold.acting("boss"):
            hold.ok("deny", approval["id"], "--note", "no")
        terminal.until_shown("boss denied your line: no")
        terminal.until_true(lambda text: "denied" not in text)
        terminal.type(b"echo dr''op drop\r")
        until_held(hold, bash)
        terminal.type(b"\x03")
        until("it is withdrawn", lambda: pending(hold, bash) == [])
        terminal.type(b"echo dr''op drop\r")
        approval = until_held(hold, bash)
        with hold.acting("boss"):
            hold.ok("approve", approval["id"])
        terminal.until_shown("\ndrop drop")


@pytest.mark.requirement("A8")
def test_watch_tells_each_step(bash: str, hold: GatedHold) -> None:
    import json

    watching = hold.start("watch", bash, "--json")
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["name"] == bash
    hold.rules(hold=["drop"])
    with connected(hold) as host:
        host.send(bash, "echo drop")
        approval = until_held(hold, bash)
        with hold.acting("boss"):
            hold.ok("approve", approval["id"], "--note", "well")
    steps: list[tuple[str, str, str]] = []
    while len(steps) < 2:
        event = json.loads(watching.stdout.readline())
        if "step" in event and event.get("approval"):
            steps.append((event["step"], event["actor"], event["note"]))
            assert event["approval"]["id"] == approval["id"] and event["name"] == bash
    watching.kill()
    watching.communicate()
    assert [step for step, _, _ in steps] == ["asked", "approved"]
    assert steps[1][1:] == ("boss", "well")


@pytest.mark.requirement("A8")
def test_programs_are_told_what_waits_and_decide(bash: str, hold: GatedHold) -> None:
    hold.rules(hold=["drop"])
    address = f"{hold.home}/run/hold.sock"
    with (
        mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}),
        blocking.connect(address) as mine,
        blocking.connect(address, actor="boss") as theirs,
    ):
        running = mine.session(bash).start("echo drop; echo done-it")
        assert running.held is not None and running.held.text.startswith("echo drop")
        assert not running.done
        (waits,) = [each for each in theirs.approvals(bash) if each.status == "pending"]
        assert waits.id == running.held.id
        with pytest.raises(NotPermitted):
            mine.approve(waits.id)
        assert theirs.approve(waits.id, "fine").status == "approved"
        assert "done-it" in running.result(20).output and running.held is None
        again = mine.session(bash).start("echo drop")
        assert again.held is not None
        theirs.deny(again.held.id, "no more")
        with pytest.raises(GateRefused, match="no more"):
            again.result(20)
        held = mine.session(bash).submit("echo drop", timeout=0.5, raises=False)
        assert held.held is not None and held.held.code == "gate_held" and not held.ok


# -- a turn that moves, halts, and rights -------------------------------------------------------


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("what", ["its rights", "the actor"])
def test_the_held_line_of_an_actor_that_is_revoked_is_refused(
    what: str, bash: str, hold: GatedHold, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    out, name = tmp_path / "out", f"leaver-{bash}"
    add_actor(hold, name, "execute", bash)
    with connected(hold, name) as host:
        host.send(bash, f"touch {out} # drop")
        approval = until_held(hold, bash)
        hold.ok(*(("revoke", name, bash) if what == "its rights" else ("actor", "revoke", name)))
    assert pending(hold, bash) == []
    with hold.acting("boss"):
        hold.fails("no_such_approval", "approve", approval["id"])
    over = hold.ok("log", bash, "--json", "--kind", "approval_over")
    assert approval["id"] in over and "withdrawn" in over
    hold.ok("keys", bash, "C-c")
    hold.ok("exec", bash, "--", "true")
    assert not out.exists()


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("how", ["seize", "halt", "revoke", "end"])
def test_what_waits_at_the_gate_commits_nothing_after(
    how: str, bash: str, hold: GatedHold, tmp_path: Path
) -> None:
    hold.rules(hold=["drop"])
    out = tmp_path / "out"
    with connected(hold, "agent") as host:
        host.send(bash, f"touch {out} # drop")
        approval = until_held(hold, bash)
        match how:
            case "seize":
                hold.ok("seize", bash)
            case "halt":
                hold.ok("halt", bash)
            case "revoke":
                hold.ok("grant", "agent", "read", bash)
            case "end":
                hold.ok("end", bash)
    if how != "end":
        assert pending(hold, bash) == []
        with hold.acting("boss"):
            hold.fails("no_such_approval", "approve", approval["id"])
    if how == "halt":
        hold.ok("resume", bash)
    if how != "end":
        hold.ok("seize", bash)
        hold.ok("keys", bash, "C-c")
        hold.ok("exec", bash, "--", "true")
    assert not out.exists()


@pytest.mark.requirement("A8")
def test_a_destructive_line_sent_just_before_a_seize_is_judged_or_refused(
    bash: str, hold: GatedHold, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    hold.rules(refuse=["touch"], slow_s=0.3)
    with connected(hold, "agent") as host:
        sent = hold.start("ls")  # something runs beside it
        import threading

        failed: list[Exception] = []

        def send() -> None:
            try:
                host.send(bash, f"touch {out}")
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=send)
        thread.start()
        until("it is being judged", lambda: any(str(out) in e["text"] for e in hold.asked()))
        hold.ok("seize", bash)
        thread.join()
        sent.communicate()
    assert [error.code for error in failed] == ["turn_held"]  # type: ignore[attr-defined]
    hold.rules(refuse=["touch"])
    hold.ok("keys", bash, "C-c")
    hold.ok("exec", bash, "--", "true")
    assert not out.exists()


# -- signals, and the end -----------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_a_signal_is_judged_like_a_line(bash: str, hold: GatedHold) -> None:
    hold.rules(refuse=["SIGTERM", "TERM"], kinds=["signal"])
    hold.fails("gate_refused", "signal", bash, "TERM")
    hold.ok("signal", bash, "WINCH")


@pytest.mark.requirement("A8")
def test_an_end_that_is_held_happens_when_it_is_approved(bash: str, hold: GatedHold) -> None:
    hold.rules(hold=[""], kinds=["end"])
    ending = hold.start("end", bash)
    approval = until_held(hold, bash)
    assert approval["kind"] == "end"
    with hold.acting("boss"):
        hold.ok("approve", approval["id"])
    assert ending.wait(timeout=20) == 0


@pytest.mark.requirement("A8")
def test_an_end_whose_asker_leaves_is_withdrawn(bash: str, hold: GatedHold) -> None:
    hold.rules(hold=[""], kinds=["end"])
    ending = hold.start("end", bash)
    approval = until_held(hold, bash)
    ending.kill()
    ending.communicate()
    until("it is withdrawn", lambda: pending(hold, bash) == [])
    with hold.acting("boss"):
        hold.fails("no_such_approval", "approve", approval["id"])


# -- a policy that fails ------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_a_policy_that_fails_or_is_slow_refuses_and_says_so(bash: str, hold: GatedHold) -> None:
    hold.rules(fails=True)
    assert "the policy failed" in hold.fails("gate_refused", "exec", bash, "--", "echo a")
    hold.rules(slow_s=7)
    assert "did not answer" in hold.fails("gate_refused", "exec", bash, "--", "echo a")
    hold.rules()
    assert "fine" in hold.ok("exec", bash, "--", "echo fine")


@pytest.mark.requirement("A8")
def test_the_record_has_judgement_question_and_answer_before_the_command(
    bash: str, hold: GatedHold
) -> None:
    import json

    hold.rules(hold=["drop"])
    running = hold.start("exec", bash, "--", "echo drop")
    approval = until_held(hold, bash)
    with hold.acting("boss"):
        hold.ok("approve", approval["id"], "--note", "fine by me")
    running.communicate(timeout=20)
    found = [json.loads(each) for each in hold.ok("log", bash, "--json").splitlines()]
    kinds = [
        each["kind"]
        for each in found
        if each["kind"] in ("judged", "approval_asked", "approved", "command_began")
    ]
    assert kinds == ["judged", "approval_asked", "approved", "judged", "command_began"]
    (approved,) = [each for each in found if each["kind"] == "approved"]
    saw = json.loads(approved["body"]["saw"])
    assert (saw["text"].rstrip(), approved["body"]["note"]) == ("echo drop", "fine by me")


@pytest.mark.requirement("A8")
def test_who_approves_what_they_read_approves_nothing_else(bash: str, hold: GatedHold) -> None:
    import json

    hold.rules(hold=["drop"])
    running = hold.start("exec", bash, "--", "echo drop")
    asked = until_held(hold, bash)
    told = hold.json("show", bash)
    assert (asked["cwd"], asked["user"]) == (told["cwd"], told["user"])
    assert asked["workspace"] == told["workspace"] and asked["text_known"]
    assert asked["changes_known"] is True
    shown = hold.ok("approvals", bash)
    assert f"hold approve {asked['id']} --seen {asked['version']}" in shown
    assert f"in {asked['cwd']} as {asked['user']}" in shown
    with hold.acting("boss"):
        hold.fails("approval_changed", "approve", asked["id"], "--seen", "0" * 16)
        os.kill(pid_of_daemon(hold), signal.SIGKILL)
        after = until_held(hold, bash)
        assert (after["id"], after["changes_known"]) == (asked["id"], False)
        assert "changed since: not known" in hold.ok("approvals", bash)
        words = ("approve", asked["id"], "--seen")
        assert "read it again" in hold.fails("approval_changed", *words, asked["version"])
        hold.ok(*words, after["version"])
    running.communicate(timeout=20)
    found = [json.loads(each) for each in hold.ok("log", bash, "--json").splitlines()]
    (approved,) = [each for each in found if each["kind"] == "approved"]
    saw = json.loads(approved["body"]["saw"])
    assert saw["seen"] == saw["version"] == after["version"]
