"""Who typed what before this daemon: read from the journal's end, where every input stands with its
actor, so that no key costs another write.

Read are the latest entries, back to the last end of a command, at most JOURNAL_TYPED_ENTRIES. What
they cannot tell is taken for the worse: text may stand at the prompt, and it was typed blind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.core.line_authors import TypedLine, TypedLines
from holdfast.journal import entries
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import HOST_ACTOR
from holdfast.model.limits import JOURNAL_TAIL_ENTRIES, JOURNAL_TYPED_ENTRIES

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

    _Inputs = entries.InputEntry | entries.BlindInput

INTERRUPTS = frozenset(b"\x03\x1a\x1c")  # ^C, ^Z and ^\: by default keys for signals
_UNKNOWN_KEYS = b"\x1b"  # as after half a key: nothing is asked of the shell then


class TypedBefore:
    """What the journal says of it."""

    def __init__(self, *, running: bool = False) -> None:
        self.lines = TypedLines()
        self.in_doubt = False  # something may stand at the prompt, only the shell knows
        self.running = running  # a command has begun and not ended
        self.last_by, self.last_at, self.last_data = HOST_ACTOR, 0.0, b""

    def replay(self, found: list[entries.Entry]) -> None:
        """These entries, in order."""
        voided = {
            (entry.body.operator, entry.body.last_seq)
            for entry in found
            if isinstance(entry.body, entries.Voided)
        }
        for entry in found:
            match entry.body:
                case entries.InputEntry() | entries.BlindInput() as body:
                    if (body.operator, body.last_seq) not in voided:
                        self._typed(entry, body)
                case entries.CommandBegan():
                    self.running = True
                    self.lines.submitted()
                case entries.CommandEnded():
                    self.running, self.last_data = False, b""

    def _typed(self, entry: entries.Entry, body: _Inputs) -> None:
        data = body.data if isinstance(body, entries.InputEntry) else None
        if entry.actor != HOST_ACTOR:
            self.last_by, self.last_at = entry.actor, entry.at
            self.last_data = _UNKNOWN_KEYS if data is None else data
        if isinstance(body, entries.BlindInput):
            self.lines.typed_unseen(entry.actor, body.size)
        else:
            rest = after_interrupt(body.data)
            if rest != body.data:
                self.lines.interrupted()
            self.lines.typed(entry.actor, rest)

    def nothing_known(self) -> None:
        """The entries do not reach back to the end of a command."""
        self.lines.past = TypedLine(blind=True)


def after_interrupt(data: bytes) -> bytes:
    """What follows the last key for a signal; all of it when there is none."""
    cut = max((at + 1 for at, byte in enumerate(data) if byte in INTERRUPTS), default=0)
    return data[cut:]


def typed_before(live: LiveSession, unread: int | None, *, running: bool) -> TypedBefore:
    """Of a session that is carried on; `unread` are the bytes that nobody has read now. `running`:
    a command, if the journal does not say."""
    before = TypedBefore(running=running)
    if not live.spec.shell or not live.custody.ledger.operators():  # nobody has typed yet
        return before
    found: list[entries.Entry] = []
    for count in (JOURNAL_TAIL_ENTRIES, JOURNAL_TYPED_ENTRIES):
        found = _latest(live, count)
        if any(isinstance(entry.body, entries.CommandEnded) for entry in found):
            break
    before.replay(found)
    whole = any(
        isinstance(entry.body, entries.CommandEnded)
        or (isinstance(entry.body, entries.Began) and not entry.body.predecessor)
        for entry in found
    )
    if not before.running:
        before.lines.left(unread)
    if not whole:
        before.nothing_known()
    before.in_doubt = before.lines.waits or before.lines.past is not None
    return before


def _latest(live: LiveSession, count: int) -> list[entries.Entry]:
    directory, seq = live.daemon.store.directory(live.spec.id), live.journal.seq
    try:
        return list(JournalReader(directory).entries(max(1, seq - count + 1), seq))
    except HoldfastError:  # it will be said by whoever writes it next
        return []
