"""The turn, as an operator at a terminal meets it.

The first key of an operator without the turn asks for it. If it comes at once, the key goes
through as if nothing had been in the way; if not, the status line says who has it, and what can be
done. What is typed meanwhile is dropped, and said to be: keys that arrive minutes later, at another
prompt, would do harm. Requests of others are shown to the holder, with the key that grants them.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.cli.attach.prefix_keys import PrefixCommand
from holdfast.cli.text.sanitize import sanitize
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

NEWS_S = 8.0  # what somebody else wants or did stays longer on the line than a hint
_GAINED = "you have the turn"
_HELD_MAX_BYTES = 64 << 10  # typed before the answer to the request is here: one key, or a paste


class TurnPrompts:
    """What is asked for, what is waited for, and the words for it."""

    def __init__(
        self,
        send: Callable[[Callable[..., m.Request], dict[str, object]], int],
        say: Callable[[str, float], None],
        type_again: Callable[[bytes], None],
    ) -> None:
        """`send` makes and sends a request about this session, and gives its id."""
        self._send, self._say, self._type_again = send, say, type_again
        self._asked = 0  # the request whose answer decides about `_held`
        self._held = b""
        self._commands: set[int] = set()  # requests whose answer is to be shown
        # That we have the turn comes in up to three messages, in any order. The line keeps what
        # each said: the last must not hide that tasks are not frozen, or that the turn is ours.
        self._gained = _GAINED
        self._since = ""

    # -- from the operator ------------------------------------------------------------------------

    def refused(self, data: bytes) -> None:
        """These keys were refused, because another has the turn."""
        if not self._asked:
            self._held = b""
            self._asked = self._send(turn_messages.RequestTurn, {})
        self.holds(data)

    @property
    def asks(self) -> bool:
        """Whether the turn was asked for, and the answer is on its way."""
        return self._asked != 0

    def holds(self, data: bytes) -> bool:
        """Whether these keys wait for that answer: sent now they might come before those that were
        refused."""
        if self.asks and len(self._held) + len(data) <= _HELD_MAX_BYTES:
            self._held += data
        return self.asks

    def obey(self, command: PrefixCommand) -> bool:
        """Whether this was a command about the turn."""
        kind, fields = _REQUESTS.get(command, (None, {}))
        if kind is None:
            return False
        self._commands.add(self._send(kind, fields))
        return True

    # -- from the host ----------------------------------------------------------------------------

    def on_message(self, message: m.Message) -> bool:
        """Whether this was about the turn."""
        if isinstance(message, turn_messages.TurnShown):
            self._answered(message)
        elif isinstance(message, turn_messages.Halted):
            self._commands.discard(message.id)
            self._gained = _receipt_text(message.receipt)
            self._say_gained()
        elif isinstance(message, turn_messages.TurnMessage):
            self._on_turn_event(message)
        elif isinstance(message, turn_messages.TurnLostMessage):
            why = f": {sanitize(message.reason)}" if message.reason else ""
            why = " that you left idle" if message.reason == "idle" else why
            self._say(f"{sanitize(message.by)} took the turn{why}; C-\\ s takes it back", NEWS_S)
        elif isinstance(message, turn_messages.HandedOver):
            self._since = handoff_line(message.handoff)
            if self._since:
                self._say_gained()
        else:
            return False
        return True

    def failed(self, request: int) -> None:
        """The request for the turn was refused; the caller shows the reason."""
        if request == self._asked:
            self._asked, self._held = 0, b""

    def lost(self) -> None:
        """The connection is gone, and with it what was asked."""
        self._asked, self._held = 0, b""
        self._commands.clear()

    def _answered(self, shown: turn_messages.TurnShown) -> None:
        if shown.id == self._asked:
            held, self._asked, self._held = self._held, 0, b""
            if shown.yours:
                self._type_again(held)
            else:
                self._say(
                    f"{turn_line(shown.turn)}; you are waiting, your keys are not sent. "
                    "C-\\ s seizes it",
                    NEWS_S,
                )
        elif shown.id in self._commands:
            self._commands.discard(shown.id)
            self._say(_GAINED if shown.yours else turn_line(shown.turn), NEWS_S)

    def _on_turn_event(self, event: turn_messages.TurnMessage) -> None:
        who = sanitize(event.actor)
        if event.step == "request" and event.yours and event.turn.queue:
            asks = event.turn.queue[-1]
            words = f": {sanitize(asks.message)}" if asks.message else ""
            self._say(f"{sanitize(asks.name)} asks for the turn{words}; C-\\ g grants it", NEWS_S)
        elif event.yours and event.step != "request":
            self._gained, self._since = _GAINED, ""
            self._say_gained()
        elif event.step == "seize" and not event.yours:
            self._say(f"{who} seized the turn", NEWS_S)

    def _say_gained(self) -> None:
        self._say("; ".join(filter(None, (self._gained, self._since))), NEWS_S)


_REQUESTS: dict[PrefixCommand, tuple[type[m.Request], dict[str, object]]] = {
    PrefixCommand.TURN: (turn_messages.GetTurn, {}),
    PrefixCommand.ASK: (turn_messages.RequestTurn, {}),
    PrefixCommand.GRANT: (turn_messages.GrantTurn, {}),
    PrefixCommand.YIELD: (turn_messages.YieldTurn, {}),
    PrefixCommand.SEIZE: (turn_messages.Seize, {}),
    PrefixCommand.HALT: (turn_messages.Seize, {"halt": True}),
    PrefixCommand.RESUME: (turn_messages.Resume, {}),
}


def turn_line(turn: TurnInfo) -> str:
    """Who has the turn and who waits, in one line."""
    if not turn.holder:
        return "nobody has the turn: type to take it"
    how = " by seizure" if turn.seized else ""
    blind = ", blind" if turn.blind else ""
    waiting = ", ".join(sanitize(one.name) for one in turn.queue)
    return f"{sanitize(turn.holder_name)} has the turn{how}{blind}" + (
        f"; waiting: {waiting}" if waiting else ""
    )


def handoff_line(handoff: Handoff) -> str:
    """What a new holder must know, in one line; "" when nothing happened."""
    parts = []
    if handoff.commands:
        count = len(handoff.commands) + handoff.commands_left_out
        by = sorted({sanitize(each.actor) for each in handoff.commands if each.actor})
        parts.append(f"{count} command{'s' * (count > 1)} by {', '.join(by) or 'nobody'}")
    kinds = sorted({str(change.kind) for change in handoff.changes})
    if kinds:
        parts.append(f"changed: {', '.join(kinds)}")
    if handoff.unsubmitted:
        parts.append(f"text left at the prompt: {sanitize(handoff.unsubmitted)[:40]}")
    if not handoff.unsubmitted_known:
        parts.append("perhaps text left at the prompt")
    if handoff.halted:
        parts.append("halted")
    if not parts:
        return ""
    when = "so far" if handoff.since_at is None else "since you last had it"
    return f"{when}: {'; '.join(parts)} (`hold catchup` has the details)"


def _receipt_text(receipt: Receipt) -> str:
    before = f" from {sanitize(receipt.before)}" if receipt.before else ""
    before += "; NOT recorded" if receipt.unrecorded else ""
    if not receipt.scope:
        return f"{_GAINED}{before}"
    if receipt.frozen:
        frozen = f"{receipt.tasks} tasks frozen in {receipt.seconds * 1000:.0f} ms"
        return f"{_GAINED}{before}; {frozen}; C-\\ u resumes"
    return f"{_GAINED}{before}; NOT frozen: {len(receipt.running)} processes still run"
