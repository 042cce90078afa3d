"""Numbers of a host for Prometheus, as `hold metrics` prints them. No label names a session or an
actor. Counters begin at 0 with each daemon, as Prometheus expects of a process that restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.core.continuity.idle import IdleAction
from holdfast.core.continuity.move_table import MovePhase, SourceState, TargetState
from holdfast.host.signatures import Signatures
from holdfast.model.info import Residency, SessionInfo
from holdfast.model.state import SessionState

# Nothing runs in these: a program waits for somebody to type.
_IDLE = (SessionState.PROMPT, SessionState.INPUT, SessionState.SECRET, SessionState.STOPPED)


class Counts:
    """Counted by this daemon."""

    def __init__(self) -> None:
        self.inputs = 0
        self.refusals = 0
        self.moves = Counter[str]()  # that came to this end, at this host
        self.signatures = Signatures()


class Idleness(Protocol):
    """What reaping knows and did."""

    @property
    def reaped(self) -> Mapping[IdleAction, int]: ...

    @property
    def failed(self) -> int: ...

    def population(self) -> Mapping[str, int]: ...


def text(
    sessions: Iterable[SessionInfo],
    used: Residency,
    ended_bytes: int,
    counts: Counts,
    connected: int,
    came: int,
    restarts: int,
    idleness: Idleness,
) -> str:
    """`used`: by all live sessions; `ended_bytes`: on disk, by the ended; `connected`: operators
    now, and those that `came` since this daemon started."""
    known = list(sessions)
    states = Counter(info.state for info in known)
    idle = sum(info.state in _IDLE and not info.operators for info in known)
    lines = _family("sessions", "gauge", "live sessions by what they do")
    for state in SessionState:
        if not state.is_over:
            lines.append(f'holdfast_sessions{{state="{state}"}} {states[state]}')
    for name, kind, meaning, value in (
        ("sessions_idle", "gauge", "live sessions that wait for input with nobody attached", idle),
        ("memory_bytes", "gauge", "memory of all live sessions", used.memory_bytes),
        ("processes", "gauge", "processes of all live sessions", used.processes),
        ("descriptors", "gauge", "open descriptors of all live sessions", used.descriptors),
        ("disk_bytes", "gauge", "disk used by all live sessions", used.disk_bytes),
        ("ended_disk_bytes", "gauge", "disk used by ended sessions", ended_bytes),
        ("inputs_total", "counter", "inputs taken", counts.inputs),
        ("refusals_total", "counter", "inputs and other acts on sessions refused", counts.refusals),
        ("connections", "gauge", "operators connected", connected),
        ("connections_total", "counter", "operators that connected", came),
        ("daemon_restarts_total", "counter", "daemons before this one", restarts),
    ):
        lines += [*_family(name, kind, meaning), f"holdfast_{name} {value}"]
    held = sum(info.output_offset - info.held_from for info in known)
    rolled_off = sum(info.held_from for info in known)
    for name, meaning, value in (
        ("output_held_bytes", "output of live sessions that is held", held),
        ("output_rolled_off_bytes", "output of live sessions that is held no longer", rolled_off),
    ):
        lines += [*_family(name, "gauge", meaning), f"holdfast_{name} {value}"]
    return (
        "\n".join([*lines, *_moves(known, counts), *_idle(idleness), *counts.signatures.text()])
        + "\n"
    )


def _moves(known: list[SessionInfo], counts: Counts) -> list[str]:
    phases = Counter(info.migration.phase for info in known if info.migration is not None)
    lines = _family(
        "sessions_moving", "gauge", "live sessions on their way to another host, or here"
    )
    lines += [f'holdfast_sessions_moving{{phase="{phase}"}} {phases[phase]}' for phase in MovePhase]
    lines += _family("moves_total", "counter", "moves that ended, as this host saw them")
    for outcome in (*(SourceState.MOVED, SourceState.ROLLED_BACK, SourceState.LOST), *_ARRIVALS):
        lines.append(f'holdfast_moves_total{{outcome="{outcome}"}} {counts.moves[outcome]}')
    return lines


_ARRIVALS = (TargetState.LIVE, TargetState.DISCARDED)


def _idle(idleness: Idleness) -> list[str]:
    meanings = {
        "idle": "live sessions that nothing uses",
        "due": "live sessions unused for longer than their threshold",
        "pinned": "live sessions that are never reaped",
        "evictable": "idle sessions in memory that can be evicted",
    }
    found = idleness.population()
    lines = _family("resident_sessions", "gauge", "live sessions as reaping sees them")
    lines[0] += ": " + ", ".join(f"{name}: {meaning}" for name, meaning in meanings.items())
    lines += [f'holdfast_resident_sessions{{kind="{name}"}} {found[name]}' for name in meanings]
    lines += _family("reaped_total", "counter", "sessions reaped by this daemon")
    for action in (IdleAction.EVICT, IdleAction.END):
        lines.append(f'holdfast_reaped_total{{action="{action}"}} {idleness.reaped[action]}')
    lines += _family("reap_failures_total", "counter", "sessions that could not be reaped")
    return [*lines, f"holdfast_reap_failures_total {idleness.failed}"]


def _family(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP holdfast_{name} {meaning}", f"# TYPE holdfast_{name} {kind}"]
