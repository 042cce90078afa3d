"""Terminal output as it reads afterwards, for readers with little room (a model): a progress line
in its last state instead of all of them, and nothing of what full-screen programs drew.

`plain_text.py` gives the text as it was printed, every state of it; that is for matching.
"""

from __future__ import annotations

import re

from holdfast.model.record import Record
from holdfast.sdk.plain_text import plain_lines, without_sequences

_ALTERNATE = re.compile(r"\x1b\[\?(?:1049|1047|47)([hl])")
_DRAWING = re.compile(r"\x1b\[\d+;\d+[Hf]")  # the cursor is put somewhere: no lines of text
_ERASE = re.compile(r"\x1b\[([02]?)K")
_TO_END, _LINE = "\x01", "\x02"  # in place of the sequences that erase, while these are removed
_MOVES = re.compile(f"([\r\b{_TO_END}{_LINE}])")
_WIDEST = 1000  # columns that are blank after an erased line: no terminal is wider
_MARKS = {ord(_TO_END): None, ord(_LINE): None}


class Settled(Record):
    """A piece of output as it reads afterwards."""

    text: str
    full_screen: bool = False  # a full-screen program had the terminal: its drawing is left out


def settled(data: bytes) -> Settled:
    """All of it. What it cuts in two at its end is given as text."""
    text, full_screen = _without_full_screen(data.decode("utf-8", "replace"))
    text = _ERASE.sub(lambda found: _LINE if found[1] == "2" else _TO_END, text.translate(_MARKS))
    text = without_sequences(text).replace("\r\n", "\n")
    lines = [_overwritten(line) if _MOVES.search(line) else line for line in text.split("\n")]
    return Settled(plain_lines("\n".join(lines)), full_screen)


def _without_full_screen(text: str) -> tuple[str, bool]:
    """What was printed on the ordinary screen, and whether there was another one."""
    kept: list[str] = []
    ordinary, begin = True, 0
    for switch in _ALTERNATE.finditer(text):
        part = text[begin : switch.start()]
        began_inside = begin == 0 and switch[1] == "l" and _DRAWING.search(part) is not None
        if ordinary and not began_inside:
            kept.append(part)
        ordinary, begin = switch[1] == "l", switch.end()
    if ordinary:
        kept.append(text[begin:])
    return "".join(kept), begin > 0


def _overwritten(line: str) -> str:
    """A line as a terminal shows it at last: a carriage return and a backspace move the cursor, and
    what follows is written over what is there. Each character is written once, so this takes time
    in proportion to the line."""
    shown: list[str] = []
    at = 0
    for part in _MOVES.split(line):
        if part == "\r":
            at = 0
        elif part == "\b":
            at = max(0, at - 1)
        elif part == _TO_END:
            del shown[at:]
        elif part == _LINE:
            at = min(at, _WIDEST)
            shown[:] = " " * at
        else:
            shown[at : at + len(part)] = part
            at += len(part)
    return "".join(shown).rstrip()
