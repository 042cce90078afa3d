"""Terminal queries in the output. Both ends of the protocol must find them, because exactly one
terminal may answer.

A program asks for colours, modes and sizes by escape sequences in its output, and the terminal
types the answer into the program. With several terminals attached every one would answer, so all
but one (see `Answering`) drop the queries from what they show.
"""

from __future__ import annotations

import re

# What terminals answer.
_QUERY = re.compile(
    rb"\x1b(?:"
    rb"\[(?:"
    rb"[>=]?+0?+c"  # DA1, DA2, DA3
    rb"|[?\d][\d;]*+(?:n|\$p)"  # DSR and CPR, DECRQM
    rb"|>0?+q|\?u|\?4m|[01]?+x|\?[\d;]++S"  # XTVERSION, kitty keys, XTQMODKEYS, DECREQTPARM, pixels
    rb"|1[1345689](?:;\d)?+t|2[01]t"  # reports of the window
    rb")"
    rb"|\](?:4(?:;\d++;\?)++|[15]\d?+(?:;\?)++|52;[^;\x07\x1b]*+;\?)(?:\x07|\x1b\\)"  # colours
    rb"|P[+$]q[^\x1b]*+\x1b\\"  # XTGETTCAP, DECRQSS
    rb"|_G[^;\x1b]*?a=q[^\x1b]*+\x1b\\"  # kitty graphics: can you?
    rb"|Z"  # DECID
    rb")",
    re.DOTALL,
)
# Matching that at each of the thousands of ESCs in coloured text takes longer than drawing it. So
# numbers and colours are dropped first, which is cheap, and this pattern tries the remaining ESCs.
_NUMBERS, _COLOUR = b"0123456789;", b"\x1b[m"
_MAYBE_QUERY = re.compile(rb"\x1b(?:\[(?:[>=]?+c|\??+(?:n|\$p)|>q|\?[umS]|[xt])|[\]P_Z])")


def find_queries(data: bytes | memoryview) -> bool:
    """Whether a terminal may answer something in it."""
    bare = bytes(data).translate(None, _NUMBERS).replace(_COLOUR, b"")
    return _MAYBE_QUERY.search(bare) is not None and _QUERY.search(data) is not None


def strip_queries(data: bytes) -> bytes:
    """`data` without the queries, for a terminal that must not answer."""
    return _QUERY.sub(b"", data) if find_queries(data) else data
