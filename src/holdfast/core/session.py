"""The one mutator of a session: an event in, effects out.

Everything done to a session by anybody comes through `Session.handle`, one event at a time, and
so has one order (A1, A3). A refused event raises a typed error and changes nothing. Bulk output
does not come here: PTY -> ring -> operators is its own short path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.core.attachment import Attachments, Seat
from holdfast.core.intake import Intake
from holdfast.core.lifecycle import TRANSITIONS, Phase, Step
from holdfast.model.errors import NotPermitted, SessionEnded, SessionHalted
from holdfast.model.ids import OperatorId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending

# -- events -----------------------------------------------------------------------------------


class Event(Record):
    """Something that happened or is asked for."""


class Opened(Event):
    """An operator opened a channel; `size` is its terminal's, if it may set the canonical one."""

    seat: Seat
    size: Size | None = None


class Left(Event):
    """A channel is closed, for whatever reason."""

    operator: OperatorId
    channel: int


class Offered(Event):
    """An input, numbered by its operator."""

    operator: OperatorId
    seq: int
    data: bytes


class SizeAsked(Event):
    """The canonical size shall be this."""

    operator: OperatorId
    size: Size


class SignalAsked(Event):
    """A signal for the foreground process group."""

    operator: OperatorId
    signal: int


class EndAsked(Event):
    """Somebody permitted asks for the end."""


class MainEnded(Event):
    """The main process is gone, this is how."""

    ending: Ending


class Froze(Event):
    """The kernel confirmed that the tree is frozen, or that it is not any more."""

    frozen: bool


# -- effects ----------------------------------------------------------------------------------


class Effect(Record):
    """Something the shell around this machine must do, in the order given."""


class Take(Effect):
    """Put this input into custody and from there into the PTY."""

    operator: OperatorId
    seq: int
    data: bytes


class Repeat(Effect):
    """This input was taken before: say so, type nothing."""

    operator: OperatorId
    seq: int


class SetSize(Effect):
    size: Size


class SendSignal(Effect):
    signal: int


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


# -- the machine ------------------------------------------------------------------------------


class Session:
    """Lifecycle, attachments and intake of one incarnation."""

    def __init__(self, size: Size, taken: dict[OperatorId, int] | None = None) -> None:
        self.phase = Phase.RUNNING
        self.size = size
        self.frozen = False
        self.ending: Ending | None = None
        self.attachments = Attachments()
        self.intake = Intake(taken or {})

    def handle(self, event: Event) -> list[Effect]:
        """The only way in."""
        return _HANDLERS[type(event)](self, event)

    def _opened(self, event: Opened) -> list[Effect]:
        before = self.attachments.answerer
        resized = [] if event.seat.observe or event.size is None else self._resize(event.size)
        self.attachments.open(event.seat)
        return [*resized, *self._answerer_since(before), Announce()]

    def _left(self, event: Left) -> list[Effect]:
        before = self.attachments.answerer
        if self.attachments.close(event.operator, event.channel) is None:
            return []
        return [*self._answerer_since(before), Announce()]

    def _offered(self, event: Offered) -> list[Effect]:
        operator, seq, data = event.operator, event.seq, event.data
        if seq > self.intake.last(operator):
            self._may_write(operator)
        if not self.intake.offer(operator, seq, len(data)):
            return [Repeat(operator, seq)]
        take = Take(operator, seq, data)
        if self.attachments.latest == operator:
            return [take]
        before = self.attachments.answerer
        self.attachments.typed(operator)
        return [*self._answerer_since(before), take]

    def takes_at_once(self, operator: OperatorId, seq: int, size: int) -> bool:
        """`handle(Offered)` for the usual key press, when its only effect would be to take it: then
        it counts as taken. False decides nothing: ask `handle`."""
        return (
            self.phase is Phase.RUNNING
            and not self.frozen
            and self.attachments.latest == operator
            and operator not in self.attachments.only_observing
            and self.intake.take_next(operator, seq, size)
        )

    def _size_asked(self, event: SizeAsked) -> list[Effect]:
        self._may_write(event.operator)
        return self._resize(event.size)

    def _signal_asked(self, event: SignalAsked) -> list[Effect]:
        self._may_write(event.operator)
        return [SendSignal(event.signal)]

    def _froze(self, event: Froze) -> list[Effect]:
        self.frozen = event.frozen
        return [Announce()]

    def _resize(self, size: Size) -> list[Effect]:
        size.checked()
        if size == self.size or self.phase is Phase.ENDED:
            return []
        self.size = size
        return [SetSize(size), Announce()]

    def _end_asked(self, _event: EndAsked) -> list[Effect]:
        if self.phase is Phase.ENDED:
            return []
        self.phase = TRANSITIONS[self.phase, Step.END_ASKED]
        return [TakeDown()]

    def _main_ended(self, event: MainEnded) -> list[Effect]:
        ending = event.ending
        if self.phase is Phase.ENDED:
            return []
        step = Step.HOST_LOST if ending.lost is not None else Step.MAIN_ENDED
        self.phase = TRANSITIONS[self.phase, step]
        self.ending = ending
        return [Bury(ending)]

    def _answerer_since(self, before: Seat | None) -> list[Effect]:
        now = self.attachments.answerer
        return [] if now == before else [Answerer(now)]

    def _may_write(self, operator: OperatorId) -> None:
        if operator in self.attachments.only_observing:
            raise NotPermitted(
                "this operator only observes", hint="attach without --observe to write"
            )
        if self.phase is Phase.ENDED:
            raise SessionEnded(f"the session has ended: {self.ending}")
        if self.frozen:
            raise SessionHalted("the session is halted; input is refused, not kept for later")


_HANDLERS: dict[type[Event], Callable[[Session, Any], list[Effect]]] = {
    Offered: Session._offered,
    Opened: Session._opened,
    Left: Session._left,
    SizeAsked: Session._size_asked,
    SignalAsked: Session._signal_asked,
    EndAsked: Session._end_asked,
    MainEnded: Session._main_ended,
    Froze: Session._froze,
}
