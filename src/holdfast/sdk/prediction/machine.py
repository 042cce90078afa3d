"""What a key will show, guessed before its echo is here: for operators far away.

A pure machine: keys as they are typed, the host's word that it has them, and the line of the cursor
after each piece of output come in, with the time; what to draw over that line comes out. It draws
nothing, knows no escape sequence of output, and has no clock. `web/src/hold/prediction.ts` is the
same machine for the browser; docs/prediction-vectors.json is read by the tests of both.

How it guesses. Printable narrow characters, backspace and the left and right arrows change one line
in a known way. So for each key typed and not seen echoed there is a line that is expected, and the
line that really comes is compared with these, left of the cursor. Every other key ends what can be
foreseen: nothing typed after it is predicted until its answer is here.

What is shown. Nothing typed since the last such key, until a character typed after it has come
back as it was typed: that is how echo shows, and a password is never drawn. Trust so gained ends
with the next such key, with output that was not foreseen, and with a character that does not come
back. Characters that programs show in place of others earn none, nor does what was typed ahead.
While the host says that a secret is asked for, or the turn is blind, nothing is even remembered.
"""

from __future__ import annotations

import re

from holdfast.model.record import Record

GRACE_S = 0.25  # between the host's word that it has a key and its echo; then it is not echoed
PASTE_BYTES = 64  # more than this at once was not typed
KEYS_MAX = 256  # in flight; a typist that far ahead does not look at the screen

BACK, LEFT, RIGHT = "\x7f", "\x1b[D", "\x1b[C"
OTHER = ""  # whatever else: its effect cannot be foreseen
_GAP = "  "
NO_GUESS = "\0"  # in a line: a cell that holds anything but one narrow character

# One cell wide in every terminal: Latin, Greek, Cyrillic. What is not here is not predicted.
_NARROW = re.compile(r"[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u0384-\u0482\u048a-\u052f]")
_ARROW = re.compile(r"\x1b[\[O]([CD])")
# Shown by programs in place of what is typed: that they came back proves nothing.
_MASKS = frozenset(" *.#xX\u00b7")


class PredictedLine(Record):
    """The row of the cursor as the session has drawn it: one character per column, blanks as
    spaces. `plain` says that a guess may be drawn there at all: the primary screen, a visible
    cursor, no modes that bend printing, the output not in the middle of a sequence."""

    row: int
    col: int
    text: str
    plain: bool = True


class Cell(Record):
    col: int
    char: str


class Overlay(Record):
    """To be drawn over the row of the cursor, which really is at `col`: cells, and where the
    cursor is to be seen."""

    row: int
    col: int
    cells: tuple[Cell, ...]
    cursor: int


class _Key:
    """One key in flight."""

    __slots__ = ("ahead", "at", "key", "offset", "seq")

    def __init__(self, seq: int, key: str, ahead: bool) -> None:
        self.seq, self.key = seq, key
        self.ahead = ahead  # typed while it was not known what it would be typed into
        self.at: float | None = None  # when the host said that it has it,
        self.offset = 0  # and how much had been printed then


_State = tuple[int, str]  # column of the cursor, text of the row


