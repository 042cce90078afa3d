"""Whose turn it is, as people use it: `hold turn`, `hold seize`, `hold catchup`, blind turns."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from holdfast.model.errors import TurnHeld
from holdfast.model.limits import TURN_PAUSE_S
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo
from holdfast.sdk.client import Host
from holdfast.wire.messages import turn as turn_messages
from process.acting import add_actor, connected, files_with
from process.commanding import Hold
from process.waiting import PATIENCE_S

SECRET = "xyzzy-plugh-4711"


@pytest.fixture(scope="module", autouse=True)
def actors(host_home: Hold) -> None:
    """Two agents who may write everywhere; the unix user may also seize."""
    add_actor(host_home, "ann", "execute", "--all")
    add_actor(host_home, "bob", "execute", "--all")


def me(hold: Hold) -> str:
    name: str = hold.json("actor", "show")["name"]
    return name


def cat(hold: Hold, name: str) -> str:
    session = hold.ok("run", "-d", "--name", name, "--", "cat").strip()
    hold.ok("wait", name, "--for", "input", "--timeout", "20")
    return session


def holder(hold: Hold, session: str) -> str:
    name: str = hold.json("turn", session)["holder_name"]
    return name


def waited(hold: Hold, session: str, text: str) -> None:
    hold.ok("wait", session, "--for", f"text:{text}", "--timeout", "20")


def queue_of(hold: Hold, session: str, length: int) -> None:
    """Return once so many wait. Each look is a command of its own, so this does not spin."""
    deadline = time.monotonic() + PATIENCE_S
    while len(hold.json("turn", session)["queue"]) != length:
        assert time.monotonic() < deadline, f"not {length} waiting for {session}"


# -- asking and giving ------------------------------------------------------------------------


@pytest.mark.requirement("A4")
def test_a_turn_is_asked_for_granted_handed_off_and_yielded(host_home: Hold) -> None:
    cat(host_home, "passed")
    assert host_home.json("turn", "passed").keys() == {*TurnInfo._fields, "yours"}
    assert "nobody: the first to write takes it" in host_home.ok("turn", "passed")
    host_home.ok("turn", "passed", "policy", "queue")  # which no slow machine can outwait
    assert "the turn is yours" in host_home.ok("--as", "ann", "turn", "passed", "request")
    asked = host_home.ok("--as", "bob", "turn", "passed", "request", "--message", "one \x1b[2Jfix")
    assert "ann holds the turn, and 1 actor waits" in asked
    sheet = host_home.ok("turn", "passed")
    assert "ann (agent)" in sheet and "bob, for " in sheet and "fix" in sheet
    assert "\x1b" not in sheet
    assert "ann" in host_home.ok("ls") and "ann holds it; waiting: bob" in host_home.ok(
        "show", "passed"
    )
    assert host_home.ok("--as", "ann", "turn", "passed", "grant") == "bob holds the turn\n"
    words = ("--as", "bob", "turn", "passed", "handoff", "ann", "--message", "yours again")
    assert host_home.json(*words)["holder_name"] == "ann"
    assert host_home.ok("--as", "ann", "turn", "passed", "yield") == "the turn is free\n"
    assert holder(host_home, "passed") == ""
    moves = host_home.json("catchup", "passed", "--since", "1")["moves"]
    assert [(move["step"], move["holder"]) for move in moves] == [
        *(("request", "ann"), ("grant", "bob"), ("hand off", "ann"), ("yield", ""))
    ]
    assert moves[2]["reason"] == "yours again"


@pytest.mark.requirement("A4")
def test_who_waits_can_be_chosen_and_can_withdraw(host_home: Hold) -> None:
    cat(host_home, "chosen")
    host_home.ok("turn", "chosen", "policy", "ask-holder")
    host_home.ok("turn", "chosen", "request")
    for name in ("ann", "bob"):
        host_home.ok("--as", name, "turn", "chosen", "request")
    host_home.ok("turn", "chosen", "grant", "bob")
    assert holder(host_home, "chosen") == "bob"
    host_home.ok("--as", "ann", "turn", "chosen", "withdraw")
    host_home.fails("invalid_argument", "--as", "bob", "turn", "chosen", "grant")
    host_home.fails("invalid_argument", "--as", "ann", "turn", "chosen", "withdraw")


@pytest.mark.requirement("A4")
def test_only_the_holder_gives_the_turn(host_home: Hold) -> None:
    cat(host_home, "kept")
    host_home.ok("turn", "kept", "policy", "queue")
    host_home.ok("--as", "ann", "turn", "kept", "request")
    for words in (("yield",), ("grant",), ("handoff", "bob"), ("blind",)):
        said = host_home.fails("turn_not_held", "--as", "bob", "turn", "kept", *words)
        assert "ann does" in said and "hold turn kept request" in said
    assert holder(host_home, "kept") == "ann"


@pytest.mark.requirement("A4")
def test_a_turn_is_revoked_by_who_may_seize(host_home: Hold) -> None:
    cat(host_home, "taken")
    host_home.ok("--as", "ann", "turn", "taken", "request")
    host_home.fails("not_permitted", "--as", "bob", "turn", "taken", "revoke")
    host_home.ok("turn", "taken", "revoke", "--message", "lunch is over")
    assert holder(host_home, "taken") == ""
    assert "(revoke: lunch is over)" in host_home.ok("catchup", "taken", "--since", "1")


def test_turn_says_what_is_missing_or_too_much(host_home: Hold) -> None:
    cat(host_home, "fussy")
    for words in (
        *(("handoff",), ("policy",), ("policy", "dice"), ("yield", "ann"), ("show", "ann")),
        *(("yield", "--message", "x"), ("show", "--wait", "1")),
    ):
        host_home.fails("invalid_argument", "turn", "fussy", *words)
    assert host_home("turn", "fussy", "frobnicate").returncode == 64
    assert host_home("turn").returncode == 64
    host_home.fails("no_such_session", "turn", "nowhere")


@pytest.mark.requirement("A1", "A3", "M7")
def test_input_of_others_is_refused_naming_the_holder_and_how_to_ask(host_home: Hold) -> None:
    host_home.shell("held")
    host_home.ok("--as", "ann", "turn", "held", "request")
    before = host_home.ok("tail", "held")
    for words in (
        *(("send", "held", "no"), ("keys", "held", "n"), ("signal", "held", "INT")),
        *(("resize", "held", "10x10"), ("exec", "held", "--", "echo no")),
    ):
        for who in ((), ("--as", "bob")):
            said = host_home.fails("turn_held", *who, *words)
            assert said == (
                "hold: ann holds the turn (turn_held); `hold turn held request` asks for it\n"
            )
    assert host_home.json("show", "held")["size"] == {"cols": 80, "rows": 24}
    host_home.ok("--as", "ann", "exec", "held", "--", "true")
    assert "no" not in host_home.ok("tail", "held", "--since", str(len(before)), "--plain")


@pytest.mark.requirement("A4")
def test_a_free_turn_is_taken_by_writing_and_free_again_after(host_home: Hold) -> None:
    cat(host_home, "casual")
    host_home.ok("--as", "ann", "send", "casual", "--enter", "one")
    host_home.ok("--as", "bob", "send", "casual", "--enter", "two")
    waited(host_home, "casual", r"^two\ntwo")
    assert holder(host_home, "casual") == ""


# -- waiting for it ---------------------------------------------------------------------------


def test_waiting_ends_when_the_turn_is_given(host_home: Hold) -> None:
    cat(host_home, "await")
    host_home.ok("turn", "await", "policy", "ask-holder")
    host_home.ok("turn", "await", "request")
    waiter = host_home.start("--as", "ann", "turn", "await", "request", "--wait", "30")
    queue_of(host_home, "await", 1)
    assert waiter.poll() is None
    host_home.ok("turn", "await", "yield")
    out, said = waiter.communicate(timeout=20)
    assert (waiter.returncode, said) == (0, b"") and b"the turn is yours" in out
    assert holder(host_home, "await") == "ann"


@pytest.mark.requirement("A4")
def test_waiting_goes_on_after_a_daemon_restart(host_home: Hold) -> None:
    cat(host_home, "enduring")
    host_home.ok("turn", "enduring", "policy", "ask-holder")
    host_home.ok("turn", "enduring", "request")
    waiter = host_home.start("--as", "ann", "turn", "enduring", "request", "--wait", "40", "--json")
    queue_of(host_home, "enduring", 1)
    host_home.ok("daemon", "restart")
    host_home.attached("enduring", 0)
    queue_of(host_home, "enduring", 1)
    host_home.ok("turn", "enduring", "yield")
    out, said = waiter.communicate(timeout=30)
    assert (waiter.returncode, said) == (0, b"") and json.loads(out)["yours"] is True


def test_a_wait_that_ends_without_the_turn_fails_and_waits_no_longer(host_home: Hold) -> None:
    cat(host_home, "vain")
    host_home.ok("turn", "vain", "policy", "ask-holder")
    host_home.ok("turn", "vain", "request")
    words = ("--as", "ann", "turn", "vain", "request", "--wait", "0.2")
    assert f"{me(host_home)} holds it" in host_home.fails("timed_out", *words)
    assert host_home(*words).returncode == 124
    assert host_home.json("turn", "vain")["queue"] == []


def test_a_wait_ends_with_the_session(host_home: Hold) -> None:
    cat(host_home, "doomed")
    host_home.ok("turn", "doomed", "policy", "ask-holder")
    host_home.ok("turn", "doomed", "request")
    waiter = host_home.start("--as", "ann", "turn", "doomed", "request", "--wait", "30")
    queue_of(host_home, "doomed", 1)
    host_home.ok("end", "doomed")
    _, said = waiter.communicate(timeout=20)
    assert waiter.returncode == 74 and b"(session_ended)" in said


# -- seize ------------------------------------------------------------------------------------


@pytest.mark.requirement("A4")
def test_a_declared_hold_is_shown_and_outlasts_the_command_that_declared_it(
    host_home: Hold,
) -> None:
    cat(host_home, "declared")
    host_home.ok("--as", "ann", "turn", "declared", "request", "--hold", "10m")
    assert "a pause does not pass it on" in host_home.ok("turn", "declared")
    left = host_home.json("turn", "declared")["held_until"] - time.time()
    assert 0 < left <= 600
    over = ("--as", "bob", "turn", "declared", "request", "--wait", f"{TURN_PAUSE_S * 1.2}")
    assert host_home(*over).returncode == 124, "ann's connection is gone, and she writes nothing"
    assert holder(host_home, "declared") == "ann"
    refused = host_home("--as", "ann", "turn", "declared", "request", "--hold", "2h")
    assert refused.returncode == 64 and "0 to 3600 s" in refused.stderr


def written_once_idle(host: Host, session: str) -> None:
    """The holder pauses; there is no event for that, so it is tried, now and then."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            host.send(session, "mine now")
            return
        except TurnHeld:
            assert time.monotonic() < deadline, "the holder is not idle"
            time.sleep(0.2)


