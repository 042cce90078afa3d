"""What a client's coming and going leaves in the record and in the numbers (M1)."""

from __future__ import annotations

import re

import pytest

from process.commanding import Hold
from process.recorded import log
from process.terminals import Terminal


@pytest.mark.requirement("M1")
def test_each_attach_has_its_gap_the_process_and_what_is_held(fresh_home: Hold) -> None:
    hold = fresh_home
    hold.ok("up", "-d")
    hold.ok("run", "-d", "--name", "work", "--ring", "65536", "--", "bash", "--norc")
    hold.ok("wait", "work", "--for", "prompt", "--timeout", "20")
    for number in (1, 2):
        terminal = Terminal(hold, "attach", "work")
        terminal.until_shown("attached to")
        terminal.close()
        hold.attached("work", 0)
        if number == 1:
            hold.ok("exec", "work", "--", "seq 20000 >/dev/null; seq 20000")
    found = [each["body"] for each in log(hold, "work") if each["kind"] == "attached"]
    first, second = [each for each in found if each["client"] == "hold attach"]
    pid = hold.json("show", "work")["pid"]
    assert first["pid"] == second["pid"] == pid, "nothing was started again"
    assert first["rolled_off"] == 0 and second["rolled_off"] > 0
    assert 0 < second["held"] <= 65536
    numbers = hold.ok("metrics")
    (rolled,) = re.findall(r"^holdfast_output_rolled_off_bytes (\d+)$", numbers, re.MULTILINE)
    assert int(rolled) >= second["rolled_off"]
    (attached,) = re.findall(r'entries_total\{kind="attached"\} (\d+)', numbers)
    assert int(attached) >= 2
