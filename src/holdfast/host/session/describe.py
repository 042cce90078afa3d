"""A live session in the words of `model.info`: what `ls`, `show` and every attach report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.core.activity import judge
from holdfast.core.attachments import Attachments
from holdfast.core.session import SessionMachine
from holdfast.core.session_state import State
from holdfast.host.session.parcel import SessionSpec
from holdfast.host.session.screen_view import View
from holdfast.model.graph import Evidence
from holdfast.model.ids import OperatorId
from holdfast.model.info import Attendee, CommandRecord, LeaseInfo, SessionInfo
from holdfast.model.limits import ATTENDEES_NAMED
from holdfast.model.state import SessionState

_LINE_CHARS = 200
# DEC private modes that programs set which draw the whole screen: the alternate screen, and
# application cursor keys (`top` draws on the primary screen). Prompts of one key set neither.
_FULL_SCREEN_MODES = (1049, 1047, 47, 1)


def info(
    spec: SessionSpec,
    core: SessionMachine,
    ring: Ring,
    view: View,
    *,
    state: SessionState,
    state_since: float | None,
    waiting_line: str,
    full_screen: bool,
    last_output_at: float | None,
    last_command: CommandRecord | None,
    shaped_by: tuple[str, ...],
    lease: LeaseInfo | None,
    keeper_pid: int,
    clients: Mapping[OperatorId | None, str],
    unrecorded: str,
    ungated: str,
    held: str,
    name: Callable[[str | None], str],
) -> SessionInfo:
    """Everything, as of now. `clients`: the programs by which operators are attached."""
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
        last_output_at=last_output_at,
        title=view.title,
        waiting_line=waiting_line,
        full_screen=full_screen,
        shell=spec.shell,
        last_command=last_command,
        shaped_by=shaped_by,
        ending=core.ending,
        ended_at=time.time() if ended else None,
        labels=spec.labels,
        workspace=spec.workspace or spec.cwd,
        holder=name(turn.holder),
        waiting=tuple(name(one.actor) for one in turn.queue),
        lease=lease,
        present=() if ended else present(seats, clients, name),
        unrecorded=unrecorded,
        keeper_pid=0 if ended else keeper_pid,
        ungated="" if ended else ungated,
        held=held,
        state_since=state_since,
        pinned=core.pinned,
    )


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