@pytest.mark.requirement("A4", "M7")
def test_who_loses_an_idle_turn_by_anothers_writing_is_told(host_home: Hold) -> None:
    session = cat(host_home, "pausing")
    with connected(host_home, "ann") as ann, connected(host_home, "bob") as bob:
        ann.send(session, "mine, by writing")
        written_once_idle(bob, session)
        lost = ann.connection.receive(PATIENCE_S)
        while not isinstance(lost, turn_messages.TurnLostMessage):
            lost = ann.connection.receive(PATIENCE_S)
        assert (lost.by, lost.reason) == ("bob", "idle")


def write_until_refused(host: Host, session: str, refusals: list[TurnHeld]) -> None:
    try:
        while True:
            host.send(session, "mine!")
    except TurnHeld as refusal:
        refusals.append(refusal)


@pytest.mark.requirement("A5", "M7")
def test_the_turn_is_seized_from_a_holder_that_loops(host_home: Hold) -> None:
    session = cat(host_home, "looping")
    refusals: list[TurnHeld] = []
    with connected(host_home, "ann") as host:
        host.ask(turn_messages.RequestTurn(0, session), turn_messages.TurnShown)
        writer = threading.Thread(target=write_until_refused, args=(host, session, refusals))
        writer.start()
        waited(host_home, "looping", "mine!")
        said = host_home.ok("seize", "looping", "--reason", "it loops")
        writer.join(PATIENCE_S)
        assert not writer.is_alive()
        assert f"{me(host_home)} holds the turn by seizure" in refusals[0].message
        lost = host.connection.receive(PATIENCE_S)
        while not isinstance(lost, turn_messages.TurnLostMessage):
            lost = host.connection.receive(PATIENCE_S)
        assert (lost.by, lost.reason) == (me(host_home), "it loops")
        with pytest.raises(TurnHeld):
            host.send(session, "later")
    assert "the turn is yours; ann had it" in said
    assert "last input taken: by ann at " in said and "hold turn looping yield" in said
    # From the first of mine on there is nothing of ann's any more.
    host_home.ok("send", "looping", "--enter", "seized now")
    waited(host_home, "looping", r"^seized now\nseized now")
    after = host_home.ok("tail", "looping").partition("seized now\r\nseized now")[2]
    assert "mine!" not in after and "later" not in after
    # The request stands, and no policy gives the turn away.
    host_home.fails("timed_out", *("--as", "ann", "turn", "looping", "request", "--wait", "4"))
    assert host_home.json("turn", "looping")["seized"] is True


