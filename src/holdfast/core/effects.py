"""What follows from an event: carried out by the executor, in the order given."""

from __future__ import annotations

from holdfast.core.attachments import Seat
from holdfast.core.events import InputOffered
from holdfast.core.gate.approvals import Approval
from holdfast.core.turn.events import TurnOutcome
from holdfast.model.errors import HoldfastError
from holdfast.model.gate import ProposedEffect, Verdict
from holdfast.model.ids import OperatorId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending


class Effect(Record):
    """Something the shell around this machine must do, in the order given."""


class TakeInputs(Effect):
    """Ask the input machine for what is next, as long as there is room: record it, put it into
    custody, type it."""


class Repeat(Effect):
    """This input was taken before: say so, type nothing."""

    operator: OperatorId
    seq: int


class SetSize(Effect):
    size: Size


class SendSignal(Effect):
    signal: int


class RefuseInputs(Effect):
    """These waited for custody and may not be taken now. Nobody was told that they were taken."""

    inputs: tuple[InputOffered, ...]
    error: HoldfastError


class RecordTurn(Effect):
    """What became of the turn: in the journal before it is saved or announced."""

    outcome: TurnOutcome
    by: str


class NoteTurnGivenUp(Effect):
    """This actor held the turn until now: what changes from here on is news to it."""

    actor: str


class NotifyTurn(Effect):
    """Announce what became of the turn."""

    outcome: TurnOutcome
    by: str


class RecordPolicy(Effect):
    policy: str


class SaveParcel(Effect):
    """What the keeper holds of the session is brought up to date."""


class RecordHalt(Effect):
    """A halt was asked for: of the tree, or of what `only` started."""

    only: str
    reason: str


class Freeze(Effect):
    """Stop the tree, or the processes `only` started; then report what the kernel says."""

    only: str


class Thaw(Effect):
    """Let everything run on; then report what the kernel says."""


class HoldTyping(Effect):
    """Nothing is typed until `ReleaseTyping`: what the terminal has is being read."""


class ReleaseTyping(Effect):
    """What is in custody is typed on; then what waited is taken."""


class Fence(Effect):
    """Stop the tree, take nothing more, send everybody away."""

    cause: str


class RecordFence(Effect):
    cause: str


class Unfence(Effect):
    """Go on as the incarnation of this epoch; a halt stays in force."""

    epoch: int


class SetBlindOutput(Effect):
    """Keep what is printed, or stop keeping it."""

    blind: bool


class DismissOperator(Effect):
    """This operator may no longer even watch; or, with `detached`, somebody sends it away."""

    operator: OperatorId
    channel: int
    detached: bool = False


class CutForward(Effect):
    """This connection may not go on; `code` and `message` say why."""

    operator: OperatorId
    number: int
    code: str
    message: str


class ChangeName(Effect):
    """Recorded, and found by this name from now on."""

    name: str


class RecordPin(Effect):
    """Whether reaping leaves it alone has changed."""

    pinned: bool


class EndTree(Effect):
    """Hang up the terminal, end the tree."""


class CloseEnded(Effect):
    """Write the tombstone, tell everybody, give back what was held."""

    ending: Ending


class SetAnswerer(Effect):
    """From now on this seat's terminal answers queries; None: the emulator."""

    seat: Seat | None


class AnnounceOperators(Effect):
    """Operators or size changed: tell those who watch."""


class ScheduleTick(Effect):
    """Another moment may be the next at which time alone changes something."""


class CheckFollowers(Effect):
    """Whoever follows a command may not be allowed to observe it now."""


class JudgeCommit(Effect):
    """Something waits at the gate: ask what it is, and the policy."""


class RecordJudged(Effect):
    """A commit was judged, and does not pass."""

    effect: ProposedEffect
    verdict: Verdict


class AskApproval(Effect):
    """Record the question before anybody hears of it. `number`: of the gate's piece."""

    approval: Approval
    number: int


class CloseApproval(Effect):
    """It was approved once more, or decided otherwise: record and announce it."""

    approval: Approval
    by: str
    note: str = ""
    saw: str = ""


class ClearLine(Effect):
    """The line was refused: it is taken away. `in_program`: no shell reads it."""

    in_program: bool


class AnswerHeld(Effect):
    """Whoever sent this input hears that it is kept, and what it waits for."""

    held: InputOffered
