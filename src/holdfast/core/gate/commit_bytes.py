"""Where an input begins to commit something: what is before that is text and may be typed as it is.

A program takes what was typed at CR, LF or ^O. A paste in brackets of several lines is text only if
the line editor that reads it takes pastes, which only the shell itself can say: so it is a place to
stop, too. Nothing is remembered from one input to the next: a paste that ends in another input is
no paste here, and its newlines commit.

Deliberately absent: keys that a user of the shell bound to something that commits; what that means
is in docs/line-gate.md.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

PASTE_BEGINS, PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
INTERRUPTS = frozenset(b"\x03\x1a\x1c")  # ^C, ^Z and ^\: they take back what was typed before

_COMMIT = re.compile(rb"[\r\n\x0f]")
_STOP = re.compile(rb"[\r\n\x0f]|\x1b\[200~")


class Stop(StrEnum):
    """What an input comes to behind its first piece of text."""

    NOTHING = "nothing"
    COMMIT = "commit"
    PASTE = "paste"  # of several lines


class Cut(NamedTuple):
    """Up to `at` it is text; then comes `stop`."""

    at: int
    stop: Stop


def first_stop(data: bytes, start: int = 0) -> Cut:
    """From `start` on."""
    while (found := _STOP.search(data, start)) is not None:
        if found.group() != PASTE_BEGINS:
            return Cut(found.start(), Stop.COMMIT)
        end = data.find(PASTE_ENDS, found.end())
        if end < 0:
            start = found.end()  # its newlines commit
        elif _COMMIT.search(data, found.end(), end) is None:
            start = end + len(PASTE_ENDS)
        else:
            return Cut(found.start(), Stop.PASTE)
    return Cut(len(data), Stop.NOTHING)


def paste_end(data: bytes) -> int:
    """Behind the paste with which the data begins."""
    return data.index(PASTE_ENDS) + len(PASTE_ENDS)


def leaves_paste_open(data: bytes) -> bool:
    """Whether a paste begins in it and does not end in it."""
    return data.rfind(PASTE_BEGINS) > data.rfind(PASTE_ENDS)


def interrupts(data: bytes) -> bool:
    return not INTERRUPTS.isdisjoint(data)