@pytest.mark.requirement("A5")
def test_a_seizure_needs_the_right_and_tells_all_in_json(host_home: Hold) -> None:
    session = cat(host_home, "told")
    host_home.fails("not_permitted", "--as", "ann", "seize", "told")
    host_home.ok("--as", "ann", "send", "told", "--enter", "typed")
    receipt = host_home.json("seize", "told")
    assert set(receipt) == set(Receipt._fields)
    assert (receipt["before"], receipt["scope"], receipt["frozen"]) == ("", "", False)
    assert receipt["last_input_by"] == "ann" and receipt["at"] >= receipt["last_input_at"]
    assert receipt["journal_seq"] > 0
    assert "nobody had it" in host_home.ok("turn", "told", "yield") + host_home.ok("seize", session)


# -- what happened meanwhile ------------------------------------------------------------------


@pytest.mark.requirement("A6")
def test_catchup_tells_what_others_did(host_home: Hold) -> None:
    host_home.shell("meanwhile")
    host_home.ok("catchup", "meanwhile")  # I have looked
    as_ann = ("--as", "ann", "exec", "meanwhile", "--")
    host_home.ok(*as_ann, "cd /usr; export PATH=/tmp/evil:$PATH GREETING=hi; alias ls=true")
    assert host_home("--as", "ann", "exec", "meanwhile", "--", "greet() { :; }; false").returncode
    host_home.ok(*as_ann, "sleep 1000 & true")
    host_home.ok("--as", "ann", "turn", "meanwhile", "request")
    host_home.fails("turn_held", "--as", "bob", "send", "meanwhile", "x")
    host_home.ok("--as", "ann", "turn", "meanwhile", "yield")
    host_home.ok("--as", "ann", "send", "meanwhile", "echo left")
    host_home.ok("--as", "bob", "send", "meanwhile", " here")
    waited(host_home, "meanwhile", "echo left here")
    host_home.fails("invalid_argument", "turn", "meanwhile", "policy", "dice")  # is no look
    told = host_home.json("catchup", "meanwhile", "--since", "1")
    assert set(told) == set(Handoff._fields)
    said = host_home.ok("catchup", "meanwhile")  # to ask for a stretch of it was no look
    assert "PATH: added /tmp/evil (first)" in said and "sleep 1000" in said
    said = host_home.ok("catchup", "meanwhile")
    assert "no new journal record" in said or "commands" not in said
    assert (told["cwd"], told["halted"], told["refused"]) == ("/usr", False, 2)
    assert (told["unsubmitted"], told["unsubmitted_by"]) == ("echo left here", ["ann", "bob"])
    ran = [(each["actor"], each["status"]) for each in told["commands"]]
    assert ran == [("ann", 0), ("ann", 1), ("ann", 0)]
    assert any("sleep 1000" in job for job in told["jobs"])


