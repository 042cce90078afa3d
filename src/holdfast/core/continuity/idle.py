"""Which sessions nobody uses any longer, and what becomes of them (M9).

A session is *idle* while nothing of this holds: somebody is attached, it printed or was written to
lately, it used the processor, a program of it is at work, an approval is open, a server of it
listens, a connection is forwarded into it. Each of these is *use*, and dates it. One that has been
idle for as long as its level's threshold is due: a warning goes out, and after a while it is
reaped. Where more idle sessions than wanted stay in memory, those that were used longest ago are
due before that.

Time comes in with the evidence. Deliberately absent: where evidence comes from, and how a session
is evicted or ended (host/continuity/reaper.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.state import Level, SessionState

# Processor time between two looks that is no use: a shell that wakes up for a timer.
CPU_NOISE_S = 0.05


class IdleAction(StrEnum):
    """What becomes of an idle session."""

    EVICT = "evict"  # checkpointed, then asleep: it wakes when it is needed
    END = "end"  # ended, for good; only where a setting says so
    KEEP = "keep"  # reported as idle, and left alone


class Use(Record):
    """One session at one moment, as host and kernel say."""

    at: float
    state: SessionState
    operators: int
    last_used_at: float  # began, printed, was written to, or was left by an operator: the latest
    cpu_s: float  # used by its processes until now
    working: str = ""  # a program that is at work, beside the one that waits for the terminal
    listening: str = ""  # an address on which a server of it listens
    approvals: int = 0  # that are open
    forwarded: int = 0  # connections into it


class Standing(Record):
    """What is known of a session's use."""

    idle_since: float
    busy: str  # what uses it now, for people; empty: nothing does
    cpu_s: float
    warned_at: float | None = None

    @property
    def is_idle(self) -> bool:
        return not self.busy


class IdlePolicy(Record):
    """Settings of a host."""

    after_s: dict[str, float]  # by level: idle for so long, it is due; 0: never by time alone
    warn_s: float  # between the warning and the deed
    end_unmovable: bool  # whether what cannot be evicted is ended
    resident_max: int  # idle sessions that may stay in memory and can be evicted; 0: any number


class Candidate(Record):
    """A live session, as far as reaping judges it."""

    id: SessionId
    level: Level
    pinned: bool
    evictable: bool
    standing: Standing


class Due(Record):
    """A session that has been idle for too long."""

    id: SessionId
    action: IdleAction
    why: str  # for people
    at: float  # when it is reaped, if nobody uses it before; in the past: now
    warn: bool  # nobody was warned yet


def look(before: Standing | None, seen: Use) -> Standing:
    """What is known after this look. Processor time between two looks is use until the second; a
    first look knows nothing of it."""
    busy = _use(seen)
    cpu = before is not None and seen.cpu_s - before.cpu_s > CPU_NOISE_S
    if not busy and cpu:
        busy = "its programs used the processor"
    if busy:
        return Standing(seen.at, busy, seen.cpu_s)
    # A session that was busy at the last look has been idle since then, at the earliest.
    since = seen.last_used_at if before is None else max(seen.last_used_at, before.idle_since)
    since = min(since, seen.at)
    warned = before.warned_at if before is not None else None
    if warned is not None and since > warned:
        warned = None  # it was used since: another warning is due before it goes
    return Standing(since, "", seen.cpu_s, warned)


_AWAITING = (SessionState.PROMPT, SessionState.INPUT, SessionState.SECRET, SessionState.STOPPED)


def _use(seen: Use) -> str:
    if seen.operators:
        return f"{_counted(seen.operators, 'operator')} attached"
    if seen.approvals:
        return f"{_counted(seen.approvals, 'approval')} open"
    if seen.forwarded:
        return f"{_counted(seen.forwarded, 'connection')} forwarded into it"
    if seen.listening:
        return f"a server listens on {seen.listening}"
    if seen.state is SessionState.HALTED:
        return "it is halted, which somebody decided"
    if seen.state not in _AWAITING:
        return f"{seen.working or 'a program'} is at work"
    if seen.working:
        return f"{seen.working} is at work"
    return ""


def _counted(count: int, what: str) -> str:
    return f"1 {what} is" if count == 1 else f"{count} {what}s are"


def due(candidates: Iterable[Candidate], policy: IdlePolicy, now: float) -> tuple[Due, ...]:
    """Those that are to be warned of or reaped, used longest ago first. Whatever is pinned, busy,
    or of a level without a threshold is not among them."""
    idle = sorted(
        (each for each in candidates if each.standing.is_idle and not each.pinned),
        key=lambda each: (each.standing.idle_since, each.id),
    )
    found: dict[SessionId, Due] = {}
    for each in idle:
        after = policy.after_s.get(each.level, 0.0)
        since = each.standing.idle_since
        if after and now - since >= after:
            found[each.id] = _due(each, policy, now, f"idle for {_time(now - since)}")
    if policy.resident_max:
        resident = [each for each in idle if each.evictable]
        for each in resident[: max(0, len(resident) - policy.resident_max)]:
            why = f"more than {policy.resident_max} idle sessions are resident"
            found.setdefault(each.id, _due(each, policy, now, why))
    return tuple(found.values())


def _due(each: Candidate, policy: IdlePolicy, now: float, why: str) -> Due:
    action = IdleAction.KEEP
    if each.evictable:
        action = IdleAction.EVICT
    elif policy.end_unmovable:
        action = IdleAction.END
    warned = each.standing.warned_at
    if warned is None:
        # A warning gives its time even to what was due long ago, as after a night without power.
        return Due(each.id, action, why, now + policy.warn_s, action is not IdleAction.KEEP)
    return Due(each.id, action, why, warned + policy.warn_s, False)


def _time(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
