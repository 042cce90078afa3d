"""A live session goes to another host, and is the same one there (N1, N3, F1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import entries, said, skip_unless_possible, started, until_screen
from privileged.moving import moved, two_hosts
from process.commanding import PATIENCE_S, Hold
from process.reaching import Faraway
from process.terminals import Terminal


@pytest.fixture
def hosts() -> Iterator[tuple[Hold, Hold]]:
    skip_unless_possible()
    with two_hosts() as both:
        yield both


@pytest.mark.requirement("N1", "M2", "F1")
def test_a_shell_goes_on_at_another_host_with_its_variables_jobs_and_half_typed_line(
    hosts: tuple[Hold, Hold],
) -> None:
    first, second = hosts
    session = started(first, "build")
    said(first, "build", "X=kept; f() { echo from $X; }; sleep 1000 & JOB=$!")
    first.ok("send", "build", "echo half-")
    until_screen(first, "build", r"echo half-")
    told = moved(first, "build", second)
    assert (told["session"], told["epoch"], told["host"]) == (session, 1, second.home)
    assert second.home in first.fails("session_elsewhere", "send", "build", "x")
    shown = second.json("show", session)
    assert (shown["id"], shown["name"], shown["epoch"]) == (session, "build", 2)
    assert (shown["superposition"], shown["migration"]["phase"]) == ("settled", "")
    second.ok("send", "--enter", "build", "typed")
    until_screen(second, "build", r"(?m)^half-typed")
    assert said(second, "build", "f; jobs -p | grep -c $JOB").split() == ["from", "kept", "1"]
    assert said(second, "build", "cat $HOLDFAST_TOKEN_FILE") == "2"
    (restored,) = entries(second, "build", "restored")
    assert (restored["epoch"], restored["body"]["before"]) == (2, 1)
    assert len(entries(second, "build", "began")) == 2
    second.ok("verify", "build")
    assert "migrated" in second.ok("status", "build")
    assert first.json("ls", "--all")[0]["ending"]["moved_to"] == second.home


@pytest.mark.requirement("N3")
def test_where_a_session_is_can_be_seen_at_every_moment_of_its_move(
    hosts: tuple[Hold, Hold],
) -> None:
    first, second = hosts
    session = started(first, "build")
    before = first.json("show", session)
    assert (before["superposition"], before["migration"]) == ("pre-migration", None)
    seen: list[tuple[str, str]] = []
    watch = first.start("watch", "build", "--json")
    assert watch.stdout is not None
    watch.stdout.readline()
    command = first.start("move", "build", second.home)
    while command.poll() is None:
        shown = first.json("show", session)
        migration = shown["migration"] or {"phase": ""}
        now = (shown["superposition"], migration["phase"])
        seen += [now] if not seen or seen[-1] != now else []
    assert command.wait(PATIENCE_S) == 0
    assert first.json("show", session)["superposition"] == "settled"
    assert 'holdfast_moves_total{outcome="moved"} 1' in first.ok("metrics")
    assert 'holdfast_moves_total{outcome="live"} 1' in second.ok("metrics")
    order = [
        *(("pre-migration", ""), ("pre-migration", "snapshot"), ("transferring", "transfer")),
        *(("dual-active", "restore"), ("dual-active", "replay"), ("dual-active", "cutover")),
        *(("post-cutover", "complete"), ("settled", "")),
    ]
    assert set(seen) <= set(order) and seen == sorted(seen, key=order.index), seen
    assert {"snapshot", "transfer", "restore"} & {phase for _, phase in seen}, seen
    told = [json.loads(line) for line in watch.communicate(timeout=PATIENCE_S)[0].splitlines()]
    phases = [each["phase"] for each in told if "superposition" in each]
    assert phases == [phase for _, phase in order[1:-1]], "each, in order"
    assert told[-1]["ending"]["moved_to"] == second.home


@pytest.mark.requirement("F1")
def test_a_session_that_moved_is_not_restored_where_it_was_and_may_come_back_by_a_move(
    hosts: tuple[Hold, Hold],
) -> None:
    first, second = hosts
    session = started(first, "build")
    said(first, "build", "X=old")
    older = first.json("checkpoint", "build")["id"]
    said(first, "build", "X=new")
    moved(first, "build", second)
    keys = [Path(each.home, "sessions", session, "session.key") for each in hosts]
    assert [key.exists() for key in keys] == [False, True]
    assert second.home in first.fails("session_elsewhere", "restore", older)
    assert second.home in first.fails("session_elsewhere", "restore", "build")
    assert [each["id"] for each in first.json("checkpoints", session)] == [older]
    moved(second, "build", first)
    assert (first.json("show", session)["epoch"], said(first, "build", "echo $X")) == (3, "new")
    first.ok("verify", "build")
    first.ok("daemon", "restart")
    assert said(first, "build", "echo $X") == "new"
    first.ok("verify", "build")


@pytest.mark.requirement("N1")
def test_what_a_host_cannot_take_stays_where_it_was_with_the_reason(
    hosts: tuple[Hold, Hold],
) -> None:
    first, second = hosts
    session = started(first, "build")
    said(first, "build", "X=kept")
    started(second, "build")  # the name is taken there
    assert "build" in first.fails("name_taken", "move", "build", second.home)
    second.ok("rename", "build", "other")
    second.ok("down")
    assert second.home in first.fails("host_down", "move", "build", second.home)
    second.ok("up", "-d")
    assert said(first, "build", "echo $X") == "kept"
    assert first.json("show", session)["epoch"] == 1
    moved(first, "build", second)
    assert said(second, session, "echo $X") == "kept"


@pytest.mark.requirement("N2")
def test_a_joined_machine_is_chosen_by_what_it_can_do() -> None:
    skip_unless_possible()
    far = Faraway()
    try:
        here, box = far.client, far.host
        here.ok("up", "-d")
        session = started(here, "build")
        said(here, "build", "X=kept")
        gpu = ("move", "build", "--require", "label=gpu", "--require", "memory=1M")
        assert "box: it has no label gpu" in here.fails("move_failed", *gpu)
        config = Path(box.home, "config.toml")
        config.write_text(config.read_text() + 'labels = ["gpu"]\n')
        box.ok("daemon", "restart")
        far.until_reached(2)
        few = here.fails("move_failed", *gpu, "--require", "kernel=99")
        assert "box: its kernel is" in few
        assert here.json(*gpu)["host"] == "box"
        assert said(box, session, "echo $X") == "kept"
    finally:
        far.close()


def test_a_host_is_drained_by_moves_and_checkpoints_and_says_what_stays(
    hosts: tuple[Hold, Hold],
) -> None:
    first, second = hosts
    goes = started(first, "goes")
    for slip in ("laptpo", f"{second.home}/nothing"):
        first.fails("no_such_machine", "drain", "--to", slip)
    assert first.json("show", goes)["state"] == "prompt"
    first.ok("run", "-d", "--name", "stays", "--level", "plain", "--", "sleep", "1000")
    done = first("drain", "--to", second.home)
    assert done.returncode == 71 and "(move_failed)" in done.stderr, done
    assert f"goes: moved to {second.home}" in done.stdout and "stays: stays:" in done.stdout
    assert second.json("show", goes)["ending"] is None
    first.ok("end", "stays")
    sleeps = started(first, "sleeps")
    told = first.json("drain")
    (one,) = [each for each in told["sessions"] if each["id"] == sleeps]
    assert (one["became"], told["stayed"]) == ("asleep", 0)
    assert first.json("show", sleeps)["state"] == "asleep"


@pytest.mark.requirement("N1")
def test_an_attached_terminal_follows_its_session_and_loses_nothing_that_is_typed(
    hosts: tuple[Hold, Hold],
) -> None:
    first, second = hosts
    session = started(first, "build")
    said(first, "build", "X=kept")
    terminal = Terminal(first, "attach", "build")
    try:
        terminal.until(b"$ ")
        terminal.type(b"echo one-$X\r")
        terminal.until(b"one-kept")
        command = first.start("move", "build", second.home)
        for number in range(20):
            terminal.type(b"echo typed-%d-$X\r" % number)
        assert command.wait(PATIENCE_S) == 0
        terminal.until(b"typed-19-kept")
        terminal.type(b"echo two-$X\r")
        terminal.until(b"two-kept")
        assert second.json("show", session)["operators"] == 1
        shown = second.ok("screen", session, "--scrollback")
        assert [shown.count(f"\ntyped-{number}-kept") for number in range(20)] == [1] * 20
    finally:
        terminal.close()