@pytest.mark.requirement("A6")
def test_catchup_says_it_in_words_once(host_home: Hold) -> None:
    host_home.shell("words")
    host_home.ok("catchup", "words")
    host_home.ok("--as", "ann", "exec", "words", "--", "cd /usr; export PATH=/tmp/evil:$PATH")
    host_home.ok("--as", "ann", "exec", "words", "--", "alias ls=true; f() { :; }; sleep 1000 &")
    host_home.ok("--as", "ann", "turn", "words", "request")
    host_home.fails("turn_held", "send", "words", "x")  # to be refused is no look either
    said = host_home.ok("catchup", "words")
    for line in (
        *("directory: /usr", "PATH: added /tmp/evil (first)", "alias ls added: true"),
        *("function f added", "sleep 1000", "refused: 1 request", "ann  cd /usr;", "(status 0, "),
        "nobody -> ann (request)",
    ):
        assert line in said, (line, said)
    again = host_home.ok("catchup", "words")
    assert "changed in the shell: nothing" in again and "commands:" not in again


@pytest.mark.requirement("A6")
def test_sending_is_not_looking(host_home: Hold) -> None:
    host_home.shell("blindly")
    host_home.ok("--as", "ann", "exec", "blindly", "--", "true")
    host_home.ok("exec", "blindly", "--", "export PATH=/tmp/evil:$PATH")
    host_home.ok("--as", "ann", "exec", "blindly", "--", "false || true")
    told = host_home.ok("--as", "ann", "catchup", "blindly")
    assert "PATH: added /tmp/evil (first)" in told, told


