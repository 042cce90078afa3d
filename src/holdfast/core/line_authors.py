"""Whose the lines are that a shell reads: what was typed and is not known to be read yet.

A shell says when it asks for a line and when it begins one, not where the line came from; much of
it may have been typed while another command ran, and that command may have read it instead. So what
is typed stands here, line by line, with whoever typed it. The terminal says how many bytes nobody
has read: these are the newest. What was read before a prompt was a program's; what was read between
a prompt and the beginning of a command is that command.

Where this cannot be told for sure it errs to one side: an actor too many is named, and a line that
may have been typed blind counts as blind. That is so when lines were read between two looks, when a
terminal edited a line before anybody read it, and beyond TYPED_AHEAD_LINES, where the oldest lines
are counted as one. Once it cannot: when a program read one actor's line just before its prompt, the
shell another's just behind it, and all of it is heard of together, the first is named alone.

Deliberately absent: the text. Nothing here knows more of a line than its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.model.limits import TYPED_AHEAD_LINES

_PIECES = re.compile(rb"[^\r\n]*[\r\n]|[^\r\n]+")
# What a terminal in line mode takes for itself, or takes away from the line.
_EDITS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass
class TypedLine:
    """One line, or what of it was typed so far."""

    authors: list[str] = field(default_factory=list)  # without the host; the latest last
    blind: bool = False  # some of it was
    entered: bool = False  # with its Enter; of blind keys: perhaps
    least: int = 0  # bytes that the terminal counts, at least,
    most: int = 0  # and at most
    hidden: bool = False  # in line mode a terminal counts no byte before the Enter
    edited: bool = False  # and may have taken some away

    def by(self, actor: str) -> None:
        """This actor had a part in it, the latest."""
        if actor and self.authors[-1:] != [actor]:
            if actor in self.authors:
                self.authors.remove(actor)
            self.authors.append(actor)

    @property
    def counted(self) -> int:
        """So many of its bytes are surely counted while nobody reads it."""
        return 0 if self.edited or (self.hidden and not self.entered) else self.least


def merged(lines: Iterable[TypedLine]) -> TypedLine:
    """All of them as one."""
    whole = TypedLine()
    for line in lines:
        for author in line.authors:
            whole.by(author)
        whole.blind |= line.blind
        whole.entered |= line.entered
        whole.least += line.counted
        whole.most += line.most
    return whole


class TypedLines:
    """What was typed into one session and may not be read yet."""

    def __init__(self) -> None:
        self._lines: list[TypedLine] = []
        # Read when the last prompt was seen: by a program before it, or by the shell just then.
        self.past: TypedLine | None = None
        # Counted for one command, and perhaps of the next: a shell may read more than a line.
        self._spare: TypedLine | None = None

    @property
    def waits(self) -> bool:
        """Whether somebody's text may stand unread, or at the prompt."""
        return any(line.authors for line in self._lines)

    @property
    def is_ahead(self) -> bool:
        """Whether a whole line waits to be read."""
        return any(line.entered for line in self._lines)

    @property
    def blind(self) -> bool:
        """Whether some of what may stand at the prompt was typed blind."""
        return any(line.blind for line in self._lines) or bool(self.past and self.past.blind)

    @property
    def open_bytes(self) -> int:
        """Typed by actors, of the line that has no Enter yet."""
        return 0 if not self._lines or self._lines[-1].entered else self._lines[-1].least

    def authors(self) -> tuple[str, ...]:
        """Who typed it, the latest last."""
        return tuple(merged(self._lines).authors)

    def next_authors(self) -> Sequence[str]:
        """Whose the line is that the shell reads next, as far as it is typed, the latest last."""
        for line in (self.past, *self._lines):
            if line is not None and line.authors:
                return line.authors
        return ()

    # -- typing ---------------------------------------------------------------------------------

    def typed(self, actor: str, data: bytes, *, blind: bool = False, hidden: bool = False) -> None:
        """`actor`: "" is the host. `hidden`: the terminal is in line mode."""
        pieces = _PIECES.findall(data)
        if (more := len(pieces) - TYPED_AHEAD_LINES) > 0:
            pieces[:more] = [b"".join(pieces[:more])]  # they would be counted as one anyway
        for piece in pieces:
            line = self._open()
            line.by(actor)
            line.blind |= blind
            line.hidden |= hidden
            line.most += len(piece)
            line.least += len(piece) if actor else 0  # an answer may not get so far
            line.edited |= hidden and _EDITS.search(piece) is not None
            line.entered = piece.endswith((b"\r", b"\n"))

    def typed_unseen(self, actor: str, size: int) -> None:
        """Blind keys of which only the number is known: a line of its own, perhaps whole."""
        line = TypedLine([actor] if actor else [], blind=True, entered=True, most=size)
        self._lines.append(line)
        self._bound()

    def _open(self) -> TypedLine:
        if not self._lines or self._lines[-1].entered:
            self._lines.append(TypedLine())
            self._bound()
        return self._lines[-1]

    def _bound(self) -> None:
        if len(self._lines) > TYPED_AHEAD_LINES:
            self._lines[:2] = [merged(self._lines[:2])]

    def interrupted(self) -> None:
        """A key that makes the terminal forget what nobody has read."""
        if self._lines:
            self.past = merged((*filter(None, (self.past,)), *self._lines))
            self._lines.clear()

    # -- reading --------------------------------------------------------------------------------

    def program_read(self, unread: int | None) -> None:
        """A command runs, and so many bytes are unread: what was read, it read."""
        self._take(self._gone(unread)[0])

    def prompted(self, unread: int | None, begun_since: int = 0) -> None:
        """The shell asked for a line. `begun_since`: so many commands before `unread` was asked."""
        gone = self._take(self._gone(unread)[0] - begun_since)
        self.past = merged(gone) if gone else None

    def began(
        self, unread: int | None, begun_since: int = 0, *, prompted_since: bool = False
    ) -> TypedLine:
        """The shell has begun a command: the line, or lines, that it is made of. One of nobody when
        none is known. `prompted_since`: it has asked for another, which it may have read already;
        so the last of several that were read is left for that."""
        surely, perhaps = (gone - begun_since for gone in self._gone(unread))
        if prompted_since and surely + (self.past is not None) > 1:
            surely -= 1
        if surely < 1 and self.past is None:
            surely = 1  # something was read, whatever the terminal says
        blind = any(line.blind for line in list(self._lines)[: max(perhaps, 0)] if line.entered)
        taken = [*filter(None, (self.past,)), *self._take(surely)]
        if taken:
            self._spare = merged(taken[1:]) if taken[1:] else None
        elif self._spare is not None:
            taken = [self._spare]
        line = merged(taken)
        line.blind |= blind
        self.past = None
        return line

    def settled(self, unread: int | None) -> None:
        """What was read before the prompt was no line of the shell's: else it would have begun. So
        is what was edited on its way, of which the terminal's count says nothing, once nothing is
        unread: in line mode only a program before the prompt reads whole lines."""
        self.past = None
        if not unread:
            self._lines = [each for each in self._lines if not (each.entered and each.edited)]

    def clear(self) -> None:
        """Nothing stands at the prompt."""
        self._lines.clear()
        self.past = None

    def submitted(self) -> None:
        """As far as is known, the first whole line became a command."""
        whole = [index for index, line in enumerate(self._lines) if line.entered]
        self._take(whole[0] + 1 if whole else len(self._lines))
        self.past = None

    def left(self, unread: int | None) -> None:
        """Another daemon saw the last prompt, and nothing is known of it. What may stand there is
        the text without an Enter; what is whole and was read, began or came to nothing."""
        text = self._lines.pop() if self._lines and not self._lines[-1].entered else None
        self.prompted(unread)
        if text is not None:
            self._lines.append(text)

    def _take(self, count: int) -> list[TypedLine]:
        taken = self._lines[:count]
        del self._lines[:count]
        return taken

    def _gone(self, unread: int | None) -> tuple[int, int]:
        """How many lines are read whole, at least and at most. With more unread than was typed, by
        what is known here: none."""
        count = len(self._lines)
        if unread is None:  # the terminal is gone
            return count, count
        fits = [count] if unread == 0 else []
        least = most = 0
        for index in range(count - 1, -1, -1):
            line = self._lines[index]
            most += line.most
            if least + min(line.counted, 1) <= unread <= most:
                fits.append(index)
            least += line.counted
        return (min(fits), max(fits)) if fits else (0, 0)
