"""What an integrated shell reports over its FIFO, read from bytes.

Protocol, version 1. A record is `NUL "HOLD1 " nonce " " body NUL`, at most RECORD_MAX_BYTES, in
one write. That is under PIPE_BUF, so the kernel keeps it whole, and it has a NUL on either side,
so whatever others write next to it stays outside. Bodies, where the last field goes up to the end
and has `%` and newline written as `%25` and `%0A` (bash writes line by line):

    R BELOW PID KIND VERSION the shell is set up; the user's files have been read. BELOW is the
                             command line that started it in another shell; 0: none, it is the first
    T SEQ INDEX PIECE        a piece of the text of a command line, before its B
    B SEQ PIECES FLAG CWD    a command line begins; FLAG whole | cut | unknown | unparsed
    E SEQ STATUS CWD         it has ended
    P SEQ STATUS CWD         about to read a line, which will be SEQ; STATUS is `$?` now
    L SEQ PIECES FLAG POINT  asked with LINE_PROBE, or at the gate: the text in the line editor,
                             sent in T before; FLAG whole | cut, with `,paste` where a paste was
                             asked about and is text; POINT is the cursor, in characters

Deliberately absent: any judgement of what a report means for the session, any waiting, any output
marks (`core.command_output`), and the shell's state, which is too big for a FIFO (`state_file.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.limits import COMMAND_TEXT_MAX_BYTES
from holdfast.model.record import Record

# Bash writes through a buffer of this size; a longer record would be torn into several writes.
RECORD_MAX_BYTES = 1024
# Pieces of one text: encoding may triple it, and fish cuts pieces at 200 characters.
PIECES_MAX = 512


class ShellBelow(Record):
    """A shell that was started in one that reports is set up, and reports in its place."""

    below: int  # the command line that started it
    pid: int  # as it sees itself
    kind: str  # "bash", "zsh" or "fish"


class CommandBegin(Record):
    """A command line has been read and is about to run."""

    seq: int
    text: str  # best effort; exact from zsh and fish, from bash's history otherwise
    cwd: str  # "" when too long to report: ask the kernel
    text_known: bool = True
    parsed: bool = True  # False: the shell refused the line; an end follows, nothing ran


class CommandEnd(Record):
    """The command line has ended."""

    seq: int
    status: int
    cwd: str


class PromptShown(Record):
    """About to read a line. Also reports how the last one ended, in case its end was lost."""

    seq: int  # of the line to come; an empty line uses none up
    status: int
    cwd: str


class LineShown(Record):
    """The text in the line editor, not entered yet. Requested with LINE_PROBE."""

    seq: int  # of the line that it will be
    point: int  # where the cursor is, in characters from the beginning
    text: str  # also the lines before a PS2; in bash only if they go to the history
    text_known: bool = True
    cut: bool = False  # it is longer than what is reported
    takes_paste: bool = False  # asked with PASTE_PROBE: a paste is text in this key map


Report = ShellBelow | CommandBegin | CommandEnd | PromptShown | LineShown


class ReportReader:
    """Bytes of the FIFO in, reports out; what does not carry the nonce is dropped and counted.

    It can start at any point of the stream. A daemon that was killed in the middle of a record
    leaves the rest of it in the FIFO; that rest is refused, and the next prompt reports what was
    missed."""

    def __init__(
        self,
        nonce: str,
        *,
        begun: int = 0,
        ended: int = 0,
        below: Iterable[int] = (),
        running: Iterable[int] = (),
    ) -> None:
        """`begun`, `ended`: the highest numbers of which that is known already; `running`: those
        that have begun and not ended; `below`: those in which a shell reports, the outermost
        first."""
        self.refused = 0  # records without the nonce, malformed, or out of order
        self._head = b"HOLD1 " + nonce.encode() + b" "
        self._pending = b""
        self._skipping = False  # inside a record too long to be one of ours
        self._pieces: list[bytes] = []
        self._pieces_of = 0
        self._begun = begun  # highest number that has begun, or ended
        self._ended = ended
        self._below, self._running = tuple(below), tuple(running)

    def feed(self, data: bytes) -> list[Report]:
        *records, rest = (self._pending + data).split(b"\0")
        if self._skipping and records:
            self._skipping = False
            records = records[1:]
        self._pending = b"" if self._skipping else rest
        if len(self._pending) > RECORD_MAX_BYTES:
            self._pending, self._skipping = b"", True
            self.refused += 1
        return [report for record in records if record for report in self._take(record)]

    def _take(self, record: bytes) -> tuple[Report, ...]:
        # Compared without care for timing: a forger gets no answer to time.
        if not record.startswith(self._head) or len(record) > RECORD_MAX_BYTES:
            self.refused += 1
            return ()
        kind, _, body = record[len(self._head) :].partition(b" ")
        reader = _READERS.get(kind)
        try:
            found = reader(self, body) if reader else None
        except ValueError:
            found, reader = None, None
        if reader is None:
            self.refused += 1
        if found is None:
            return ()
        return found if isinstance(found, tuple) else (found,)

    def _ready(self, body: bytes) -> ShellBelow | None:
        number, pid, kind, _ = _fields(body, 4)
        below = _number(number)
        if not below:
            self._begun = self._ended = 0  # a shell that starts counts from one
            self._below, self._running = (), ()
            return None
        found = ShellBelow(below, _number(pid), _shown(kind))
        self._below = (*(each for each in self._below if each < below), below)
        self._begun = max(self._begun, below)
        return found

    def _piece(self, body: bytes) -> None:
        number, index, piece = _fields(body, 3)
        seq = _number(number)
        if _number(index) == 0:
            self._pieces, self._pieces_of = [], seq
        if seq != self._pieces_of or _number(index) != len(self._pieces):
            # One was lost. Without the first ones the rest is no text.
            self._pieces = []
            self._pieces_of = 0
        elif len(self._pieces) < PIECES_MAX:
            self._pieces.append(piece)

    def _begin(self, body: bytes) -> CommandBegin | None:
        number, count, flag, cwd = _fields(body, 4)
        seq = _number(number)
        text = self._text(seq, _number(count))
        if seq <= self._begun:
            return None
        self._begun = seq
        self._running += (seq,)
        return CommandBegin(
            seq,
            _shown(text[:COMMAND_TEXT_MAX_BYTES]),
            _shown(_decode(cwd)),
            text_known=bool(text) and flag != b"unknown",
            parsed=flag != b"unparsed",
        )

    def _text(self, seq: int, pieces: int) -> bytes:
        """What the pieces before this report make; nothing when one was lost."""
        whole = self._pieces if seq == self._pieces_of else []
        self._pieces, self._pieces_of = [], 0
        return _decode(b"".join(whole)) if len(whole) == pieces else b""

    def _end(self, body: bytes) -> tuple[CommandEnd, ...]:
        number, status, cwd = _fields(body, 3)
        end = CommandEnd(_number(number), _number(status), _shown(_decode(cwd)))
        if end.seq in self._below:
            return self._end_of_shell(end)
        if end.seq <= self._ended:  # ^C at the wrong moment makes a shell say it again
            return ()
        self._begun, self._ended = max(self._begun, end.seq), end.seq
        self._running = tuple(each for each in self._running if each != end.seq)
        return (end,)

    def _end_of_shell(self, end: CommandEnd) -> tuple[CommandEnd, ...]:
        """A shell that was started in another is over. Of the command line that ended it (`exit`)
        nobody reports the end: its status is the shell's."""
        over = sorted((each for each in self._running if each > end.seq), reverse=True)
        self._running = tuple(each for each in self._running if each < end.seq)
        self._below = tuple(each for each in self._below if each < end.seq)
        self._ended = self._begun = max(self._begun, self._ended)
        return (*(end.replace(seq=each) for each in over), end)

    def _prompt(self, body: bytes) -> PromptShown | None:
        number, status, cwd = _fields(body, 3)
        seq = _number(number)
        if seq < self._ended:
            return None  # of a shell that was left: another one has gone on with the numbers
        if not self._below:
            self._running = ()  # whatever of them was not reported to have ended
        return PromptShown(seq, _number(status), _shown(_decode(cwd)))

    def _line(self, body: bytes) -> LineShown:
        number, count, flag, point = _fields(body, 4)
        how, _, paste = flag.partition(b",")
        seq, expected = _number(number), _number(count)
        text = self._text(seq, expected)
        return LineShown(
            seq,
            _number(point),
            _shown(text[:COMMAND_TEXT_MAX_BYTES]),
            text_known=bool(text) or expected == 0,
            cut=how == b"cut" or len(text) > COMMAND_TEXT_MAX_BYTES,
            takes_paste=paste == b"paste",
        )


_READERS = {
    b"R": ReportReader._ready,
    b"T": ReportReader._piece,
    b"B": ReportReader._begin,
    b"E": ReportReader._end,
    b"P": ReportReader._prompt,
    b"L": ReportReader._line,
}


def _fields(body: bytes, count: int) -> list[bytes]:
    fields = body.split(b" ", count - 1)
    if len(fields) != count:
        raise ValueError("a field is missing")
    return fields


def _number(field: bytes) -> int:
    if not field.isdigit() or len(field) > 18:
        raise ValueError("not a number")
    return int(field)


def _decode(encoded: bytes) -> bytes:
    return encoded.replace(b"%0A", b"\n").replace(b"%25", b"%")


def _shown(text: bytes) -> str:
    # Not surrogates: the text goes on the wire, which carries UTF-8 only. A cut may have left
    # the beginning of a character at the end; that is dropped rather than shown.
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        if error.end == len(text) and error.reason == "unexpected end of data":
            text = text[: error.start]
    return text.decode(errors="backslashreplace")
