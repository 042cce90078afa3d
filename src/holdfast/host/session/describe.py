"""A live session in the words of `model.info`: what `ls`, `show` and every attach are told."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from holdfast.core.activity import judge
from holdfast.model.info import Attendee, SessionInfo
from holdfast.model.limits import ATTENDEES_NAMED
from holdfast.model.state import SessionState

if TYPE_CHECKING:
    from holdfast.host.session.live_session import LiveSession

_LINE_CHARS = 200


def info(live: LiveSession) -> SessionInfo:
    """Everything, as of now."""
    state = live.state()
    ended = state is SessionState.ENDED
    spec, seats = live.spec, live.core.attachments
    turn, name = live.core.turn, live.daemon.actors.name
    return SessionInfo(
        id=spec.id,
        name=spec.name,
        state=state,
        level=spec.level,
        epoch=spec.epoch,
        user=spec.user,
        argv=spec.argv,
        cwd=spec.cwd if ended else _cwd(live),
        size=live.core.size,
        created_at=spec.created_at,
        pid=0 if ended else spec.place.shell_pid or spec.place.pid,
        operators=seats.count(),
        observers=seats.observers(),
        output_offset=live.ring.head,
        held_from=live.ring.tail,
        last_output_at=live.output.last_at,
        title=live.view.title,
        waiting_line=waiting_line(live, state),
        shell=spec.shell,
        last_command=live.commands.last,
        ending=live.core.ending,
        ended_at=time.time() if ended else None,
        labels=spec.labels,
        holder=name(turn.holder),
        waiting=tuple(name(one.actor) for one in turn.queue),
        lease=live.leasing.info() if live.leasing is not None else None,
        present=() if ended else _present(live),
        unrecorded=live.journal.unrecorded(),
    )


def _present(live: LiveSession) -> tuple[Attendee, ...]:
    clients = {operator.id: operator.client for operator in live.audience}
    seats, name = live.core.attachments, live.daemon.actors.name
    return tuple(
        Attendee(
            actor=seat.actor,
            name=name(seat.actor),
            client=clients.get(seat.operator, ""),
            observe=seat.operator in seats.only_observing,
            since=seat.since,
        )
        for seat in seats.operators()[:ATTENDEES_NAMED]
    )


def state(live: LiveSession) -> SessionState:
    """From kernel evidence, taken now."""
    if live.core.ending is not None:
        return SessionState.ENDED
    if live.core.state.shows_halted:
        return SessionState.HALTED
    spec = live.spec
    evidence = live.daemon.observation.evidence(
        spec.place, live.fds.master, shell_is_shell=spec.is_shell
    )
    found = judge(evidence)
    # Gone, but not reaped yet: it is told as ended in a moment, with its true status.
    return SessionState.WORKING if found is SessionState.ENDED else found


def waiting_line(live: LiveSession, state: SessionState) -> str:
    """The line the cursor is on, when a program waits there."""
    if state not in (SessionState.INPUT, SessionState.SECRET):
        return ""
    if live.lease_allows():
        live.output.drain()  # the prompt may be printed and not taken yet
    _, row = live.view.cursor()
    lines = live.view.text().split("\n")
    return lines[row].strip()[:_LINE_CHARS] if row < len(lines) else ""


def _cwd(live: LiveSession) -> str:
    place = live.spec.place
    try:
        return os.readlink(f"/proc/{place.shell_pid or place.pid}/cwd")
    except OSError:
        return live.spec.cwd
