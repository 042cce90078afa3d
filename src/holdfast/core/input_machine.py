"""The life of an input, from being offered to being in custody; it owns the queue in between.

    offered      -> repeat: its number was used before; nothing happens again
                 -> refused: never acceptable, or not now (judged by core.session)
                 -> waiting
    waiting      -> refused: the turn moved, a halt, a fence, the end, or it could not be recorded
                 -> gated: a policy is in force, and it would commit something
                 -> taking, in order, when the conduit has room for all of it
    gated        -> taking, piece by piece: its text, then each commit that was judged (core.gate)
                 -> refused, with all of it that was not taken: by a policy, or as one that waits
    taking       -> in custody: recorded, and held by the keeper; it survives every process
                 -> refused: it could not be recorded, so it was not taken

What is gated keeps its place: what others sent waits behind it. What the host itself types (a
question to the shell, an answer of the emulator) goes past it.

Every operator numbers its inputs to a session from 1 upwards. A number not above the last one taken
is a repeat (the answer was lost, not the input).
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.core.events import InputOffered
from holdfast.core.gate.commit_bytes import Stop, first_stop, leaves_paste_open
from holdfast.core.gate.gated_input import GatedInput, SavedGatedInput, Stage
from holdfast.model.errors import GateRefused, HoldfastError, InvalidArgument, LimitReached
from holdfast.model.ids import GATE_OPERATOR, HOST_ACTOR, OperatorId
from holdfast.model.limits import (
    GATED_INPUT_MAX_BYTES,
    INPUT_MAX_BYTES,
    INPUT_PENDING_BYTES,
    INTAKE_OPERATORS,
)


class InputMachine:
    """The queue of one session, and the last number of each operator."""

    def __init__(
        self,
        in_custody: dict[OperatorId, int],
        in_force: Callable[[], bool] | None = None,
        gated: SavedGatedInput | None = None,
        now: float = 0.0,
        rebound: Callable[[], bool] = lambda: False,
    ) -> None:
        """`in_force`: whether a policy is; None: there is none on this host. `gated`: what an
        earlier daemon left at the gate. `rebound`: whether keys may be bound to anything."""
        self._offered = dict(in_custody)  # the last number that was not refused
        self._in_custody = dict(in_custody)  # the last number that was taken
        self._queue: list[InputOffered] = []  # a deque is half a kilobyte even when empty
        self._pending_bytes = 0
        self._in_force, self._rebound = in_force, rebound
        self._gate_number = in_custody.get(GATE_OPERATOR, 0)  # the last one taken
        self._refusals: dict[OperatorId, tuple[int, HoldfastError]] = {}  # of what was begun
        self._open_pastes: set[OperatorId] = set()  # whose beginning was refused
        self.paused = False  # nothing is taken until a checkpoint is over
        self.gated: GatedInput | None = None
        if gated is not None:
            self.gated = GatedInput.carried_on(gated, in_custody, now, rebound)
        if self.gated is not None:
            self._pending_bytes = len(self.gated.data)

    def last(self, operator: OperatorId) -> int:
        """The last number that waits or was taken."""
        return self._offered.get(operator, 0)

    def taken_before(self, operator: OperatorId, seq: int) -> None:
        """Under another name of this operator."""
        self._offered[operator] = self._in_custody[operator] = seq

    def is_behind(self, operator: OperatorId, seq: int) -> bool:
        """Whether an input of this number, or of a later one, waits or was taken; 0 is no number
        yet."""
        return 0 < seq <= self.last(operator)

    @property
    def is_empty(self) -> bool:
        return not self._queue and self.gated is None

    @property
    def policy_in_force(self) -> bool:
        return self._in_force is not None and self._in_force()

    def waits(self, operator: OperatorId, seq: int) -> bool:
        gated = self.gated
        if gated is not None and (gated.whole.operator, gated.whole.seq) == (operator, seq):
            return True
        return any(each.operator == operator and each.seq == seq for each in self._queue)

    def is_new(self, offered: InputOffered) -> bool:
        """Whether this input was not offered before. Raises if it can be taken at no time, or not
        now."""
        seq, size = offered.seq, len(offered.data)
        if seq < 1:
            raise InvalidArgument("input sequence numbers start at 1")
        if size > INPUT_MAX_BYTES:
            raise InvalidArgument(
                f"an input of {size} bytes is over the limit of {INPUT_MAX_BYTES}",
                hint="send it in pieces",
            )
        if seq <= self._offered.get(offered.operator, 0):
            if self._refusals and offered.operator in self._refusals:
                refused, why = self._refusals[offered.operator]
                if seq == refused:
                    # Its first piece was typed, the rest was refused.
                    raise type(why)(why.message, hint=why.hint)
            return False
        if self._pending_bytes + size > INPUT_PENDING_BYTES:
            raise LimitReached(
                "the program does not read its input, and what waits for it fills the limit",
                hint="wait until it reads, or interrupt it with `hold keys NAME C-c`",
            )
        if self._in_force is not None and offered.actor and self._in_force():
            self._check_gateable(offered)
        return True

    def _check_gateable(self, offered: InputOffered) -> None:
        """Raise if this can be judged at no time."""
        data, operator = offered.data, offered.operator
        if operator in self._open_pastes:
            if b"\x1b[201~" in data:
                self._open_pastes.discard(operator)
            raise GateRefused("the beginning of this paste was refused, and so is its rest")
        if leaves_paste_open(data):
            if len(self._open_pastes) >= INTAKE_OPERATORS:
                self._open_pastes.clear()
            self._open_pastes.add(operator)
            raise GateRefused(
                "a paste that does not come in one piece cannot be judged",
                hint="a policy is in force here: paste less at once, or put it into a file",
            )
        if len(data) - first_stop(data, rebound=self._rebound()).at > GATED_INPUT_MAX_BYTES:
            raise GateRefused(
                "there is too much behind its first line to be kept while that is judged: at most "
                f"{GATED_INPUT_MAX_BYTES} bytes",
                hint="a policy is in force here: send it in pieces, or put it into a file",
            )

    def offer(self, offered: InputOffered) -> None:
        """A new input, judged and allowed, behind all others."""
        self._queue.append(offered)
        self._pending_bytes += len(offered.data)
        # The latest operator is last; the longest silent one goes when there are too many.
        last = self._offered.pop(offered.operator, None)
        if last is None and len(self._offered) >= INTAKE_OPERATORS:
            silent = next(iter(self._offered))
            del self._offered[silent]
            self._in_custody.pop(silent, None)
            self._refusals.pop(silent, None)
        self._offered[offered.operator] = offered.seq

    def waiting(self) -> tuple[InputOffered, ...]:
        """What is not in custody yet, in order. Nothing of what is at the gate, which is judged
        here."""
        return () if self.gated is not None else tuple(self._queue)

    # -- taking ---------------------------------------------------------------------------------

    def next(self, room: int) -> InputOffered | None:
        """The first that may be taken, or a piece of one, if the conduit has room for all of it.
        `taken` or `not_recorded` follows."""
        if self.paused:
            return None
        if self.gated is not None:
            return self._past_the_gate(room)
        if not self._queue:
            return None
        first = self._queue[0]
        if (
            self._in_force is not None
            and first.actor
            and self._in_force()
            and first_stop(first.data, rebound=self._rebound()).stop is not Stop.NOTHING
        ):
            self._queue.pop(0)
            self.gated = GatedInput(first, self._gate_number + 1, self._rebound)
            return self._past_the_gate(room)
        return first if len(first.data) <= room else None

    def _past_the_gate(self, room: int) -> InputOffered | None:
        assert self.gated is not None
        piece = self.gated.piece()
        if piece is None:
            piece = next((each for each in self._queue if each.actor == HOST_ACTOR), None)
        return piece if piece is not None and len(piece.data) <= room else None

    def taken(self, piece: InputOffered) -> InputOffered | None:
        """It is in custody. Gives the input that is whole with it."""
        self._pending_bytes -= len(piece.data)
        self._in_custody[piece.operator] = piece.seq
        gated = self.gated
        if gated is None or piece.actor == HOST_ACTOR:
            self._queue.remove(piece) if gated is not None else self._queue.pop(0)
            return piece
        if piece.operator == GATE_OPERATOR:
            self._gate_number = piece.seq
        gated.taken()
        if gated.data:
            return None
        self.gated = None
        return gated.whole

    def not_recorded(self, piece: InputOffered) -> tuple[InputOffered, ...]:
        """It could not be recorded, so it was not taken. Refused with it is what its operator sent
        behind it, which would otherwise overtake it."""
        operator = piece.operator
        if operator == GATE_OPERATOR and self.gated is not None:
            operator = self.gated.whole.operator
        return self.refuse(lambda waiting: waiting.operator == operator)

    def refuse(self, which: Callable[[InputOffered], bool]) -> tuple[InputOffered, ...]:
        """Take these out of the queue, and away from the gate. Their numbers may be used again,
        unless a piece was taken."""
        refused = tuple(filter(which, self._queue))
        self._queue = [each for each in self._queue if not which(each)]
        self._pending_bytes -= sum(len(each.data) for each in refused)
        gated = self.gated
        if gated is not None and which(gated.whole):
            self.gated = None
            self._pending_bytes -= len(gated.data)
            refused = (gated.whole, *refused)
        for operator in {each.operator for each in refused}:
            left = [each.seq for each in self._queue if each.operator == operator]
            if self.gated is not None and self.gated.whole.operator == operator:
                left.append(self.gated.whole.seq)
            self._offered[operator] = max(left, default=self._in_custody.get(operator, 0))
        return refused

    def remember_refusal(self, refused: InputOffered, why: HoldfastError) -> None:
        """Its number is used, since its text was typed: offered again, it gets this answer."""
        if self._in_custody.get(refused.operator, 0) >= refused.seq:
            self._refusals[refused.operator] = refused.seq, why

    # -- the gate -------------------------------------------------------------------------------

    @property
    def unjudged(self) -> GatedInput | None:
        """What is to be judged now, or asked about."""
        gated = self.gated
        return gated if gated and gated.stage in (Stage.COMMIT, Stage.PASTE) else None

    @property
    def awaits_approval(self) -> GatedInput | None:
        gated = self.gated
        return gated if gated and gated.stage is Stage.APPROVAL else None