def test_catchup_shows_text_of_others_harmlessly(host_home: Hold) -> None:
    host_home.shell("harmless")
    # Pasted, as a person may: an exec is refused such characters.
    host_home.ok(
        "send", "harmless", "--enter", ": '\x1b]0;owned\x07' '\x1b[2J'; echo $((6*7))-done"
    )
    host_home.ok("wait", "harmless", "--for", "text:42-done", "--timeout", "20")
    host_home.ok("wait", "harmless", "--for", "prompt", "--timeout", "20")
    said = host_home.ok("catchup", "harmless", "--since", "1")
    assert "owned" in said and "\x1b" not in said and "\x07" not in said
    shown = host_home.ok("show", "harmless")
    assert "\x1b" not in shown and "\x07" not in shown


# -- secrets ----------------------------------------------------------------------------------


def nowhere(hold: Hold, session: str, secret: str) -> None:
    """It is in no view and in no file; and what is looked at is there at all."""
    views = {
        words: hold.ok(*words)
        for words in (
            *(("tail", session), ("screen", session, "--scrollback"), ("show", session, "--json")),
            *(("catchup", session, "--since", "1"), ("show", session), ("ls", "--json")),
            ("catchup", session, "--since", "1", "--json"),
        )
    }
    assert {words for words, shown in views.items() if secret in shown} == set()
    assert files_with(hold, secret) == []


