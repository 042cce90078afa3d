"""Marks in the output stream: where a command's output begins and ends.

The shell integration prints FinalTerm marks (OSC 133) with a parameter of ours, `hold=<seq>`:
`A` before the prompt, `B` after it, `C` before a command's output, `D;<status>` after it. They
travel in the same stream as everything a program prints, so a program can print them too. They
only say *where*; *that* a command began or ended, and how, is said by the authenticated reports
(`adapters.shell`). The shell prints `D` before it sends the report of the end, so whoever has
that report needs only to read on until the mark is there.

Deliberately absent: any conclusion drawn from a mark alone.
"""

from __future__ import annotations

import re

BEGIN, END = b"C", b"D"
MARK_MAX_BYTES = 64  # a mark of ours is shorter


def mark(kind: bytes, seq: int) -> re.Pattern[bytes]:
    """Finds the marks of one kind of one command. BEL or ST ends an OSC; no control character is
    inside one of ours, so a torn or unterminated mark never swallows what follows it."""
    return re.compile(rb"\x1b\]133;%s;[^\x00-\x1f\x7f]*?hold=%d(?:\x07|\x1b\\)" % (kind, seq))


def may_begin(data: bytes, kind: bytes) -> int:
    """Where a mark of this kind may be beginning at the very end of `data`; its length when none
    is."""
    at = data.rfind(b"\x1b", max(0, len(data) - MARK_MAX_BYTES))
    if at < 0:
        return len(data)
    begun, whole = data[at:], b"\x1b]133;" + kind + b";"
    return at if begun.startswith(whole[: len(begun)]) else len(data)
