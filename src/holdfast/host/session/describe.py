"""A live session in the words of `model.info`: what `ls`, `show` and every attach report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core.activity import judge
from holdfast.core.attachments import Attachments
from holdfast.core.session import SessionMachine
from holdfast.core.session_state import State
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.screen_view import View
from holdfast.model.graph import Evidence
from holdfast.model.ids import OperatorId
from holdfast.model.info import Attendee, SessionInfo
from holdfast.model.limits import ATTENDEES_NAMED
from holdfast.model.state import SessionState
from holdfast.wire.messages import session as m

if TYPE_CHECKING:
    from holdfast.host.keeper_link import KeeperLink
    from holdfast.host.session.lease import SessionLease
    from holdfast.host.session.output import OutputPump
    from holdfast.host.session.presence import Presence
    from holdfast.host.session.record import SessionRecord
    from holdfast.host.session.shell_commands import ShellCommands
    from holdfast.host.session.state_since import StateSince
    from holdfast.host.session.state_watch import StateWatch

_LINE_CHARS = 200
# DEC private modes that programs set which draw the whole screen: the alternate screen, and
# application cursor keys (`top` draws on the primary screen). Prompts of one key set neither.
_FULL_SCREEN_MODES = (1049, 1047, 47, 1)


class DescribedSession(Protocol):
    """A live session, as far as people are told of it."""

    spec: SessionSpec
    core: SessionMachine
    ring: Ring
    view: View
    output: OutputPump
    commands: ShellCommands
    presence: Presence
    journal: SessionRecord
    keeper: KeeperLink
    leasing: SessionLease | None
    since: StateSince
    watching: StateWatch

    @property
    def ungated(self) -> str: ...

    def evidence(self) -> Evidence: ...

    def lease_allows(self) -> bool: ...

    def shaped_by(self) -> tuple[str, ...]: ...


def info(live: DescribedSession, name: Callable[[str | None], str]) -> SessionInfo:
    """Everything, as of now."""
    spec, core, ring, view = live.spec, live.core, live.ring, live.view
    state = live.watching.current_state()
    waiting_line, full_screen = waiting_at(live, state)
    clients = {operator.id: operator.client for operator in live.presence.attached()}
    ended = state.is_over
    seats, turn = core.attachments, core.turn
    return SessionInfo(
        id=spec.id,
        name=spec.name,
        state=state,
        level=spec.level,
        epoch=spec.epoch,
        user=spec.user,
        argv=spec.argv,
        cwd=spec.cwd if ended else cwd(spec),
        size=core.size,
        created_at=spec.created_at,
        pid=0 if ended else spec.place.shell_pid or spec.place.pid,
        operators=seats.count(),
        observers=seats.observers(),
        output_offset=ring.head,
        held_from=ring.tail,
        last_output_at=live.output.last_at,
        title=view.title,
        waiting_line=waiting_line,
        full_screen=full_screen,
        shell=spec.shell,
        last_command=live.commands.last,
        shaped_by=live.shaped_by(),
        ending=core.ending,
        ended_at=time.time() if ended else None,
        labels=spec.labels,
        workspace=spec.workspace or spec.cwd,
        holder=name(turn.holder),
        waiting=tuple(name(one.actor) for one in turn.queue),
        lease=live.leasing.info() if live.leasing is not None else None,
        present=() if ended else present(seats, clients, name),
        unrecorded=live.journal.unrecorded(),
        keeper_pid=0 if ended else live.keeper.pid,
        ungated="" if ended else live.ungated,
        held=core.held.id if core.held is not None else "",
        state_since=_since(live, state),
        pinned=core.pinned,
    )


def _since(live: DescribedSession, state: SessionState) -> float | None:
    standing = live.since.look()
    if standing.state:
        return standing.at
    return live.watching.seen_at(state) if state is SessionState.STOPPED else None


def state_event(live: DescribedSession, state: SessionState) -> m.StateEvent:
    line, full_screen = waiting_at(live, state)
    spec, shaped_by = live.spec, live.shaped_by()
    return m.StateEvent(
        spec.id, spec.name, state, time.time(), line, live.core.ending, full_screen, shaped_by
    )


def waiting_at(live: DescribedSession, state: SessionState) -> tuple[str, bool]:
    """The line the cursor is on, when a program waits there; and whether it is a full-screen
    program, which has no such line."""
    if state not in (SessionState.INPUT, SessionState.SECRET):
        return "", False
    if live.lease_allows():
        live.output.drain()  # the prompt may be printed and not read yet
    if draws_full_screen(live.view) and not live.evidence().canonical:
        return "", True
    return cursor_line(live.view), False


def present(
    seats: Attachments,
    clients: Mapping[OperatorId | None, str],
    name: Callable[[str | None], str],
) -> tuple[Attendee, ...]:
    """Who is attached, first come first."""
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


def state(decided: State, evidence: Callable[[], Evidence]) -> SessionState:
    """What the session is doing, from kernel evidence where the session machine does not say."""
    if decided.is_over:
        if decided.is_asleep:
            return SessionState.ASLEEP
        return SessionState.LOST if decided.is_lost else SessionState.ENDED
    if decided.shows_halted:
        return SessionState.HALTED
    found = judge(evidence())
    # Gone, but not reaped yet: it is reported as ended in a moment, with its true status.
    return SessionState.WORKING if found is SessionState.ENDED else found


def draws_full_screen(view: View) -> bool:
    """By the terminal modes in force. A program that was killed leaves them set, so this says
    something only while the terminal is raw."""
    return any(map(view.mode, _FULL_SCREEN_MODES))


def cursor_line(view: View) -> str:
    """The line the cursor is on."""
    _, row = view.cursor()
    lines = view.text().split("\n")
    return lines[row].strip()[:_LINE_CHARS] if row < len(lines) else ""


def cwd(spec: SessionSpec) -> str:
    return cwd_now(spec) or spec.cwd


def cwd_now(spec: SessionSpec) -> str:
    """ "" when its main process is gone, or is nobody's to look at."""
    try:
        return os.readlink(f"/proc/{spec.place.shell_pid or spec.place.pid}/cwd")
    except OSError:
        return ""