def test_a_secret_typed_with_echo_off_is_kept_nowhere(host_home: Hold, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    session = host_home.shell("hushed")
    line = f'read -s word; printf %s "$word" > {taken}; unset word'
    host_home.ok("--as", "ann", "send", "hushed", "--enter", line)
    host_home.ok("wait", "hushed", "--for", "secret", "--timeout", "20")
    host_home.ok("--as", "ann", "send", "hushed", SECRET)
    host_home.ok("--as", "ann", "keys", "hushed", "q", "Enter")
    host_home.ok("wait", "hushed", "--for", "prompt", "--timeout", "20")
    assert taken.read_text() == f"{SECRET}q"  # it did arrive
    nowhere(host_home, "hushed", SECRET)
    told = host_home.json("catchup", "hushed", "--since", "1")
    assert told["blind_bytes"] >= len(SECRET) + 2  # a paste has its marks
    assert "typed blind: " in host_home.ok("catchup", "hushed", "--since", "1")
    host_home.ok("exec", "hushed", "--", "echo seen")
    assert "seen" in host_home.ok("tail", "hushed")
    host_home.ok("end", "hushed")
    assert files_with(host_home, SECRET) == []
    assert "seen" in host_home.ok("tail", session)


def test_a_blind_turn_keeps_what_is_typed_and_printed_nowhere(
    host_home: Hold, tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    session = host_home.shell("blinded")
    assert "kept nowhere" in host_home.ok("turn", "blinded", "blind")
    assert host_home.json("turn", "blinded")["blind"] is True
    assert "blind" in host_home.ok("turn", "blinded")
    host_home.ok("send", "blinded", "--enter", f"echo {SECRET}; printf %s {SECRET} > {taken}")
    deadline = time.monotonic() + PATIENCE_S
    while not taken.exists() or taken.read_text() != SECRET:
        assert time.monotonic() < deadline, "it was not run"
        host_home.ok("ls")  # nothing of a blind turn can be waited for by its output
    host_home.ok("wait", "blinded", "--for", "prompt", "--timeout", "20")
    nowhere(host_home, "blinded", SECRET)
    assert "kept again" in host_home.ok("turn", "blinded", "unblind")
    nowhere(host_home, "blinded", SECRET)
    told = host_home.json("catchup", "blinded", "--since", "1")
    assert [each["text"] for each in told["commands"]] == ["(typed blind, not kept)"]
    assert told["commands"][0]["status"] == 0
    assert told["blind_bytes"] > 2 * len(SECRET)
    assert "a blind turn ended" in host_home.ok("tail", "blinded")
    # What comes after is kept as ever.
    host_home.ok("exec", "blinded", "--", "echo seen")
    assert "echo seen" in host_home.ok("show", "blinded")
    host_home.ok("end", "blinded")
    assert files_with(host_home, SECRET) == []
    assert "seen" in host_home.ok("tail", session)


def test_a_line_begun_blind_is_not_recorded_after_the_blind_turn(host_home: Hold) -> None:
    host_home.shell("halfway")
    host_home.ok("turn", "halfway", "blind")
    host_home.ok("send", "halfway", f": {SECRET}")
    host_home.ok("turn", "halfway", "seen")
    told = host_home.json("catchup", "halfway")
    assert told["unsubmitted"] == "(typed blind, not kept)"
    host_home.ok("keys", "halfway", "x", "Enter")
    host_home.ok("wait", "halfway", "--for", "prompt", "--timeout", "20")
    ran = host_home.json("show", "halfway")["last_command"]
    assert (ran["text"], ran["status"]) == ("(typed blind, not kept)", 0)
    assert SECRET not in host_home.ok("catchup", "halfway", "--since", "1", "--json")
    assert files_with(host_home, SECRET) == []


def test_a_blind_turn_outlives_the_daemon_and_ends_with_the_turn(host_home: Hold) -> None:
    host_home.shell("dim")
    host_home.ok("turn", "dim", "blind")
    host_home.ok("daemon", "restart")
    host_home.ok("send", "dim", "--enter", f"echo {SECRET}")
    host_home.ok("wait", "dim", "--for", "prompt", "--timeout", "20")
    host_home.ok("turn", "dim", "handoff", "ann")
    assert host_home.json("turn", "dim")["blind"] is False
    nowhere(host_home, "dim", SECRET)
    host_home.ok("--as", "ann", "exec", "dim", "--", "echo seen")
    assert "seen" in host_home.ok("tail", "dim")
