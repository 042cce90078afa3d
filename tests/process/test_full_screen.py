"""A full-screen program is in use, and waits for nobody's answer (S7)."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from process.commanding import PATIENCE_S, Hold


def shown_in_state(hold: Hold, name: str, state: str, *, full_screen: bool) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        info: dict[str, Any] = hold.json("show", name)
        if info["state"] == state and info["full_screen"] is full_screen:
            return info
        assert time.monotonic() < deadline, f"{info['state']}, full screen: {info['full_screen']}"


@pytest.mark.requirement("S7")
@pytest.mark.parametrize("argv", [("vim", "-u", "NONE"), ("less", "/etc/passwd"), ("top",)])
def test_a_full_screen_program_is_in_use_and_not_waiting(
    host_home: Hold, argv: tuple[str, ...]
) -> None:
    name = f"full-{argv[0]}"
    host_home.ok("run", "-d", "--name", name, "--", *argv)
    info = shown_in_state(host_home, name, "input", full_screen=True)
    assert info["waiting_line"] == ""
    (row,) = [line for line in host_home.ok("ls").splitlines() if line.startswith(name)]
    assert "in use" in row and "input" not in row


@pytest.mark.requirement("S7")
def test_a_question_after_a_program_that_left_the_full_screen_on_is_a_question(
    host_home: Hold,
) -> None:
    ask = "import sys; sys.stdout.write('\\x1b[?1h'); input('host? ')"
    host_home.ok("run", "-d", "--name", "asks", "--", sys.executable, "-c", ask)
    assert shown_in_state(host_home, "asks", "input", full_screen=False)["waiting_line"] == "host?"
