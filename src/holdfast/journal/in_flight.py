"""What was under way when a session was lost (M6), from the end of its journal: the command that
ran, the inputs since the last command ended, the text that was not submitted yet.

It names what is recorded and says nothing about its effect: an input may have been typed and not
read, a command may have done half of its work. Keys of the last moment may be missing: they are
recorded within 50 ms.
"""

from __future__ import annotations

from holdfast.journal import entries as e
from holdfast.model.info import CommandRecord, InFlight, InFlightInput
from holdfast.model.limits import IN_FLIGHT_INPUTS, IN_FLIGHT_TEXT_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ANSWER = "answer"  # a terminal's own answer to a program: nobody typed it
_PASTE_MARKS = (b"\x1b[200~", b"\x1b[201~")
_INTERRUPT, _ERASE_LINE, _ERASE = "\x03", "\x15", "\x7f\x08"


def in_flight(found: Sequence[e.Entry], name: Callable[[str], str]) -> InFlight:
    """From the last entries, in order; `name`: an actor's, by its id."""
    voided = {
        (entry.body.operator, entry.body.last_seq)
        for entry in found
        if isinstance(entry.body, e.Voided)
    }
    command: CommandRecord | None = None
    inputs: list[InFlightInput] = []
    line, authors = "", []  # type: tuple[str, list[str]]
    for entry in found:
        body = entry.body
        if isinstance(body, e.CommandEnded):
            command, inputs, line, authors = None, [], "", []
        elif isinstance(body, e.CommandBegan):
            command, line, authors = _command(entry, body, name), "", []
        elif isinstance(body, e.InputEntry | e.BlindInput):
            if (body.operator, body.last_seq) in voided:
                continue
            if isinstance(body, e.InputEntry) and body.form == _ANSWER:
                continue
            who, text = name(entry.actor), _text(body)
            size = len(body.data) if isinstance(body, e.InputEntry) else body.size
            shown = text[:IN_FLIGHT_TEXT_CHARS]
            inputs.append(InFlightInput(entry.seq, entry.at, who, shown, size))
            line, whole = _typed(line, text)
            authors = [each for each in (() if whole else authors) if each != who] + [who]
    by = tuple(authors) if line else ()
    last = tuple(inputs[-IN_FLIGHT_INPUTS:])
    return InFlight(command, last, line[:IN_FLIGHT_TEXT_CHARS], by)


def _command(entry: e.Entry, body: e.CommandBegan, name: Callable[[str], str]) -> CommandRecord:
    return CommandRecord(
        seq=body.number,
        text=body.text,
        cwd=body.cwd,
        began_at=entry.at,
        began_offset=body.offset,
        actor=name(entry.actor),
        authors=tuple(map(name, body.authors)),
    )


def _text(body: e.InputEntry | e.BlindInput) -> str:
    """As it was typed; of a secret nothing."""
    if isinstance(body, e.BlindInput):
        return ""
    data = body.data
    if body.form != "keys":  # the layer put these around it, nobody typed them
        for mark in _PASTE_MARKS:
            data = data.replace(mark, b"")
    return data.decode(errors="replace")


def _typed(line: str, text: str) -> tuple[str, bool]:
    """The line after these keys, and whether it begins with them: as an editor of lines would have
    it for the plainest keys. Others, as arrows, leave it as it is."""
    begins = False
    for char in text:
        if char in "\r\n" or char in (_INTERRUPT, _ERASE_LINE):
            line, begins = "", True
        elif char in _ERASE:
            line = line[:-1]
        elif char.isprintable() or char == "\t":
            line += char
    return line, begins
