"""A command's output as a stream: what lies between its begin mark and its end mark.

The marks travel in the output itself, so a command can print a false one. The first begin mark
after the command line was typed is the true one (nothing of the command runs before it); of the
end marks the *last* one before the shell reported the end out of band is true. So output is passed
on up to anything that looks like an end mark, which is held back until more is known.
"""

from __future__ import annotations

MARK = b"\x1b]133;"
_HELD_MAX = 64 << 10  # a "mark" followed by this much output was not the end


def begin_mark(seq: int) -> bytes:
    return b"\x1b]133;C;hold=%d" % seq


def end_mark(seq: int) -> bytes:
    return b"\x1b]133;D;hold=%d" % seq


class ExecOutput:
    """Feed it the stream from where the command line was typed; it gives the command's own."""

    def __init__(self, seq: int) -> None:
        self._begin = begin_mark(seq)
        self._end = end_mark(seq)
        self._begun = False
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What of the command's output is certain by now."""
        self._held += data
        if not self._begun and not self._find_begin():
            return b""
        at = self._held.find(self._end)
        if at < 0:
            at = _partial_suffix(self._held, self._end)
        elif len(self._held) - at > _HELD_MAX:
            at = len(self._held) - _HELD_MAX
        passed, self._held = self._held[:at], self._held[at:]
        return passed

    def finish(self, data: bytes) -> bytes:
        """The rest, when the shell has reported the end and all output before it was fed."""
        passed = self.feed(data)
        at = self._held.rfind(self._end)
        return passed + (self._held[:at] if at >= 0 else b"")

    def _find_begin(self) -> bool:
        at = self._held.find(self._begin)
        end = _mark_end(self._held, at) if at >= 0 else -1
        if end < 0:
            return False
        self._held = self._held[end:]
        self._begun = True
        return True


def _mark_end(data: bytes, at: int) -> int:
    """The position after the mark that begins at `at`, or -1 when its end is not there yet."""
    ends = [
        found + len(terminator)
        for terminator in (b"\x07", b"\x1b\\")
        if (found := data.find(terminator, at + 2)) >= 0
    ]
    return min(ends, default=-1)


def _partial_suffix(data: bytes, mark: bytes) -> int:
    """Where a beginning of `mark` at the very end of `data` starts; its length when there is none."""
    for size in range(min(len(mark) - 1, len(data)), 0, -1):
        if data.endswith(mark[:size]):
            return len(data) - size
    return len(data)
