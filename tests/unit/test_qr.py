"""QR codes in the terminal: what is drawn is the code, and fits."""

from __future__ import annotations

import re
import subprocess
import sys

import segno

from holdfast.cli.text import qr_code
from unit.test_invites import LINK

_MODULES = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}


def modules(drawn: str) -> list[list[int]]:
    """Dark and light, read back from the cells."""
    rows: list[list[int]] = []
    for line in drawn.splitlines():
        cells = re.sub(r"\x1b\[[0-9;]*m", "", line)
        for half in (0, 1):
            rows.append([_MODULES[cell][half] for cell in cells])
    return rows


def test_the_cells_are_the_modules_of_the_code_with_a_light_margin() -> None:
    text = LINK.text()
    code = segno.make_qr(text, error="l", boost_error=False)
    wanted = [list(map(int, row)) for row in code.matrix_iter(border=2)]
    rows = modules(qr_code.drawn(text, 80))
    assert rows[: len(wanted)] == wanted
    assert not any(any(row) for row in rows[len(wanted) :])
    assert not any(rows[0]) and not any(rows[1])


def test_the_code_of_an_ordinary_link_fits_a_terminal_of_24_lines() -> None:
    assert len(qr_code.drawn(LINK.text(), 80).splitlines()) <= 23


def test_a_code_that_would_be_wrapped_is_not_drawn() -> None:
    width = len(modules(qr_code.drawn(LINK.text(), 80))[0])
    assert qr_code.drawn(LINK.text(), width)
    assert qr_code.drawn(LINK.text(), width - 1) == ""


def test_colours_are_put_back_on_every_line() -> None:
    lines = qr_code.drawn(LINK.text(), 80).splitlines()
    assert all(line.startswith("\x1b[38;5;16;48;5;231m") for line in lines)
    assert all(line.endswith("\x1b[0m") for line in lines)


def test_nobody_else_waits_for_the_library() -> None:
    script = "import sys, holdfast.cli.text.qr_code; print('segno' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "False"
