"""The text in a stream of terminal output: what is left when escape sequences are taken out.

It is the text as it was *printed*, which for programs that move the cursor about is not what the
screen shows; whoever needs that asks the host for the screen.
"""

from __future__ import annotations

import codecs
import re

_SHORT = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-OQ-WYZ\\`-~]"  # colours, movement, modes
_STRING = r"\x1b[\]PX^_]"  # begins an OSC, a DCS or another string
_SEQUENCE = re.compile(_STRING + r".*?(?:\x07|\x1b\\)|" + _SHORT, re.DOTALL)
_SHORT_SEQUENCE, _STRING_BEGINS = re.compile(_SHORT), re.compile(_STRING)
# A sequence begun at the very end of what came so far.
_CUT = r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*)\Z"
_UNFINISHED, _SHORT_UNFINISHED = re.compile(rf"{_CUT}|{_STRING}[^\x07]*\Z"), re.compile(_CUT)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # C0 but tab and newline; DEL; C1
_UNFINISHED_MAX_CHARS = 4096  # a longer "sequence" has no end: it is passed on as text


class PlainText:
    """Feed it bytes as they come; it gives text. A lone carriage return restarts the line, so it
    is given as a newline: each state of a progress line can be matched by `^` and `$`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        text = without_sequences(self._held + self._decoder.decode(data))
        begun = _UNFINISHED.search(text)
        if begun and len(text) - begun.start() <= _UNFINISHED_MAX_CHARS:
            text, self._held = text[: begun.start()], text[begun.start() :]
        else:
            self._held = ""
        if text.endswith("\r"):
            text, self._held = text[:-1], "\r" + self._held
        return plain_lines(text)

    def rest(self) -> str:
        """What was held back, when nothing more comes: a line that was begun again and left."""
        text, self._held = self._held, ""
        return "\n" if text.startswith("\r") else ""


def plain(data: bytes) -> str:
    """The text in all of it."""
    text = PlainText()
    return text.feed(data) + text.rest()


def page(data: bytes, *, last: bool) -> tuple[str, int]:
    """The text in a piece of a longer stream, and how many of its bytes that is. What its end cuts
    in two (a character, a sequence, the end of a line) is left for the piece that begins there.
    `last`: no more has been printed yet. Of any other piece something is always taken, and what
    seems to be one sequence from end to end is passed on as text."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    # Byte by byte: what sequences and lines are made of is never part of another character.
    each = data[: len(data) - len(decoder.getstate()[0])].decode("latin-1")
    end = _cut(each, last=last)
    text = without_sequences(data[:end].decode("utf-8", "replace"))
    if text.endswith("\r"):
        line = without_sequences(each[:end], filler=" ").rfind("\r")
        if last or line > 0:
            text, end = text[:-1], line
    return plain_lines(text), end


def _cut(text: str, *, last: bool) -> int:
    """Where a sequence begins that the end of it cuts in two, or the end."""
    short = _SHORT_UNFINISHED.search(text)
    for start in (_unended(text), short.start() if short else len(text)):
        size = len(text) - start
        if size and (size <= _UNFINISHED_MAX_CHARS if last else start > 0):
            return start
    return len(text)


def _unended(text: str) -> int:
    """Where a string begins of which there is no end, or the end of the text."""
    last_end = max(text.rfind("\x07"), text.rfind("\x1b\\"))
    begins = _STRING_BEGINS.search(text, last_end + 1)
    return begins.start() if begins else len(text)


def without_sequences(text: str, filler: str = "") -> str:
    """In one pass: an end of each string is looked for only where there is one. `filler`: for each
    of their characters, so that the rest stays where it is."""

    def blank(found: re.Match[str]) -> str:
        return filler * len(found[0])

    unended = _unended(text)
    return _SEQUENCE.sub(blank, text[:unended]) + _SHORT_SEQUENCE.sub(blank, text[unended:])


def plain_lines(text: str) -> str:
    """With newlines only, and no control characters."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
