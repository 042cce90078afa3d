"""The host asks a shell for the text at its prompt by a key of its own. That key must never reach a
program: between Enter and the shell's reading of it, a shell looks as if it were still asking."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.acting import connected
from process.commanding import Hold


@pytest.mark.requirement("A6")
def test_what_asks_for_the_text_at_the_prompt_never_reaches_a_program(
    host_home: Hold, tmp_path: Path
) -> None:
    session = host_home.shell("asked")
    with connected(host_home) as typing, connected(host_home) as looking:
        for each in (typing, looking):
            each.ask(m.Attach(0, session, 1), m.Attached)
        for number in range(12):
            taken = tmp_path / f"taken{number}"
            typing.send(session, f"cat > {taken}")  # takes the turn: what there is, is gathered
            looking.ask(turn_messages.CatchUp(0, session, None), turn_messages.CaughtUp)
            host_home.ok("wait", "asked", "--for", "input", "--timeout", "30")
            typing.keys(session, ["C-d"])
            host_home.ok("wait", "asked", "--for", "prompt", "--timeout", "30")
            assert taken.read_bytes() == b""
            typing.ask(turn_messages.YieldTurn(0, session), turn_messages.TurnShown)
        typing.send(session, "echo 'half", enter=True)
        typing.send(session, "of it", enter=False)
        told = looking.ask(turn_messages.CatchUp(0, session, None), turn_messages.CaughtUp).handoff
        assert told.unsubmitted.endswith("of it"), told
