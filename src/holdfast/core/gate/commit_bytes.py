"""Where an input begins to commit something: what precedes that is text and may be typed as it is.

Only keys that are known to change nothing but the text at a prompt are free: printable characters,
moving, deleting, walking through the history, a terminal's own answers, and the keys by which a
terminal sends signals or stops its output. CR, LF and every other key commit, because the shell's
bindings decide which of them runs something. A key of several bytes is one commit, with the byte
that a prefix takes. Where free keys may be bound to something else (`rebound`), they commit too,
each run of them at once.

A bracketed paste of several lines is text only if the line editor that reads it accepts pastes,
which only the shell itself can say, so it is a place to stop, too. Nothing is remembered from one
input to the next: a paste that ends in another input is not treated as one, and its newlines
commit.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

PASTE_BEGINS, PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
INTERRUPTS = frozenset(b"\x03\x1a\x1c")  # ^C, ^Z and ^\: they take back what was typed before
ENTERS = frozenset((b"\r", b"\n", b"\x0f"))  # they enter a line, whatever the bindings

# Characters, but no C1 controls: some shells take these for keys.
_TEXT = (
    rb"[ -~]++|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]"
    rb"|(?:\xe0[\xa0-\xbf]|\xed[\x80-\x9f]|[\xe1-\xec\xee\xef][\x80-\xbf])[\x80-\xbf]"
    rb"|(?:\xf0[\x90-\xbf]|\xf4[\x80-\x8f]|[\xf1-\xf3][\x80-\xbf])[\x80-\xbf]{2}"
)
# ^A ^B ^E ^F ^G ^H ^K ^L ^N ^P ^R ^U ^W ^Y and Backspace
_EDITING = rb"[\x01\x02\x05-\x08\x0b\x0c\x0e\x10\x12\x15\x17\x19\x7f]"
_TO_TERMINAL = rb"[\x03\x11\x13\x1a\x1c]"  # ^C ^Q ^S ^Z ^\
# Cursor keys, also with shift or control, Home, End, Delete
_MOVING = rb"\x1b(?:\[(?:1;[25])?[A-DFH]|O[A-DFH]|\[[1347-8](?:;[25])?~)"
# The end of a paste without a beginning; the prefix of a line that its shell must not expand; and
# the first half of a paste's mark, which a question to the shell would break in two.
_OURS = rb"\x1b\[(?:201|5097)~|\x1b\[20[01]?\Z"
# A terminal's answers, and its reports of focus and mouse
_ANSWERS = (
    rb"\x1b(?:\[[IO]|\[\d+;\d+R|\[0n|\[[?>][\d;]*\$?[cuyR]|\[<\d+;\d+;\d+[Mm]"
    rb"|\]\d+;[ -~]*(?:\x07|\x1b\\)|P[01>][ -~]*\x1b\\)"
)
_WHATEVER_IS_BOUND = (_TO_TERMINAL, _OURS, _ANSWERS)
_FREE = re.compile(rb"(?:" + rb"|".join((_TEXT, _EDITING, _MOVING, *_WHATEVER_IS_BOUND)) + rb")*+")
_FREE_IF_REBOUND = re.compile(rb"(?:" + rb"|".join(_WHATEVER_IS_BOUND) + rb")*+")
# One key that is not free. ^V and ^X take the next byte with them.
_KEY = re.compile(rb"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|O[ -~]|[^\x1b\[O])?|[\x16\x18].?|.", re.DOTALL)
_HISTORY = re.compile(
    rb"[\x0e\x10\x12\x13\x19]|\x1b(?:\[(?:1;\d)?[AB]|O[AB]|[^\[O]|\[[56]~|$)|[\x18\x1f]"
)
_SUGGESTION = re.compile(rb"[\x05\x06]|\x1b(?:\[(?:1;\d)?[CF]|O[CF]|\[[48])")


class Stop(StrEnum):
    """What follows the first piece of text in an input."""

    NOTHING = "nothing"
    COMMIT = "commit"
    PASTE = "paste"  # of several lines


class Cut(NamedTuple):
    """Up to `at` it is text; then comes `stop`."""

    at: int
    stop: Stop


def first_stop(data: bytes, start: int = 0, *, rebound: bool = False) -> Cut:
    """From `start` on."""
    free = _FREE_IF_REBOUND if rebound else _FREE
    while True:
        found = free.match(data, start)
        at = found.end() if found else start
        if at == len(data):
            return Cut(at, Stop.NOTHING)
        if not data.startswith(PASTE_BEGINS, at):
            return Cut(at, Stop.COMMIT)
        start = at + len(PASTE_BEGINS)
        end = data.find(PASTE_ENDS, start)
        if end >= 0:  # else its newlines commit
            if rebound or _FREE.fullmatch(data, start, end) is None:
                return Cut(at, Stop.PASTE)
            start = end + len(PASTE_ENDS)


def commit_length(data: bytes, *, rebound: bool = False) -> int:
    """Of the commit with which the data begins: one key, or all text up to the next."""
    if rebound and (found := _FREE.match(data)) is not None and found.end():
        return found.end()
    key = _KEY.match(data)
    assert key is not None, "there is a key"
    return key.end()


def walks_history(data: bytes, *, suggests: bool = False) -> bool:
    """Whether it may bring back to the prompt what somebody entered before. `suggests`: the shell
    shows such text behind the cursor, and takes it where the cursor moves into it."""
    return _HISTORY.search(data) is not None or (suggests and _SUGGESTION.search(data) is not None)


def paste_end(data: bytes) -> int:
    """Behind the paste with which the data begins."""
    return data.index(PASTE_ENDS) + len(PASTE_ENDS)


def leaves_paste_open(data: bytes) -> bool:
    """Whether a paste begins in it and does not end in it."""
    return data.rfind(PASTE_BEGINS) > data.rfind(PASTE_ENDS)


def interrupts(data: bytes) -> bool:
    return not INTERRUPTS.isdisjoint(data)
