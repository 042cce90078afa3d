"""The turn, as an operator at a terminal meets it.

The first key of an operator without the turn asks for it. If it comes at once, the key goes
through as if nothing had been in the way; if not, the status line says who has it, and what can be
done. What is typed meanwhile is dropped, as whole lines (`sdk.client_core.unsent_line`), and said
to be: keys that arrive minutes later, at another prompt, or half a command, would do harm. Requests
of others are shown to the holder, with the key that grants them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.cli.attach.prefix_keys import PrefixCommand
from holdfast.cli.attach.status_line import SHOWN_S
from holdfast.cli.text.naming import called, has
from holdfast.cli.text.sanitize import sanitize
from holdfast.model.turn_info import Handoff, Receipt
from holdfast.sdk.client_core.unsent_line import UnsentLine
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

NEWS_S = 8.0  # what somebody else wants or did stays longer on the line than a hint
_GAINED = "you have the turn"
_LINE_DROPPED = "line not sent: its beginning was refused. Pause, then type it again"
_HELD_MAX_BYTES = 64 << 10  # typed before the answer to the request is here: one key, or a paste


class TurnPrompts:
    """What is asked for, what is waited for, and the words for it."""

    def __init__(
        self,
        send: Callable[[Callable[..., m.Request], dict[str, object]], int],
        say: Callable[[str, float], None],
        type_again: Callable[[bytes], None],
        prefix: str = "C-\\",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`send` makes and sends a request about this session, and gives its id."""
        self._prefix, self._clock = prefix, clock
        self._you = ""  # the name of our actor
        self._unsent = UnsentLine()
        self._probing = False  # keys were sent nevertheless, and decide about `_held`
        self._elsewhere = False  # as far as we know, another actor has the turn
        self._send, self._say, self._type_again = send, say, type_again
        self._asked = 0  # the request whose answer decides about `_refused` and `_held`
        self._refused = b""  # sent before `_held` was typed, and come back
        self._held = b""
        self._overflowed = False  # more was typed than is held: what is held is half a line
        self._commands: set[int] = set()  # requests whose answer is to be shown
        # That we have the turn comes in up to three messages, in any order. The line keeps what
        # each said: the last must not hide that tasks are not frozen, or that the turn is ours.
        self._gained = _GAINED
        self._since = ""

    # -- from the operator ------------------------------------------------------------------------

    @property
    def you(self) -> str:
        """The name of our actor, once it is known."""
        return self._you

    def refused(self, data: bytes) -> None:
        """These keys were refused, because another has the turn."""
        self._elsewhere, self._probing = True, False
        self._refused += data
        if not self._asked:
            self._asked = self._send(turn_messages.RequestTurn, {})

    def attached(self, you: str, holder: str) -> None:
        """On opening: the name of our actor, and of the one that has the turn. Names are for
        people: whether it is ours is asked."""
        self._you = you
        if holder:
            self._send(turn_messages.GetTurn, {})

    def taken(self) -> None:
        """All that was sent is taken: if we did not know it, the turn is ours."""
        if self._probing:
            self._elsewhere = False
            self._type_held()

    def swallows(self, data: bytes) -> bool:
        """Whether these keys are dropped, because the beginning of their line was."""
        if not self._unsent.swallows(data, self._clock()):
            return False
        self._say(_LINE_DROPPED, NEWS_S)
        return True

    @property
    def usual(self) -> bool:
        """Whether a key typed now goes to the session without more ado."""
        return not (self._elsewhere or self.asks or self._unsent.drops(self._clock()))

    @property
    def asks(self) -> bool:
        """Whether the turn was asked for, or tried for, and the answer is on its way."""
        return self._asked != 0 or self._probing

    def holds(self, data: bytes) -> bool:
        """Whether these keys wait for that answer: sent now they might come before those that were
        refused. Where another is known to have the turn, one piece is sent and the others wait for
        what becomes of it: of several on their way the first could be refused, the next taken."""
        if self._elsewhere and not self.asks:
            self._probing = True
            return False
        if not self.asks:
            return False
        self._overflowed |= len(self._held) + len(data) > _HELD_MAX_BYTES
        if not self._overflowed:
            self._held += data
        return True

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
        elif isinstance(message, m.Done) and message.id in self._commands:
            self._commands.discard(message.id)  # of all commands only a resume is answered so
            self._say("resumed", SHOWN_S)
        elif isinstance(message, turn_messages.Halted):
            self._commands.discard(message.id)
            self._gained = _receipt_text(message.receipt, self._you, self._prefix)
            self._say_gained()
        elif isinstance(message, turn_messages.TurnMessage):
            self._on_turn_event(message)
        elif isinstance(message, turn_messages.TurnLostMessage):
            why = f": {sanitize(message.reason)}" if message.reason else ""
            why = " that you left idle" if message.reason == "idle" else why
            self._elsewhere = True
            back = f"{self._prefix} s takes it back"
            self._say(f"{sanitize(message.by)} took the turn{why}; {back}", NEWS_S)
        elif isinstance(message, turn_messages.HandedOver):
            self._since = handoff_line(message.handoff, self._you)
            if self._since:
                self._say_gained()
        else:
            return False
        return True

    def failed(self, request: int, refused: bytes = b"") -> None:
        """This was refused, and the caller shows the reason: the request for the turn, or keys that
        another state than the turn forbids (a halt). What follows them in their line goes too."""
        self._refused += refused
        if refused or request == self._asked:
            self._drop_held()

    def lost(self) -> None:
        """The connection is gone, and with it what was asked."""
        self._drop_held()
        self._elsewhere = False
        self._commands.clear()

    def _drop_held(self) -> None:
        if dropped := self._refused + self._held:
            self._unsent.dropped(dropped, self._clock())
        self._forget_held()

    def _type_held(self) -> None:
        """We have the turn: what waited for it goes, in the order in which it was typed."""
        if self._overflowed:
            self._drop_held()
            self._say(_LINE_DROPPED, NEWS_S)
            return
        held = self._refused + self._held
        self._forget_held()
        if held:
            self._type_again(held)

    def _forget_held(self) -> None:
        self._asked, self._probing, self._overflowed = 0, False, False
        self._refused = self._held = b""

    def _answered(self, shown: turn_messages.TurnShown) -> None:
        self._elsewhere = bool(shown.turn.holder) and not shown.yours
        if shown.id == self._asked and shown.yours:
            self._type_held()
        elif shown.id == self._asked:
            self._drop_held()
            keys = f"you are waiting, your keys are not sent. {self._prefix} s seizes it"
            self._say(f"{turn_line(shown, self._you)}; {keys}", NEWS_S)
        elif shown.id in self._commands:
            self._commands.discard(shown.id)
            self._say(turn_line(shown, self._you), NEWS_S)

    def _on_turn_event(self, event: turn_messages.TurnMessage) -> None:
        self._elsewhere = bool(event.turn.holder) and not event.yours
        if self._probing and event.yours:
            self._type_held()
        who = sanitize(event.actor)
        if event.step == "request" and event.yours and event.turn.queue:
            asks = event.turn.queue[-1]
            words = f": {sanitize(asks.message)}" if asks.message else ""
            grants = f"{self._prefix} g grants it"
            self._say(f"{sanitize(asks.name)} asks for the turn{words}; {grants}", NEWS_S)
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


