"""What can happen to a session: the events of `SessionMachine.handle`.

Events carry everything the machine needs: who, when, and with which words. What happens to the turn
alone is in core.turn.
"""

from __future__ import annotations

from holdfast.core.attachments import Seat
from holdfast.core.turn.events import TurnEvent
from holdfast.model.action import DeclaredAction
from holdfast.model.checkpoint import Waking
from holdfast.model.errors import HoldfastError
from holdfast.model.gate import ProposedEffect, Verdict
from holdfast.model.ids import ActorId, OperatorId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending


class SessionEvent(Record):
    """Something that happened or is asked for. `actor`: by whom; "" is the host itself."""

    actor: str
    now: float


class Passed(Record):
    """An effect that a policy was asked about and let pass. While one is in force, what it is about
    is refused to an actor without it."""

    effect: ProposedEffect
    verdict: Verdict


class ChannelOpened(SessionEvent):
    """An operator opened a channel; `size` is its terminal's, if it may set the canonical one."""

    seat: Seat
    size: Size | None = None


class ChannelClosed(SessionEvent):
    """A channel is closed, for whatever reason."""

    operator: OperatorId
    channel: int


class ActorDisconnected(SessionEvent):
    """The actor's last connection that had to do with this session is closed."""


class InputOffered(SessionEvent):
    """An input, numbered by its operator."""

    operator: OperatorId
    seq: int
    data: bytes
    form: str = "keys"  # how it was given: keys, paste, submit, exec, answer
    intent: str = ""  # what its actor says it is for
    action: DeclaredAction | None = None  # of which it is the command line


class RoomMade(SessionEvent):
    """The terminal took input: there may be room for what waits."""


class TimePassed(SessionEvent):
    """A turn may have been idle for too long, an envelope may have ended."""


class CommandRuns(SessionEvent):
    """What the shell reported: it runs a command line that `by` entered; "": it runs none, or
    nobody knows whose."""

    by: str


class SizeAsked(SessionEvent):
    """The canonical size shall be this. With `channel`: that terminal has this size now, which
    counts when its actor holds the turn."""

    operator: OperatorId
    size: Size
    channel: int | None = None
    passed: Passed | None = None  # needed where the shell runs something by it: the signal WINCH


class SignalAsked(SessionEvent):
    """A signal for the foreground process group."""

    operator: OperatorId
    signal: int
    passed: Passed | None = None


class ForwardAsked(SessionEvent):
    """A connection to a port of the session's own programs."""

    operator: OperatorId
    number: int
    port: int


class ForwardLeft(SessionEvent):
    """It is over, for whatever reason."""

    operator: OperatorId
    number: int


class PolicyAsked(SessionEvent):
    """Who gets the next turn is decided so from now on."""

    policy: str


class TurnStep(SessionEvent):
    """A step of the turn machine, asked for by `actor`."""

    step: TurnEvent


class SeizeAsked(SessionEvent):
    """The turn, now, whoever has it; and a halt with it, if asked."""

    reason: str
    halt: bool = False
    only: str = ""  # the actor whose processes are to be frozen, instead of all


class HaltAsked(SessionEvent):
    """Freeze the tree, or what one actor started in it."""

    reason: str
    only: str = ""


class ResumeAsked(SessionEvent):
    """Let everything run on."""


class FreezeReported(SessionEvent):
    """What the kernel says of the tree after a halt."""

    frozen: bool


class Thawed(SessionEvent):
    """What the kernel says of the tree after a resume."""

    runs: bool = True


class CheckpointAsked(SessionEvent):
    """Everything stands still for a moment and is written away; `ends`: and does not run on."""

    ends: bool
    passed: Passed | None = None


class CheckpointStored(SessionEvent):
    """All of it is safely stored; the tree is ended next, and the session is asleep in it."""

    checkpoint: str  # id
    waking: Waking = Waking()


class MoveSealed(SessionEvent):
    """Its record goes to another host now: nothing more may be written into it, unless it comes
    back to run on here (CheckpointOver)."""


class CheckpointOver(SessionEvent):
    """CRIU has let go of the tree, which runs on: it was checkpointed, or could not be."""


class LeaseLost(SessionEvent):
    """This host may no longer act for the session: the lease ran out, or is another's."""

    cause: str


class LeaseHeld(SessionEvent):
    """It may again, in this epoch."""

    epoch: int


class AuthorityChanged(SessionEvent):
    """Envelopes or actors changed: whoever lost a right that it is using loses its use too."""


class WrittenFromInside(SessionEvent):
    """A program in another session is about to write here, or started this one: whoever wrote there
    has a part in it."""

    actors: tuple[ActorId, ...]


class RenameAsked(SessionEvent):
    """Another name, which is kept free for it."""

    name: str


class PinAsked(SessionEvent):
    """It shall not be reaped however long nobody uses it, or shall be again."""

    pinned: bool


class DetachAsked(SessionEvent):
    """The terminals shall be detached; `others`: all but that of `operator`, or if it has none the
    one that was used last."""

    operator: OperatorId
    others: bool = False


class EndAsked(SessionEvent):
    """Somebody asks for the end."""

    passed: Passed | None = None


class MainEnded(SessionEvent):
    """The main process is gone, this is how."""

    ending: Ending


class PasteChecked(SessionEvent):
    """What the shell said of the paste at the gate: it is text, or its newlines commit."""

    number: int  # of the gate's piece
    is_text: bool


class CommitJudged(SessionEvent):
    """A policy judged the commit at the gate. `actor`: whose it is."""

    number: int  # of the gate's piece
    effect: ProposedEffect
    verdict: Verdict
    approval: str  # the id of the approval that a verdict to hold asks for
    expires_at: float
    offset: int  # of the output


class CommitWaits(SessionEvent):
    """Nobody reads the commit at the gate yet: a command runs."""

    number: int


class CommitFailed(SessionEvent):
    """The commit at the gate, or the question for its approval, could not be recorded."""

    number: int
    error: HoldfastError


class DecidedInAnotherLife(SessionEvent):
    """A request for approval that was decided after the checkpoint that the session was restored
    from."""

    id: str


class ApprovalDecided(SessionEvent):
    """Somebody approves, or denies."""

    id: str
    approve: bool
    note: str
    saw: str  # what was shown, as JSON


class EffectHeld(SessionEvent):
    """A policy holds something that is no line; whoever asked for it waits."""

    id: str
    effect: ProposedEffect
    verdict: Verdict
    expires_at: float
    offset: int


class EffectDropped(SessionEvent):
    """It will not happen, whatever is decided."""

    id: str


class GatePolicyChanged(SessionEvent):
    """Another policy is in force here, or none."""
