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

# BEL or ST ends an OSC. No control character is inside one of ours, so a torn or unterminated
# mark never swallows what follows it.
_MARK = re.compile(rb"\x1b\]133;([A-Z])((?:;[^\x00-\x1f\x7f]*)?)(?:\x07|\x1b\\)")


def find_output(data: bytes, seq: int) -> tuple[int, int] | None:
    """Start and end of the output of command `seq` in `data`; None if it is not all there.

    The first `C` and the *last* `D` of that number count: the shell prints its `C` before the
    command can print anything, and its `D` when the command no longer does. `data` should end
    where the next prompt begins, or a background job of the command may still add a forged `D`.
    """
    start = end = None
    for mark in _MARK.finditer(data):
        kind, of = mark[1], _number(mark[2])
        if of != seq:
            continue
        if kind == b"C" and start is None:
            start = mark.end()
        elif kind == b"D" and start is not None:
            end = mark.start()
    return None if start is None or end is None else (start, end)


def find_refusal(data: bytes, seq: int) -> tuple[int, int] | None:
    """Where the shell says why it did not run line `seq`: a line that does not parse has no `C`.

    From the line break after the prompt (after the last `B`) to the `D`; None if not all there.
    The echo of a line continued on further lines is part of it: nothing tells them apart.
    """
    start = end = None
    for mark in _MARK.finditer(data):
        kind, of = mark[1], _number(mark[2])
        if of != seq:
            continue
        if kind == b"B":
            start, end = mark.end(), None
        elif kind == b"D" and start is not None:
            end = mark.start()
    if start is None or end is None:
        return None
    line_break = data.find(b"\n", start, end)
    return None if line_break < 0 else (line_break + 1, end)


def strip_marks(data: bytes) -> bytes:
    """`data` as shown to somebody: no OSC 133 at all, ours or another's.

    A mark of a nested shell's integration would otherwise reach the terminal it is shown on,
    and that terminal would believe it.
    """
    return _MARK.sub(b"", data)


def _number(parameters: bytes) -> int | None:
    for parameter in parameters.split(b";"):
        name, _, value = parameter.partition(b"=")
        if name == b"hold" and value.isdigit() and len(value) < 20:
            return int(value)
    return None
