"""Where output may be cut.

Output is cut between sequences and characters, so that a snapshot can be put in between and a
reader can begin there. Only the end of a piece is looked at: an ESC begins a new sequence whatever
came before it (but for a doubled ESC inside a device control string), so the last few ESCs tell
the state at the end, and the cost does not grow with the piece.

It is no terminal: it does not say what sequences do, and it does not keep state between calls.
Bytes 0x80 to 0x9f are parts of UTF-8 characters here, never controls."""

from __future__ import annotations

import re

# One whole sequence, from its ESC. CAN and SUB end any; an ESC inside ends it too, and is the
# beginning of the next (`ESC \` is then a sequence by itself), so no class here crosses one: the
# caller never looks beyond it. Controls and stray bytes within a sequence do not end it.
_STRAY = rb"[\x00-\x17\x19\x1c-\x1f\x7f-\xff]*+"
_WHOLE = re.compile(
    rb"\x1b" + _STRAY + rb"(?:"
    rb"\[[^@-~\x18\x1a]*+[@-~\x18\x1a]"  # CSI
    rb"|\][^\x07\x18\x1a]*+[\x07\x18\x1a]"  # OSC, ended by BEL
    rb"|[PX^_][^\x18\x1a]*+[\x18\x1a]"  # DCS, SOS, PM, APC
    rb"|[NO][\x00-\xff]"  # SS2, SS3: with the character they are for
    rb"|[ -/][^0-~\x18\x1a]*+[0-~\x18\x1a]"  # ESC with intermediates: ESC ( B
    rb"|[0-MQ-WYZ\\`-~\x18\x1a]"  # any other
    rb")",
    re.DOTALL,
)
_DCS = re.compile(rb"\x1b" + _STRAY + rb"P[^\x18\x1a]*+\Z", re.DOTALL)
_ESC = 0x1B


def complete_prefix(data: bytes | memoryview, limit: int) -> int:
    """The length of the longest beginning of `data` that ends between sequences and characters.

    `data` begins there too. A sequence that is not finished after `limit` bytes is let through in
    parts: it would hold back output forever."""
    length = len(data)
    start = max(0, length - limit)
    while start and data[start - 1] == _ESC:  # never into the middle of a run of ESCs
        start -= 1
    window = bytes(data[start:])
    end = len(window)
    while True:
        while opened := _open_character(window, end):
            end -= opened
        begun = _unfinished(window, end)
        if begun is None:
            return start + end
        end = begun


def _unfinished(window: bytes, end: int) -> int | None:
    """Where the sequence that is open at `end` begins, or None if none is."""
    last = window.rfind(b"\x1b", 0, end)
    if last < 0:
        return None
    first = _run_start(window, last)
    even_runs = []
    # An even run of ESCs is a new sequence, or in a DCS so many quoted ESCs: see what was before.
    while (last - first) % 2 and (before := window.rfind(b"\x1b", 0, first)) >= 0:
        even_runs.append((first, last))
        last, first = before, _run_start(window, before)
    for later_first, later_last in reversed(even_runs):
        if not _DCS.match(window, last, later_first):
            first, last = later_first, later_last
    return None if _WHOLE.match(window, last, end) else first


def _run_start(window: bytes, last: int) -> int:
    while last and window[last - 1] == _ESC:
        last -= 1
    return last


def _open_character(window: bytes, end: int) -> int:
    """How many bytes before `end` are the beginning of a UTF-8 character."""
    for back in range(1, min(3, end) + 1):
        byte = window[end - back]
        if byte < 0x80 or byte > 0xF4:
            return 0
        if byte >= 0xC2:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < need else 0
        if byte >= 0xC0:
            return 0
    return 0