def turn_line(shown: turn_messages.TurnShown, you: str) -> str:
    """Who has the turn and who waits, in one line."""
    turn = shown.turn
    if not turn.holder:
        return "nobody has the turn: type to take it"
    how = " by seizure" if turn.seized else ""
    blind = ", blind" if turn.blind else ""
    waiting = ", ".join(called(one.name, you) for one in turn.queue)
    holder = "you" if shown.yours else sanitize(turn.holder_name)
    return f"{holder} {has(holder)} the turn{how}{blind}" + (
        f"; waiting: {waiting}" if waiting else ""
    )


def handoff_line(handoff: Handoff, you: str) -> str:
    """What a new holder must know, in one line; "" when nothing happened."""
    parts = []
    if handoff.commands:
        count = len(handoff.commands) + handoff.commands_left_out
        by = sorted({called(each.actor, you) for each in handoff.commands if each.actor})
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


def _receipt_text(receipt: Receipt, you: str, prefix: str) -> str:
    before = f" from {sanitize(receipt.before)}" if receipt.before not in ("", you) else ""
    before += "; NOT recorded" if receipt.unrecorded else ""
    if not receipt.scope:
        return f"{_GAINED}{before}"
    if receipt.frozen:
        frozen = f"{receipt.tasks} tasks frozen in {receipt.seconds * 1000:.0f} ms"
        return f"{_GAINED}{before}; {frozen}; {prefix} u resumes"
    return f"{_GAINED}{before}; NOT frozen: {len(receipt.running)} processes still run"
