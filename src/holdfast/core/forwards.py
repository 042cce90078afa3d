"""Connections carried to ports of a session's programs: whose each is, and who may have one.

To talk to a program can change things, as typing can, so it needs the same rights as attaching to
write. It needs no turn: the turn orders what is typed into one terminal, and there is no such order
between a terminal and a socket. Each connection is judged when it is opened, and again whenever
rights change: one whose actor lost them is cut. The bytes do not come here.
"""

from __future__ import annotations

from holdfast.core import effects as do
from holdfast.core import events as ev
from holdfast.core.access.authority import Authority
from holdfast.model.envelope import Right
from holdfast.model.errors import HoldfastError, InvalidArgument
from holdfast.model.ids import ActorId, OperatorId, SessionId

_RIGHTS = (Right.OBSERVE, Right.INPUT)


class Forwards:
    """Of one incarnation."""

    def __init__(self, session: SessionId, labels: tuple[str, ...], authority: Authority) -> None:
        self._session, self._labels, self._authority = session, labels, authority
        self._open: dict[tuple[OperatorId, int], ActorId] = {}

    def judge(self, event: ev.ForwardAsked) -> None:
        """Raise unless this actor may have a connection now."""
        if (event.operator, event.number) in self._open:
            raise InvalidArgument(f"connection {event.number} is open already")
        self._check(ActorId(event.actor), event.now)

    def open(self, event: ev.ForwardAsked) -> list[do.Effect]:
        """It counts as one input against a rate; its bytes are held back by their own window."""
        actor = ActorId(event.actor)
        self._authority.charge(actor, self._session, self._labels, 0, event.now)
        self._open[event.operator, event.number] = actor
        return []

    def close(self, event: ev.ForwardLeft) -> list[do.Effect]:
        self._open.pop((event.operator, event.number), None)
        return []

    def count(self) -> int:
        return len(self._open)

    def actors(self) -> set[str]:
        """Whose rights matter while these are open."""
        return set(self._open.values())

    def without_rights(self, now: float) -> list[do.Effect]:
        """Cut those whose actor may no longer have them."""
        refused = {actor: error for actor in self.actors() if (error := self._refusal(actor, now))}
        cut = [
            do.CutForward(*place, refused[actor].code, refused[actor].message)
            for place, actor in self._open.items()
            if actor in refused
        ]
        return self._cut(cut)

    def fenced(self) -> list[do.Effect]:
        """Cut all: another incarnation may act from now on."""
        why = "this host lost the session's lease"
        return self._cut([do.CutForward(*place, "fenced", why) for place in self._open])

    def _cut(self, cut: list[do.CutForward]) -> list[do.Effect]:
        for each in cut:
            del self._open[each.operator, each.number]
        return [*cut]

    def _refusal(self, actor: str, now: float) -> HoldfastError | None:
        try:
            self._check(ActorId(actor), now)
        except HoldfastError as error:
            return error
        return None

    def _check(self, actor: ActorId, now: float) -> None:
        for right in _RIGHTS:
            self._authority.check(actor, right, self._session, self._labels, now)
