"""A link as a QR code in the terminal, for the camera of a phone.

Two modules to a character cell, drawn in colours of its own: black on white, whatever the
terminal's theme is, because many cameras do not read white on black. The library is imported when
a code is drawn; no other verb pays for it.
"""

from __future__ import annotations

# Of the 256-colour cube, which themes leave alone, unlike the first sixteen.
_BLACK_ON_WHITE = "\x1b[38;5;16;48;5;231m"
_PLAIN = "\x1b[0m"
_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
# The standard asks for 4. Two are enough for cameras, and a code of an ordinary link then has 23
# lines: it fits a terminal of 24.
_MARGIN = 2


def print_code(link: str) -> None:
    import shutil

    code = drawn(link, shutil.get_terminal_size().columns)
    print(code or "(this terminal is too narrow for a QR code)", flush=True)


def drawn(text: str, columns: int) -> str:
    """Lines to print; "" when they would be wider than the terminal, where a wrapped code is no
    code."""
    import segno

    # The lowest correction: a screen has no scratches, and a smaller code is read from further.
    code = segno.make_qr(text, error="l", boost_error=False)
    rows = [list(row) for row in code.matrix_iter(border=_MARGIN)]
    if len(rows[0]) > columns:
        return ""
    rows.extend([[0] * len(rows[0])] * (len(rows) % 2))
    lines = []
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        cells = "".join(
            _HALVES[bool(above), bool(below)] for above, below in zip(upper, lower, strict=True)
        )
        lines.append(f"{_BLACK_ON_WHITE}{cells}{_PLAIN}\n")
    return "".join(lines)