class Prediction:
    """One attachment's keys in flight and the line they are typed into."""

    def __init__(self) -> None:
        self._keys: list[_Key] = []
        self._states: list[_State] = []  # after each of the first keys, as far as can be foreseen
        self._base = PredictedLine(0, 0, "", False)  # as it was last seen
        self._floor = 0  # the leftmost column typed into, as far as is known
        self._offset = 0  # of the next byte of output
        self._trusted = False
        self._withheld = False
        self._inserts = True  # a character in the middle moves the rest on

    # -- what happens ---------------------------------------------------------------------------

    @property
    def looks(self) -> bool:
        """Whether the line is of interest after the next output."""
        return self._trusted or bool(self._keys)

    def typed(self, seq: int, data: bytes, line: PredictedLine) -> None:
        """These bytes are on their way as input `seq`; `line` is what the session shows now."""
        if self._withheld or not line.plain:
            self.reset()
            return
        if not self._keys:
            if not self._is_as_it_was(line):
                self._trusted = False
            self._base = line
            if not self._trusted:
                self._floor = line.col
        for key in keys_in(data):
            ahead = any(each.key == OTHER or each.ahead for each in self._keys)
            self._keys.append(_Key(seq, key, ahead))
            self._foresee()
        if len(self._keys) > KEYS_MAX:
            self.reset()

    def accepted(self, seq: int, offset: int, now: float) -> None:
        """The host has this input and all before it; so much had been printed."""
        for key in self._keys:
            if key.seq <= seq and key.at is None:
                key.at, key.offset = now, offset
        self._settle()

    def printed(self, offset: int, line: PredictedLine) -> None:
        """Output up to `offset` was shown; now the cursor's line is this."""
        self._offset = offset
        if not self.looks:
            return
        if not line.plain:
            self.reset()
            return
        states = enumerate(self._states, 1) if line.row == self._base.row else ()
        if self._is_as_it_was(line):
            self._base = line
        elif count := next((n for n, state in states if _is_at(line, state)), 0):
            self._confirm(count, line)
        else:
            self._base = line
            self._distrust()
        self._foresee()
        self._settle()

    def withhold(self, yes: bool) -> None:
        """A secret is asked for, or the turn is blind; or no longer."""
        self._withheld = yes
        if yes:
            self.reset()

    def reset(self) -> None:
        """Something came in between: what is in flight is unknown now."""
        self._keys.clear()
        self._states.clear()
        self._trusted = False

    def tick(self, now: float) -> None:
        """Keys that the host has had for so long are not going to be echoed."""
        count = 0
        for key in self._keys:
            if key.at is None or now < key.at + GRACE_S:
                break
            count += 1
        if not count:
            return
        base = self._base
        came_to_nothing = count <= len(self._states) and self._states[count - 1] == (
            base.col,
            base.text,
        )
        del self._keys[:count]
        if not came_to_nothing:
            self._distrust()
        self._foresee()

    def wake_at(self) -> float | None:
        """When `tick` has something to do; None: not before something else happens."""
        at = self._keys[0].at if self._keys else None
        return None if at is None else at + GRACE_S

    # -- what comes of it -----------------------------------------------------------------------

    def overlay(self) -> Overlay | None:
        """What to draw now, instead of what was drawn before."""
        if not self._trusted or not self._states:
            return None
        base = self._base
        col, text = self._states[-1]
        cells = tuple(
            Cell(at, char)
            for at, (char, before) in enumerate(zip(text, base.text, strict=True))
            if char != before
        )
        return Overlay(base.row, base.col, cells, col) if cells or col != base.col else None

    # -- within ---------------------------------------------------------------------------------

    def _confirm(self, count: int, line: PredictedLine) -> None:
        """The first keys have come back as they were typed."""
        letters = [key for key in self._keys[:count] if len(key.key) == 1 and key.key != BACK]
        if any(not key.ahead and key.key not in _MASKS for key in letters):
            self._trusted = True
        if count == len(letters) == 1 and (right := _moving(line.text[line.col :])):
            # Else a program completes what is typed by itself, and the rest is its own offer.
            self._inserts = right == _moving(self._base.text[self._base.col :])
        del self._keys[:count]
        self._base = line

    def _is_as_it_was(self, line: PredictedLine) -> bool:
        return line.row == self._base.row and _is_at(line, (self._base.col, self._base.text))

    def _distrust(self) -> None:
        self._trusted = False
        self._floor = self._base.col

    def _settle(self) -> None:
        """A key of unknown effect has had its effect once something was printed after it."""
        while self._keys and self._keys[0].key == OTHER:
            first = self._keys[0]
            if first.at is None or first.offset >= self._offset:
                return
            del self._keys[0]
            self._distrust()
            self._foresee()

    def _foresee(self) -> None:
        """The lines to come, from the one there is."""
        self._states = []
        state = (self._base.col, self._base.text)
        for at, key in enumerate(self._keys):
            following = None if key.key == OTHER else self._after(state, key.key)
            if following is None:
                key.key = OTHER
                for later in self._keys[at + 1 :]:
                    later.ahead = True
                return
            state = following
            self._states.append(state)

    def _after(self, state: _State, key: str) -> _State | None:
        """The line after a key; None if that cannot be said. What is right of the cursor, up to a
        gap, may move; what is behind the gap (a clock, the right half of a prompt) does not. There
        has to be a gap, so the last column is never reached, and nothing wraps."""
        col, text = state
        rest = text[col:]
        gap = rest.find(_GAP)
        moving = rest[:gap]
        if gap < 0 or NO_GUESS in moving:
            return None
        if key == LEFT:
            return (col - 1, text) if col > self._floor else None
        if key == RIGHT:
            return (col + 1, text) if moving else None
        if key == BACK:
            changed = text[: col - 1] + moving + " " + rest[gap:]
            return (col - 1, changed) if col > self._floor else None
        if self._inserts:
            return col + 1, text[:col] + key + moving + rest[gap + 1 :]
        return col + 1, text[:col] + key + rest[1:]


def keys_in(data: bytes) -> list[str]:
    """What was typed, as far as it can be foreseen what it does. An escape sequence that is not an
    arrow is one key with all that came with it."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return [OTHER]
    if len(data) > PASTE_BYTES:
        return [OTHER]
    keys, at = [], 0
    while at < len(text):
        char = text[at]
        if arrow := _ARROW.match(text, at):
            keys.append(RIGHT if arrow[1] == "C" else LEFT)
            at = arrow.end()
            continue
        if char == "\x1b":
            return [*keys, OTHER]
        back = char in (BACK, "\b")
        keys.append(BACK if back else char if _NARROW.match(char) else OTHER)
        at += 1
    return keys


def narrow(char: str) -> bool:
    """Whether this character takes one cell in every terminal."""
    return _NARROW.fullmatch(char) is not None


def _moving(rest: str) -> str:
    """What of the rest of a line moves with the cursor: all up to a gap."""
    return rest.partition(_GAP)[0]


def _is_at(line: PredictedLine, state: _State) -> bool:
    """Whether the line is as expected, as far as the cursor; what is right of it may be the
    program's own addition."""
    col, text = state
    return line.col == col and line.text[:col] == text[:col]
