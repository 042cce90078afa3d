"""Stopping what does not want to stop: `hold halt`, `hold seize --halt`, `hold resume`."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast.cli.text import halt_receipt
from holdfast.model.errors import HaltFailed
from holdfast.model.turn_info import Receipt
from holdfast.wire.messages import turn as turn_messages
from process.acting import add_actor, connected
from process.commanding import Hold
from process.halt_scenes import WATCHED_S, soon

DEAF = "trap '' INT TERM HUP QUIT TSTP"
LEVELS = ("plain", "contained")


@pytest.fixture(scope="module", autouse=True)
def actors(host_home: Hold) -> None:
    add_actor(host_home, "ann", "execute", "--all")
    add_actor(host_home, "bob", "execute", "--all")


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, host_home: Hold) -> str:
    wanted: str = request.param
    if wanted != "plain" and host_home.json("daemon", "status")["level"] == "plain":
        pytest.skip("this host has no more than plain")
    return wanted


def script(hold: Hold, name: str, level: str, text: str) -> None:
    hold.ok("run", "-d", "--name", name, "--level", level, "--", "sh", "-c", text)


def shell(hold: Hold, name: str, level: str) -> None:
    hold.ok("run", "-d", "--name", name, "--level", level, "--", "bash", "--norc")
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def grows(path: Path) -> bool:
    """Whether it does while it is watched."""
    before = size(path)
    time.sleep(WATCHED_S)
    return size(path) > before


def soon_grows(path: Path) -> None:
    before = size(path)
    soon(lambda: size(path) > before, "it does not count")


# -- whatever runs ----------------------------------------------------------------------------


@pytest.mark.requirement("A5")
@pytest.mark.parametrize("kind", ["forks", "deaf"])
def test_what_does_not_listen_is_frozen_all_the_same(
    host_home: Hold, tmp_path: Path, level: str, kind: str
) -> None:
    counter, name = tmp_path / "counter", f"{kind}-{level}"
    lines = {
        "forks": f"while :; do (echo >> {counter} &); /bin/true; done",
        "deaf": f"{DEAF}; while :; do echo >> {counter}; done",
    }
    script(host_home, name, level, lines[kind])
    soon_grows(counter)
    if kind == "deaf":
        for number in ("INT", "TERM", "HUP"):
            host_home.ok("signal", name, number)
        soon_grows(counter)
    said = host_home.ok("seize", name, "--halt", "--reason", "runaway")
    assert not grows(counter)
    assert f"halted: {name}; the kernel confirms" in said and " frozen, in " in said
    assert "a system call that was under way may still complete" in said
    assert f"hold resume {name}" in said
    assert host_home.json("show", name)["state"] == "halted"
    assert f"{name} is resumed" in host_home.ok("resume", name)
    soon_grows(counter)
    receipt = host_home.json("halt", name)
    assert set(receipt) == set(Receipt._fields)
    assert (receipt["scope"], receipt["frozen"], receipt["running"]) == ("session", True, [])
    assert receipt["tasks"] >= 1 and receipt["seconds"] >= 0
    assert not grows(counter)
    # It ends without getting to run again.
    before = size(counter)
    host_home.ok("end", name)
    assert size(counter) == before


@pytest.mark.requirement("A5")
def test_a_halt_survives_the_daemon_and_can_be_resumed_after(
    host_home: Hold, tmp_path: Path, level: str
) -> None:
    counter, name = tmp_path / "counter", f"lasting-{level}"
    script(host_home, name, level, f"while :; do echo >> {counter}; done")
    soon_grows(counter)
    host_home.ok("halt", name)
    before = size(counter)
    host_home.ok("daemon", "restart")
    assert host_home.json("show", name)["state"] == "halted"
    host_home.fails("session_halted", "send", name, "x")
    assert not grows(counter) and size(counter) == before
    assert host_home.json("resume", name)["name"] == name
    soon_grows(counter)
    host_home.ok("end", name)


@pytest.mark.requirement("A1", "A5")
def test_input_to_a_halted_session_is_refused_and_not_typed_later(
    host_home: Hold, level: str
) -> None:
    name = f"deaf-ear-{level}"
    shell(host_home, name, level)
    assert "has the turn" in host_home.ok("halt", name)
    for words in (
        *(("send", name, "--enter", "echo never"), ("keys", name, "n", "Enter")),
        *(("signal", name, "INT"), ("resize", name, "50x20")),
    ):
        assert "hold resume" in host_home.fails("session_halted", *words), words
    assert host_home("exec", name, "--", "echo never").returncode == 75
    assert "HALTED" in host_home.ok("catchup", name)
    host_home.ok("screen", name)  # looking is not writing
    host_home.ok("resume", name)
    host_home.ok("wait", name, "--for", "prompt", "--timeout", "20")
    assert host_home.ok("exec", name, "--", "echo after; stty size") == "after\n24 80\n"
    assert "never" not in host_home.ok("tail", name)


@pytest.mark.requirement("A2", "A5")
def test_halt_needs_its_right(host_home: Hold) -> None:
    shell(host_home, "righteous", "plain")
    for words in (("halt",), ("resume",), ("seize",)):
        host_home.fails("not_permitted", "--as", "ann", *words, "righteous")
    host_home.ok("grant", "ann", "execute", "seize", "righteous")
    host_home.fails("not_permitted", "--as", "ann", "seize", "righteous", "--halt")
    assert host_home.json("turn", "righteous")["holder"] == ""
    host_home.ok("grant", "ann", "execute", "halt", "righteous")
    host_home.ok("--as", "ann", "halt", "righteous")
    host_home.fails("not_permitted", "--as", "bob", "resume", "righteous")
    host_home.ok("--as", "ann", "resume", "righteous")


# -- what one actor started -------------------------------------------------------------------


@pytest.mark.requirement("A5")
def test_only_what_one_actor_started_is_frozen(host_home: Hold, tmp_path: Path) -> None:
    if host_home.json("daemon", "status")["level"] == "plain":
        pytest.skip("needs level contained")
    shell(host_home, "shared", "contained")
    counters = {name: tmp_path / name for name in ("ann", "bob")}
    for name, counter in counters.items():
        line = f"(while :; do echo >> {counter}; done) & true"
        host_home.ok("--as", name, "exec", "shared", "--", line)
    for counter in counters.values():
        soon_grows(counter)
    said = host_home.ok("seize", "shared", "--only-actor", "bob", "--reason", "his only")
    assert "halted: what actor bob started in shared; the kernel confirms" in said
    assert not grows(counters["bob"])
    soon_grows(counters["ann"])
    # The shell itself goes on, though bob wrote to it last.
    bob, pid = host_home.json("actor", "show", "bob")["id"], host_home.json("show", "shared")["pid"]
    assert bob not in Path(f"/proc/{pid}/cgroup").read_text()
    assert host_home.ok("exec", "shared", "--", "echo works") == "works\n"
    assert not grows(counters["bob"])
    host_home.ok("resume", "shared")
    soon_grows(counters["bob"])
    receipt = host_home.json("halt", "shared", "--only-actor", "ann")
    assert (receipt["scope"], receipt["frozen"]) == ("actor ann", True)
    assert not grows(counters["ann"])
    soon_grows(counters["bob"])
    # Her own input would only wait for her frozen programs; that survives a daemon, too.
    host_home.fails("session_halted", "--as", "ann", "send", "shared", "x")
    host_home.ok("daemon", "restart")
    host_home.fails("session_halted", "--as", "ann", "send", "shared", "x")
    assert not grows(counters["ann"])
    host_home.fails("no_such_actor", "halt", "shared", "--only-actor", "ghost")
    host_home.ok("resume", "shared")
    soon_grows(counters["ann"])
    host_home.ok("end", "shared")


@pytest.mark.requirement("A5")
def test_what_is_typed_ahead_is_its_actors_when_the_shell_comes_to_it(
    host_home: Hold, tmp_path: Path
) -> None:
    if host_home.json("daemon", "status")["level"] == "plain":
        pytest.skip("needs level contained")
    shell(host_home, "inturn", "contained")
    gates = {name: tmp_path / name for name in ("ann", "bob")}
    ids = {name: host_home.json("actor", "show", name)["id"] for name in gates}
    groups = Path(f"/proc/{host_home.json('show', 'inturn')['pid']}/cgroup")
    for name, gate in gates.items():
        os.mkfifo(gate)
        line = f"echo $((6*7))-{name}; cat {gate}"
        host_home.ok("--as", name, "send", "inturn", "--enter", line)
        if name == "ann":
            host_home.ok("wait", "inturn", "--for", "text:42-ann", "--timeout", "20")
    assert ids["ann"] in groups.read_text()  # what she started may start more
    gates["ann"].write_text("")
    host_home.ok("wait", "inturn", "--for", "text:42-bob", "--timeout", "20")
    soon(lambda: ids["bob"] in groups.read_text(), "the shell is not where bob's commands are")
    gates["bob"].write_text("")
    host_home.ok("end", "inturn")


def test_at_level_plain_one_actor_cannot_be_halted_alone(host_home: Hold) -> None:
    shell(host_home, "undivided", "plain")
    for verb in ("halt", "seize"):
        host_home.fails("level_unavailable", verb, "undivided", "--only-actor", "ann")
    assert host_home.json("turn", "undivided")["holder"] == ""


# -- what the kernel did not confirm ----------------------------------------------------------


def unconfirmed() -> Receipt:
    return Receipt(
        at=1000.0,
        before="ann",
        scope="session",
        frozen=False,
        tasks=3,
        seconds=5.0,
        running=tuple(range(100, 112)),
        last_input_by="ann",
        last_input_at=990.0,
        caveat="x",
    )


@pytest.mark.requirement("A5")
def test_a_halt_that_was_not_confirmed_is_told_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(HaltFailed, match="build is frozen"):
        halt_receipt.tell(unconfirmed(), "build", you="bob", seized=True, as_json=False)
    said = capsys.readouterr().out
    assert "NOT confirmed: build" in said and "confirms" not in said
    assert "could not be stopped: 100, 101" in said and "and 2 more" in said
    assert "by ann at" in said and "10s before" in said
    with pytest.raises(HaltFailed):
        halt_receipt.tell(unconfirmed(), "build", you="bob", seized=False, as_json=True)
    # Nothing was to be halted: then nothing is missing.
    halt_receipt.tell(
        unconfirmed().replace(scope=""), "build", you="bob", seized=True, as_json=False
    )


def test_a_receipt_calls_its_reader_you(capsys: pytest.CaptureFixture[str]) -> None:
    own = unconfirmed().replace(scope="")
    halt_receipt.tell(own, "build", you="ann", seized=False, as_json=False)
    halt_receipt.tell(own, "build", you="ann", seized=True, as_json=False)
    said = capsys.readouterr().out
    assert "you have the turn" in said and "you had it already" in said
    assert "by you at" in said and "ann" not in said


def test_what_to_do_next_names_the_session_as_it_is_found_from_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ON", "vm")
    halt_receipt.tell(
        unconfirmed().replace(frozen=True), "main", you="bob", seized=True, as_json=False
    )
    said = capsys.readouterr().out
    assert "`hold resume vm/main`" in said and "`hold turn vm/main yield`" in said


@pytest.mark.requirement("A5", "M7")
def test_the_loser_of_a_seizure_with_halt_is_told_and_refused(host_home: Hold) -> None:
    shell(host_home, "loser", "plain")
    session = host_home.json("show", "loser")["id"]
    with connected(host_home, "ann") as host:
        host.ask(turn_messages.RequestTurn(0, session), turn_messages.TurnShown)
        host_home.ok("seize", "loser", "--halt", "--reason", "enough")
        lost = host.connection.receive(20)
        while not isinstance(lost, turn_messages.TurnLostMessage):
            lost = host.connection.receive(20)
        assert lost.reason == "enough"
        host_home.ok("resume", "loser")
    said = host_home.fails("turn_held", "--as", "ann", "send", "loser", "x")
    assert "by seizure" in said
    assert host_home.json("catchup", "loser", "--since", "1")["refused"] == 1


def test_since_when_it_is_halted_survives_the_daemon_and_is_over_with_the_halt(
    host_home: Hold, level: str
) -> None:
    name = f"since-{level}"
    shell(host_home, name, level)
    assert host_home.json("show", name)["state_since"] is None
    before = time.time()
    host_home.ok("halt", name)
    since = host_home.json("show", name)["state_since"]
    assert before <= since <= time.time()
    host_home.ok("daemon", "restart")
    assert host_home.json("show", name)["state_since"] == since
    host_home.ok("resume", name)
    assert host_home.json("show", name)["state_since"] is None
