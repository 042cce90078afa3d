"""Which session a connection comes from, and the actors behind it (A11).

A process that is in no actor's leaf was started by the session's first program before anybody
wrote, or has moved itself: it counts as everybody's that had a hand in the session. So does every
process at level plain, which has no leaves.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Protocol

from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import peer
from holdfast.core import events as ev
from holdfast.core.access import inside_rules
from holdfast.core.session import SessionMachine
from holdfast.host.clock import now
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.ids import HOST_ACTOR, ActorId, SessionId
from holdfast.model.inside import Inside
from holdfast.model.limits import TURN_HOLDERS_MAX


class WrittenSession(Protocol):
    """A live session."""

    spec: SessionSpec
    core: SessionMachine


class WrittenElsewhere(WrittenSession, Protocol):
    """A live session in which a program of another one writes."""

    def handle(self, event: ev.SessionEvent) -> object: ...


def inside_of(
    sock: socket.socket, live: Mapping[SessionId, WrittenSession], own: peer.OwnTraces
) -> Inside | None:
    """None when the peer runs outside of every session. Raises NotServedError for one in a session
    that is not among them, as while it is being started."""
    found = peer.inside(sock, [each.spec for each in live.values()], own)
    if found is None:
        return None
    writers = _writers(live[found.session])
    actors = tuple(map(ActorId, found.actors)) or writers
    return Inside(found.session, actors, writers, bool(live[found.session].spec.place.cgroup))


def note_writers(inside: Inside | None, written: WrittenElsewhere) -> None:
    """Before a program in one session writes in another, or when it has started one."""
    actors = inside_rules.hands_on(inside, written.spec.id) if inside is not None else ()
    if not written.core.turn.has_written(actors):
        written.handle(ev.WrittenFromInside(HOST_ACTOR, now(), actors))


def _writers(session: WrittenSession) -> tuple[ActorId, ...]:
    directory, held = session.spec.place.cgroup, session.core.turn.holders
    leaves = cgroup.leaves(directory) if directory else ()
    everybody = dict.fromkeys((session.spec.created_by, *held, *leaves))
    known = tuple(ActorId(each) for each in everybody if each)
    # Somebody whom nobody knows may do nothing.
    return (*known, ActorId(HOST_ACTOR)) if len(held) >= TURN_HOLDERS_MAX else known
