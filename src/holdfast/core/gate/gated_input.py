"""One input that a gate has cut, in the place it had in the queue: its text goes on, each commit in
it waits until it has been judged, and everything behind it waits, too.

    text      -> taken as it is; then what follows it
    paste     -> several lines in brackets: text if the shell says so, else each newline commits
    commit    -> to be judged: it may pass, or waits for approval, or is refused (by its owner)
    approval  -> judged again when enough have approved
    pass      -> to be taken, once

The first piece goes into custody under the input's own number, each further one under a number of
the gate's. What is left is saved before a piece is taken, with that piece's number; the ledger then
says whether the piece was taken (`carried_on`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from holdfast.core.events import InputOffered
from holdfast.core.gate.commit_bytes import (
    ENTERS,
    PASTE_BEGINS,
    Stop,
    commit_length,
    first_stop,
    paste_end,
)
from holdfast.model.ids import GATE_OPERATOR, OperatorId
from holdfast.model.record import Record


class Stage(StrEnum):
    """What happens to the piece that is next."""

    TEXT = "text"
    PASTE = "paste"
    COMMIT = "commit"
    APPROVAL = "approval"
    PASS = "pass"


class SavedGatedInput(Record):
    """What is left of it, as the parcel has it."""

    actor: str
    operator: OperatorId
    seq: int
    form: str
    intent: str
    data: bytes  # from the next piece on
    stage: str  # of that piece
    length: int  # of that piece
    number: int  # under which it goes into custody; 0: under the input's own


class GatedInput:
    """`number`: under which the piece behind the first goes into custody; `rebound`: whether free
    keys may be bound to something, now."""

    def __init__(
        self, whole: InputOffered, number: int, rebound: Callable[[], bool] = lambda: False
    ) -> None:
        self.whole = whole
        self.data = whole.data
        self.number = 0
        self.stage = Stage.TEXT
        self._next_number = number
        self._rebound = rebound
        self.length = first_stop(self.data, rebound=rebound()).at

    @classmethod
    def carried_on(
        cls,
        saved: SavedGatedInput,
        in_custody: dict[OperatorId, int],
        now: float,
        rebound: Callable[[], bool] = lambda: False,
    ) -> GatedInput | None:
        """What an earlier daemon left of one; None if nothing: it was typed to its end, or its
        first piece was not taken, so that its operator offers it again."""
        whole = InputOffered(
            saved.actor, now, saved.operator, saved.seq, saved.data, saved.form, saved.intent
        )
        gated = cls(whole, max(saved.number, in_custody.get(GATE_OPERATOR, 0)) + 1, rebound)
        gated.number, gated.length, gated.stage = saved.number, saved.length, Stage(saved.stage)
        who, seq = (GATE_OPERATOR, saved.number) if saved.number else (saved.operator, saved.seq)
        if in_custody.get(who, 0) >= seq:
            gated.taken()
        elif not saved.number:
            return None
        elif gated.stage in (Stage.APPROVAL, Stage.PASS):
            gated.stage = Stage.COMMIT  # judged again
        return gated if gated.data else None

    def saved(self) -> SavedGatedInput:
        whole = self.whole
        return SavedGatedInput(
            str.__str__(whole.actor),
            whole.operator,
            whole.seq,
            whole.form,
            whole.intent,
            self.data,
            str.__str__(self.stage),
            self.length,
            self.number,
        )

    @property
    def begun(self) -> bool:
        """Its first piece is in custody, so its number is used."""
        return self.number > 0

    @property
    def waits(self) -> bool:
        """For a judgement, or for approval."""
        return self.stage in (Stage.PASTE, Stage.COMMIT, Stage.APPROVAL)

    def piece(self) -> InputOffered | None:
        """What may be taken now."""
        if self.waits:
            return None
        data = self.data[: self.length]
        if not self.number:
            return self.whole.replace(data=data)
        return self.whole.replace(operator=GATE_OPERATOR, seq=self.number, data=data)

    def taken(self) -> None:
        """The piece is in custody."""
        self.data = self.data[self.length :]
        self.number, self._next_number = self._next_number, self._next_number + 1
        self._look()

    def _look(self) -> None:
        """What is next."""
        rebound = self._rebound()
        cut = first_stop(self.data, rebound=rebound)
        if cut.at or cut.stop is Stop.NOTHING:
            self.stage, self.length = Stage.TEXT, cut.at
        elif cut.stop is Stop.PASTE:
            self.stage, self.length = Stage.PASTE, paste_end(self.data)
        else:
            self.stage = Stage.COMMIT
            self.length = commit_length(self.data, rebound=rebound)

    @property
    def commit(self) -> bytes:
        """The key that is judged, or, where keys were rebound, the text."""
        return self.data[: self.length]

    @property
    def enters(self) -> bool:
        """Whether the piece that is next enters a line; else it is a key that may do anything."""
        return self.commit in ENTERS

    def paste_is_text(self, is_text: bool) -> None:
        """What the shell says of the paste that is next."""
        self.stage = Stage.TEXT
        if not is_text:
            rebound = self._rebound()
            self.length = first_stop(self.data, len(PASTE_BEGINS), rebound=rebound).at
            # A paste behind it is looked at in its own turn.
