"""The line gate with real shells: what the shell is about to take is judged before it takes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from process.acting import add_actor
from process.gating import GatedHold, until

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture(scope="module")
def hold() -> Iterator[GatedHold]:
    hold = GatedHold()
    try:
        hold.ok("up", "-d")
        yield hold
    finally:
        hold.close()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_line_that_is_refused_is_not_run_and_not_left(shell: str, hold: GatedHold) -> None:
    hold.rules(refuse=["forbidden"])
    hold.ok("run", "-d", "--name", f"refuse-{shell}", "--", *STARTS[shell])
    hold.ok("wait", f"refuse-{shell}", "--for", "prompt")
    assert "fine" in hold.ok("exec", f"refuse-{shell}", "--", "echo fine")
    said = hold.fails("gate_refused", "exec", f"refuse-{shell}", "--", "echo forbidden")
    assert "no such lines here" in said
    assert "after" in hold.ok("exec", f"refuse-{shell}", "--", "echo after")


STARTS = {"bash": ["bash", "--norc"], "zsh": ["zsh", "-f"], "fish": ["fish"]}


def pending(hold: GatedHold, name: str) -> list[dict[str, Any]]:
    return [each for each in hold.json("approvals", name) if each["status"] == "pending"]


def until_held(hold: GatedHold, name: str) -> dict[str, Any]:
    (found,) = until("it is held", lambda: pending(hold, name))
    return dict(found)


def test_a_held_line_runs_once_when_somebody_else_approves(hold: GatedHold) -> None:
    hold.rules(hold=["drop"])
    add_actor(hold, "boss", "admin", "--all")
    hold.ok("run", "-d", "--name", "held", "--", *STARTS["bash"])
    hold.ok("wait", "held", "--for", "prompt")
    running = hold.start("exec", "held", "--", "echo drop >> /tmp/x; echo done-it")
    approval = until_held(hold, "held")
    assert approval["text"] == "echo drop >> /tmp/x; echo done-it"
    hold.fails("not_permitted", "approve", approval["id"])
    with hold.acting("boss"):
        assert "approved" in hold.ok("approve", approval["id"][:4], "--note", "go on")
    out, err = running.communicate(timeout=20)
    assert (running.returncode, b"done-it" in out) == (0, True), (out, err)
    assert b"waits for approval" in err
