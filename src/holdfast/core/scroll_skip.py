"""Output that only scrolls: what of it can be left out of the screen without changing the screen.

A build log or a `cat` of a large file is text, line ends and colours. Once more lines of it follow
than the screen is high, the earlier ones can no longer be seen, and nothing in them can have
changed a mode. So they need not be parsed, which is what makes a flood cheap: looking costs three
passes of the C library over the bytes, a tenth of parsing them.

`only_scrolls` decides; `pen_after` keeps the one thing that outlives the text: its colours.
"""

from __future__ import annotations

import re

# Text in UTF-8, and the controls that do nothing but print, colour and scroll.
_TEXT = bytes(range(0x20, 0x7F)) + bytes(range(0x80, 0x100))
_HARMLESS = _TEXT + b"\r\n\t\x1b"
_DIGITS = b"0123456789;:"
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
_RESETS = (b"\x1b[0m", b"\x1b[m")
PEN_MAX_BYTES = 4096  # colour changes without a reset in between; more is not worth remembering

# In a snapshot, what makes scrolling or printing depend on more than the lines themselves: the
# alternate screen, margins, insert and origin mode, other character sets, a wrap switched off.
_UNUSUAL = re.compile(
    rb"\x1b\[\?(?:1049|1047|47|6|69)h|\x1b\[\d+;\d+[rs]|\x1b\[4h|\x1b\[\?7l(?!.*\x1b\[\?7h)"
    rb"|\x1b[()*+][^B]|\x0e",
    re.DOTALL,
)


def only_scrolls(data: bytes) -> bool:
    """Whether `data` is text, line ends and colours, and nothing else."""
    if data.translate(None, _HARMLESS):
        return False
    # With the digits taken out, every colour sequence is the same three bytes.
    return data.count(b"\x1b") == data.translate(None, _DIGITS).count(b"\x1b[m")


def is_usual(snapshot: bytes) -> bool:
    """Whether a screen with this snapshot scrolls in the ordinary way."""
    return _UNUSUAL.search(snapshot) is None


def pen_after(pen: bytes, data: bytes) -> bytes | None:
    """The colour sequences in force after `data`, which only scrolls; None when they are too many
    to keep."""
    last = max(data.rfind(reset) for reset in _RESETS)
    changes = b"".join(_COLOUR.findall(data[max(last, 0) :]))
    pen = changes if last >= 0 else pen + changes
    return pen if len(pen) <= PEN_MAX_BYTES else None


def has_reset(data: bytes) -> bool:
    """Whether what was in force before `data` is forgotten after it."""
    return any(reset in data for reset in _RESETS)


def last_line_end(data: bytes) -> int:
    """The position after the last complete line; 0 when there is none. Only a carriage return and
    a line feed together leave the cursor where we know it to be."""
    return data.rfind(b"\r\n") + 2 if b"\r\n" in data else 0
