"""A line typed while the shell is busy is attributed too, though no prompt stood there yet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from process.commanding import Hold
from process.recorded import add_actor, log


@pytest.mark.requirement("A3", "M8")
def test_a_command_typed_before_its_prompt_is_of_whoever_typed_it(
    host_home: Hold, tmp_path: Path
) -> None:
    hold, gate = host_home, tmp_path / "gate"
    os.mkfifo(gate)
    add_actor(hold, "bot")
    hold.shell("ahead")
    busy, ahead = f"echo $((6*7))-busy; cat {gate}", "echo $((6*7))-ahead"
    hold.ok("--as", "bot", "send", "ahead", "--enter", busy)
    hold.ok("wait", "ahead", "--for", "text:42-busy", "--timeout", "20")
    hold.ok("--as", "bot", "send", "ahead", "--enter", ahead)
    gate.write_text("")
    hold.ok("wait", "ahead", "--for", "text:42-ahead", "--timeout", "20")
    began = log(hold, "ahead", "--kind", "command_began")
    assert [(each["actor_name"], each["body"]["text"]) for each in began] == [
        ("bot", busy),
        ("bot", ahead),
    ]
