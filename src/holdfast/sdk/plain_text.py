"""The text in a stream of terminal output: what is left when escape sequences are taken out.

It is the text as it was *printed*, which for programs that move the cursor about is not what the
screen shows; whoever needs that asks the host for the screen.
"""

from __future__ import annotations

import codecs
import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement, modes
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"  # OSC, DCS and other strings, with their end
    r"|\x1b[ -/]*[0-OQ-WYZ\\`-~]",  # two- and three-character ones
    re.DOTALL,
)
# A sequence begun at the very end of what came so far.
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07]*|[ -/]*)\Z")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNFINISHED_MAX_CHARS = 4096  # a longer "sequence" has no end: it is passed on as text


class PlainText:
    """Feed it bytes as they come; it gives text. A lone carriage return begins a line anew, so it
    is given as a newline: each state of a progress line can be matched by `^` and `$`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes) -> str:
        text = _SEQUENCE.sub("", self._held + self._decoder.decode(data))
        begun = _UNFINISHED.search(text)
        if begun and len(text) - begun.start() <= _UNFINISHED_MAX_CHARS:
            text, self._held = text[: begun.start()], text[begun.start() :]
        else:
            self._held = ""
        if text.endswith("\r"):
            text, self._held = text[:-1], "\r" + self._held
        return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))

    def rest(self) -> str:
        """What was held back, when nothing more comes: a line that was begun anew and left."""
        text, self._held = self._held, ""
        return "\n" if text.startswith("\r") else ""


def plain(data: bytes) -> str:
    """The text in all of it."""
    text = PlainText()
    return text.feed(data) + text.rest()
