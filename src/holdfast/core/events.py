"""What happens to a session, and what follows from it: the vocabulary of `Session.handle`.

Events carry everything the machine needs: who, when, and with which words. Effects are done by the
shell around it, in the order given. What happens to the turn alone is in core.turn.
"""

from __future__ import annotations

from holdfast.core.attachments import Seat
from holdfast.core.turn.events import TurnEvent, TurnOutcome
from holdfast.model.ids import OperatorId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending

# -- events -----------------------------------------------------------------------------------


class SessionEvent(Record):
    """Something that happened or is asked for. `actor`: by whom; "" is the host itself."""

    actor: str
    now: float


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


class SizeAsked(SessionEvent):
    """The canonical size shall be this. With `channel`: that terminal has this size now, which
    counts when its actor holds the turn."""

    operator: OperatorId
    size: Size
    channel: int | None = None


class SignalAsked(SessionEvent):
    """A signal for the foreground process group."""

    operator: OperatorId
    signal: int


class RepaintAsked(SessionEvent):
    """A full-screen program that dozed while nobody watched shall paint again. The host's own."""


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
    """The kernel says that the tree runs on."""


class LeaseLost(SessionEvent):
    """This host may not act for the session any more: the lease ran out, or is another's."""

    cause: str


class LeaseHeld(SessionEvent):
    """It may again, in this epoch."""

    epoch: int


class AuthorityChanged(SessionEvent):
    """Envelopes or actors changed: whoever lost a right that it is using loses its use too."""


class EndAsked(SessionEvent):
    """Somebody asks for the end."""


class MainEnded(SessionEvent):
    """The main process is gone, this is how."""

    ending: Ending


# -- effects ----------------------------------------------------------------------------------


class Effect(Record):
    """Something the shell around this machine must do, in the order given."""


class Take(Effect):
    """Record this input, put it into custody and from there into the PTY."""

    actor: str
    operator: OperatorId
    seq: int
    data: bytes
    form: str
    intent: str = ""


class Repeat(Effect):
    """This input was taken before: say so, type nothing."""

    operator: OperatorId
    seq: int


class SetSize(Effect):
    size: Size


class SendSignal(Effect):
    signal: int


class Repaint(Effect):
    """Make a full-screen program paint again."""


class TurnNotice(Effect):
    """What became of the turn: to be recorded, then told."""

    outcome: TurnOutcome


class Freeze(Effect):
    """Stop the tree, or the processes `only` started; then say with Froze what the kernel says."""

    only: str
    reason: str


class Thaw(Effect):
    """Let everything run on; then say so with Thawed."""


class Fence(Effect):
    """Stop the tree, send everybody away, take nothing more."""

    cause: str


class Unfence(Effect):
    """Go on as the incarnation of this epoch; a halt stays in force."""

    epoch: int


class SetBlindOutput(Effect):
    """Keep what is printed, or stop keeping it."""

    blind: bool


class DismissOperator(Effect):
    """This operator may not even watch any more."""

    operator: OperatorId
    channel: int


class CutForward(Effect):
    """This connection may not go on; `code` and `message` say why."""

    operator: OperatorId
    number: int
    code: str
    message: str


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
