"""Which session a connection comes from, and the actors behind it (A11).

A process that is in no actor's leaf was started by the session's first program before anybody
wrote, or has moved itself: it counts as everybody's that had a hand in the session.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Protocol

from holdfast.adapters.halt import cgroup
from holdfast.adapters.proc import peer
from holdfast.host.session.parcel import SessionSpec
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.inside import Inside


class SpecifiedSession(Protocol):
    """A live session."""

    spec: SessionSpec


def inside_of(sock: socket.socket, live: Mapping[SessionId, SpecifiedSession]) -> Inside | None:
    """None when the peer runs outside of every session."""
    specs = [each.spec for each in live.values()]
    found = peer.inside(
        sock, (peer.RunningSession(each.id, each.process_tag, each.place) for each in specs)
    )
    if found is None:
        return None
    spec = live[found.session].spec
    if not spec.place.cgroup:
        return Inside(spec.id)
    everybody = (spec.created_by, *cgroup.leaves(spec.place.cgroup))
    writers = tuple(ActorId(each) for each in dict.fromkeys(everybody) if each)
    return Inside(spec.id, tuple(map(ActorId, found.actors)) or writers, writers)
