"""A command's output as a stream: what lies between its begin mark and its end mark.

The shell integration prints FinalTerm marks (OSC 133) with a parameter of ours, `hold=<seq>`:
`A` before the prompt, `B` after it, `C` before a command's output, `D;<status>` after it. They only
say *where*; *that* a command began or ended, and how, is said by the authenticated reports
(`adapters.shell`). No conclusion is drawn from a mark alone: marks travel in the output itself, so
a command can print a false one. The first begin mark after the command line was typed is the true
one: nothing of the command runs before it. Of the end marks the *last* one there when the shell has
reported the end out of band counts. So output is passed on up to anything that looks like an end
mark, and that is held back until more is known. The shell prints the mark before it reports, but it
may arrive a moment later: terminal and report channel are two ways.

A command that ends its shell, where that was started in another one, has no end mark of its own.
What follows then is the end mark of the command that was that shell: one with a lower number.
"""

from __future__ import annotations

import re

BEGIN, END = b"C", b"D"
MARK_MAX_BYTES = 64  # a mark of ours is shorter
_HELD_MAX = 64 << 10  # a "mark" followed by this much output, and no report, was not the end
# What fish writes after its begin mark, and any shell before a complaint: leave bracketed paste,
# set the title, reset the colours. It is not the command's. The second matches its beginnings.
_PREAMBLE = re.compile(
    rb"(?:\x1b\[\?2004l|\x1b\][012];[^\x07\x1b]*\x07|\x1b\[30m\x1b\(B\x1b\[m|\r(?!\n))*"
)
_PREAMBLE_BEGUN = re.compile(
    rb"(?:\x1b(?:\[(?:\?(?:2(?:0(?:0(?:4)?)?)?)?|3(?:0(?:m(?:\x1b(?:\((?:B(?:\x1b(?:\[)?)?)?)?)?)?)?)?"
    rb"|\](?:[012](?:;[^\x07\x1b]{0,4096})?)?)?|\r)?\Z"
)


class CommandOutput:
    """Feed it the stream from where the command line was typed; it gives the command's own."""

    def __init__(
        self, seq: int, *, parsed: bool = True, preamble: bool = False, at: int = 0
    ) -> None:
        """`at`: the stream's offset at which the feeding begins."""
        # A line the shell refused to parse has no begin mark: its complaint follows the echo.
        self._begin = mark(BEGIN, seq) if parsed else re.compile(rb"\n")
        self._seq = seq
        self._begun = False
        self._preamble = preamble or not parsed  # still to be taken off
        self._reported = False
        self._held = b""
        self.at = at  # where in the stream what is held begins: what was passed on ends there
        self.complete = False  # the end is reported and its mark was found

    def feed(self, data: bytes) -> bytes:
        """What of the command's output is certain by now."""
        self._held += data
        if not self._begun:
            begin = self._begin.search(self._held)
            if begin is None:
                return b""
            self._begun = True
            self._drop(begin.end())
        return self._pass_on()

    def lost(self, to: int) -> bytes:
        """Output up to this offset rolled off unseen; if the begin mark was in it, this is the
        middle. What was held back until more was known is passed on: it ends before the hole."""
        passed = self._held if self._begun else b""
        self._begun, self._held, self.at = True, b"", to
        return passed

    def end_reported(self) -> bytes:
        """The shell said that the command has ended; what that makes certain."""
        self._reported = True
        return self._pass_on() if self._begun else b""

    def end(self, behind: bytes) -> bytes:
        """The same, when all that was printed until then is fed: `behind` is what was printed
        since. It may begin with the end mark, and is otherwise not the command's."""
        if self._begun and not self._ends(self._held):
            marks = self._ends(self._held + behind)
            if not marks:
                return b""
            self._held += behind[: marks[0].end() - len(self._held)]
        return self.end_reported()

    def _ends(self, data: bytes) -> list[re.Match[bytes]]:
        """Its end marks; if there are none, those of the commands that its shell was."""
        marks = [each for each in _ANY_END.finditer(data) if int(each[1]) <= self._seq]
        return [each for each in marks if int(each[1]) == self._seq] or marks

    def _drop(self, size: int) -> None:
        self._held = self._held[size:]
        self.at += size

    def _take_off_preamble(self) -> None:
        found = _PREAMBLE.match(self._held)
        assert found is not None  # it may be empty
        self._drop(found.end())
        self._preamble = not self._reported and bool(_PREAMBLE_BEGUN.match(self._held))

    def _pass_on(self) -> bytes:
        if self._preamble:
            self._take_off_preamble()
            if self._preamble:
                return b""
        found = self._ends(self._held)
        if found and self._reported:
            self.complete = True
            cut = found[-1].start()
        elif found and len(self._held) - found[0].start() <= _HELD_MAX:
            cut = found[0].start()
        else:
            cut = may_begin(self._held, END)
        passed = self._held[:cut]
        self._drop(cut)
        return passed


def mark(kind: bytes, seq: int) -> re.Pattern[bytes]:
    """Finds the marks of one kind of one command."""
    return _marks(kind, b"%d" % seq)


def _marks(kind: bytes, number: bytes) -> re.Pattern[bytes]:
    """BEL or ST ends an OSC; no control character is inside one of ours, so a torn or unterminated
    mark never swallows what follows it."""
    return re.compile(rb"\x1b\]133;%s;[^\x00-\x1f\x7f]*?hold=%s(?:\x07|\x1b\\)" % (kind, number))


_ANY_END = _marks(END, rb"(\d{1,18})")


def may_begin(data: bytes, kind: bytes) -> int:
    """Where a mark of this kind may be beginning at the very end of `data`; its length when none
    is."""
    at = data.rfind(b"\x1b", max(0, len(data) - MARK_MAX_BYTES))
    if at < 0:
        return len(data)
    begun, whole = data[at:], b"\x1b]133;" + kind + b";"
    return at if begun.startswith(whole[: len(begun)]) else len(data)
