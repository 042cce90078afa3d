"""What happens to a session, and what follows from it: the vocabulary of `Session.handle`.

Events carry everything the machine needs: who, when, and with which words. Effects are done by the
shell around it, in the order given. What happens to the turn alone is in core.turn.
"""

from __future__ import annotations

from holdfast.core.attachments import Seat
from holdfast.core.turn.events import Outcome, TurnEvent
from holdfast.model.ids import OperatorId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending

# -- events -----------------------------------------------------------------------------------


class Event(Record):
    """Something that happened or is asked for. `actor`: by whom; "" is the host itself."""

    actor: str
    now: float


class Opened(Event):
    """An operator opened a channel; `size` is its terminal's, if it may set the canonical one."""

    seat: Seat
    size: Size | None = None


class Left(Event):
    """A channel is closed, for whatever reason."""

    operator: OperatorId
    channel: int


class Gone(Event):
    """The actor's last connection that had to do with this session is closed."""


class Offered(Event):
    """An input, numbered by its operator."""

    operator: OperatorId
    seq: int
    data: bytes
    form: str = "keys"  # how it was given: keys, paste, submit, exec, answer
    intent: str = ""  # what its actor says it is for


class SizeAsked(Event):
    """The canonical size shall be this. With `channel`: that terminal has this size now, which
    counts when its actor holds the turn."""

    operator: OperatorId
    size: Size
    channel: int | None = None


class SignalAsked(Event):
    """A signal for the foreground process group."""

    operator: OperatorId
    signal: int


class Nudged(Event):
    """A full-screen program that dozed while nobody watched shall paint again. The host's own."""


class ForwardAsked(Event):
    """A connection to a port of the session's own programs."""

    operator: OperatorId
    number: int
    port: int


class ForwardLeft(Event):
    """It is over, for whatever reason."""

    operator: OperatorId
    number: int


class PolicyAsked(Event):
    """Who gets the next turn is decided so from now on."""

    policy: str


class TurnStep(Event):
    """A step of the turn machine, asked for by `actor`."""

    step: TurnEvent


class SeizeAsked(Event):
    """The turn, now, whoever has it; and a halt with it, if asked."""

    reason: str
    halt: bool = False
    only: str = ""  # the actor whose processes are to be frozen, instead of all


class HaltAsked(Event):
    """Freeze the tree, or what one actor started in it."""

    reason: str
    only: str = ""


class ResumeAsked(Event):
    """Let everything run on."""


class Froze(Event):
    """What the kernel says of the tree after a halt."""

    frozen: bool


class Thawed(Event):
    """The kernel says that the tree runs on."""


class LeaseLost(Event):
    """This host may not act for the session any more: the lease ran out, or is another's."""

    cause: str


class LeaseHeld(Event):
    """It may again, in this epoch."""

    epoch: int


class AuthorityChanged(Event):
    """Envelopes or actors changed: whoever lost a right that it is using loses its use too."""


class EndAsked(Event):
    """Somebody asks for the end."""


class MainEnded(Event):
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


class TurnNews(Effect):
    """What became of the turn: to be recorded, then told."""

    outcome: Outcome


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


class Blind(Effect):
    """Keep what is printed, or stop keeping it."""

    blind: bool


class Dismiss(Effect):
    """This operator may not even watch any more."""

    operator: OperatorId
    channel: int


class CutForward(Effect):
    """This connection may not go on; `code` and `message` say why."""

    operator: OperatorId
    number: int
    code: str
    message: str


class TakeDown(Effect):
    """Hang up the terminal, end the tree."""


class Bury(Effect):
    """Write the tombstone, tell everybody, give back what was held."""

    ending: Ending


class Answerer(Effect):
    """From now on this seat's terminal answers queries; None: the emulator."""

    seat: Seat | None


class Announce(Effect):
    """Operators or size changed: tell those who watch."""
