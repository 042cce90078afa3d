"""A live session goes to another host, and is the same one there (N1, N3, F1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from privileged.checkpointing import entries, said, skip_unless_possible, started, until_screen
from privileged.moving import moved, two_hosts
from process.commanding import Hold


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
    assert second.json("status", "build")["continuity"] == "migrated"
    assert first.json("ls", "--all")[0]["ending"]["moved_to"] == second.home
