"""What was asked of a session and refused, as the journal tells it.

The first refusal of a kind is an entry at once; those like it that follow soon are counted and told
as one, so that nobody can fill the disk by being refused, alone or by turns with others.
"""

from __future__ import annotations

from holdfast.core import events as ev
from holdfast.core.session import TurnStep
from holdfast.core.turn import events as turn
from holdfast.journal.entries import RefusedEntry
from holdfast.model.record import Record

# In the words of the protocol.
_ASKED: dict[type[Record], str] = {
    ev.ChannelOpened: "attach",
    ev.InputOffered: "input",
    ev.SizeAsked: "resize",
    ev.SignalAsked: "signal",
    ev.PolicyAsked: "set_turn_policy",
    ev.SeizeAsked: "seize",
    ev.ForwardAsked: "forward",
    ev.HaltAsked: "halt",
    ev.ResumeAsked: "resume",
    ev.EndAsked: "end",
    ev.RenameAsked: "rename",
    ev.PinAsked: "pin",
    ev.DetachAsked: "detach_terminals",
    turn.RequestStep: "request_turn",
    turn.RenewStep: "request_turn",
    turn.GrantStep: "grant_turn",
    turn.YieldStep: "yield_turn",
    turn.HandOff: "hand_off_turn",
    turn.RevokeStep: "revoke_turn",
    turn.WithdrawStep: "withdraw_turn",
    turn.BlindStep: "set_blind",
}


class Refusals:
    """Those counted since the first of their kind was recorded, by whose and what they were."""

    def __init__(self) -> None:
        self._counted: dict[tuple[str, RefusedEntry], tuple[int, int]] = {}

    def take(self, event: ev.SessionEvent, code: str) -> tuple[str, RefusedEntry] | None:
        """The entry for the first of its kind; None: it is counted with those like it."""
        kind = event.actor, _entry(event, code)
        if kind not in self._counted:
            self._counted[kind] = 0, 0
            return event.actor, kind[1].replace(size=_size(event))
        count, size = self._counted[kind]
        self._counted[kind] = count + 1, size + _size(event)
        return None

    def drain(self) -> list[tuple[str, RefusedEntry]]:
        """Entries for what was counted; from here on each kind has a first again."""
        counted, self._counted = self._counted, {}
        return [
            (actor, like.replace(count=count, size=size))
            for (actor, like), (count, size) in counted.items()
            if count
        ]


def _entry(event: ev.SessionEvent, code: str) -> RefusedEntry:
    return RefusedEntry(str(getattr(event, "operator", "")), _asked(event), code)


def _asked(event: ev.SessionEvent) -> str:
    if isinstance(event, ev.ApprovalDecided):
        return "approve" if event.approve else "deny"
    kind = type(event.step) if isinstance(event, TurnStep) else type(event)
    return _ASKED.get(kind, kind.__name__.lower())


def _size(event: ev.SessionEvent) -> int:
    return len(event.data) if isinstance(event, ev.InputOffered) else 0
