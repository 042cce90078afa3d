"""Switching to another session without detaching: which one is next, and a list to choose from.

The list is drawn over the lower rows of the session's screen and takes the keys while it is open.
Deliberately knows nothing of connections: it is given the sessions and says which one was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.text.sanitize import sanitize
from holdfast.model.info import SessionInfo
from holdfast.model.size import Size
from holdfast.model.state import state_word

_LABELS = "123456789abcdefghilmorstuvxyz"  # j, k, n, p move; q and w close
_TITLE = "go to: the key of a session, or arrows and Enter; q or Escape stays here"
_UP = (b"\x1b[A", b"\x1bOA", b"k", b"p")
_DOWN = (b"\x1b[B", b"\x1bOB", b"j", b"n")
_CLOSES = (b"\x1b", b"q", b"w", b"\x03")


def beside(sessions: Sequence[SessionInfo], here: str, step: int) -> SessionInfo | None:
    """The next session (1), or the one before (-1), in the order in which they were started; None
    when there is no other."""
    ordered = _ordered(sessions)
    places = [place for place, info in enumerate(ordered) if info.id == here]
    if not ordered or (places and len(ordered) == 1):
        return None
    return ordered[(places[0] + step) % len(ordered)] if places else ordered[0]


def _ordered(sessions: Sequence[SessionInfo]) -> list[SessionInfo]:
    live = [info for info in sessions if info.ending is None]
    return sorted(live, key=lambda info: (info.created_at, info.id))


class SessionChooser:
    """An open list."""

    def __init__(self, sessions: Sequence[SessionInfo], here: str) -> None:
        self._sessions = _ordered(sessions)[: len(_LABELS)]
        self._left_out = len(_ordered(sessions)) - len(self._sessions)
        self._here = here
        ids = [str(info.id) for info in self._sessions]
        self._at = ids.index(here) if here in ids else 0

    def take(self, data: bytes) -> tuple[bool, str]:
        """One read of the keyboard. Whether the list stays open, and the id of the session that was
        chosen, if one was."""
        if data in _UP or data in _DOWN:
            step = -1 if data in _UP else 1
            self._at = (self._at + step) % max(1, len(self._sessions))
            return True, ""
        if data in _CLOSES or not self._sessions:
            return False, ""
        if data in (b"\r", b"\n"):
            return False, self._sessions[self._at].id
        label = data.decode("ascii", "replace")
        if len(label) == 1 and label in _LABELS[: len(self._sessions)]:
            return False, self._sessions[_LABELS.index(label)].id
        return True, ""

    def drawn(self, size: Size | None) -> bytes:
        """Over the lower rows, with the cursor put back."""
        if size is None:
            return b""
        room = max(1, size.rows - 2)
        first = max(0, min(self._at - room // 2, len(self._sessions) - room))
        shown = list(enumerate(self._sessions))[first : first + room]
        wide = max((len(info.name) for info in self._sessions), default=0)
        lines = [f" {_TITLE} "]
        for place, info in shown:
            here = "*" if info.id == self._here else " "
            lines.append(f" {_LABELS[place]} {here} {info.name.ljust(wide)}  {_doing(info)} ")
        if self._left_out:
            lines.append(f" and {self._left_out} more: `hold ls` lists them ")
        top, drawn = size.rows - len(lines) + 1, []
        for row, line in enumerate(lines):
            chosen = 0 < row <= len(shown) and shown[row - 1][0] == self._at
            text = line[: size.cols].ljust(size.cols)
            look = b"\x1b[0;1m" if chosen else b"\x1b[0;7m"
            drawn.append(b"\x1b[%d;1H" % max(1, top + row) + look + text.encode())
        return b"\x1b7\x1b[?6l" + b"".join(drawn) + b"\x1b[0m\x1b8"


def _doing(info: SessionInfo) -> str:
    """What it does or waits for, in a few words of plain ASCII: a column is a character here."""
    what = state_word(info.state, full_screen=info.full_screen)
    last = info.last_command
    if info.waiting_line:
        what += f": {sanitize(info.waiting_line, 40)}"
    elif last is not None and last.status is None:
        what += f": {sanitize(last.text, 40)}"
    held = f"  turn: {info.holder}" if info.holder else ""
    return (what + held).encode("ascii", "replace").decode()
