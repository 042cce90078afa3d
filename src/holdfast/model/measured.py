"""What an action did, as the host measured it from outside: effects, how they compare with what was
declared, the trace of the action, and the record of an actor over time.

Values only. Who looks: host/gate and adapters; who compares and counts: core/gate.
"""

from __future__ import annotations

from holdfast.model.action import Action
from holdfast.model.ids import SessionId
from holdfast.model.record import Record


class FileEffects(Record):
    """Files that are different, by absolute path; a directory has a slash at its end."""

    created: tuple[str, ...] = ()  # were not there before
    changed: tuple[str, ...] = ()  # content, mode or times
    deleted: tuple[str, ...] = ()  # no longer there


class PortEffects(Record):
    """TCP ports on which processes of the session listen."""

    opened: tuple[int, ...] = ()  # since the action began
    closed: tuple[int, ...] = ()  # since the action began


class LeftProcess(Record):
    """A process that the action left running."""

    pid: int  # in the host's numbering
    name: str  # the kernel's short name
    command: str  # its command line, cut


class Effects(Record):
    """What was different after an action. Of each kind at most `ACTION_NAMED` are named."""

    files: FileEffects  # under the session's workspace and working directory
    processes: tuple[LeftProcess, ...]  # still running
    ports: PortEffects  # listening sockets
    # what changed in the shell, as `env FOO added`, `alias ls changed`
    env: tuple[str, ...]
    cwd: str  # where the shell is now, if that is another directory
    peers: tuple[str, ...]  # network addresses that its processes are connected to now
    left_out: int  # effects that are counted and not named
    partial: tuple[str, ...]  # what could not be measured, and why; empty: all of it was


class Deviation(Record):
    """One difference between what was declared and what was measured."""

    # missing: `status`, `file`, `port`, `process`, `env`, `cwd`; unexpected: `file_created`,
    # `file_changed`, `file_deleted`, `process`, `port_opened`, `port_closed`, `env`, `cwd`, `peer`
    kind: str
    what: str  # which, for people to read: a path, a port, a name


class ActionScore(Record):
    """How one action is judged."""

    valid: bool  # well-formed, and refused by nobody
    # exit status and expectations were met; null: not known
    success: bool | None
    side_effects: int | None  # undeclared effects; null: not measured
    kinds: dict[str, int]  # how many of each kind
    score: float | None  # from 0 to 1, by the formula in agents.md; null: not measured


class TraceStep(Record):
    """One record of the journal that belongs to an action."""

    seq: int  # its number in the journal
    at: float  # seconds since 1970
    what: str  # kind of the entry
    text: str = ""  # what it says, in short


class Decision(Record):
    """What the gate decided about an action's command line."""

    outcome: str  # `allow`, `refuse` or `hold`; `none` where no policy was in force
    reason: str = ""  # the policy's
    policy: str = ""  # where the rule is


class ActionTrace(Record):
    """Everything about one action: what was asked, decided, done and measured."""

    id: str  # of the action, 16 hexadecimal digits
    session: SessionId  # in which
    actor: str  # name of the actor
    actor_id: str  # its id
    declared: Action  # what was asked
    # `running`; `done`; `refused`; `not_run`: the line never reached the shell; `unknown`: it may
    # have run, and nobody can say how it ended
    state: str
    at: float  # when it was carried out, seconds since 1970
    decision: Decision  # of the gate
    command: int | None = None  # the shell's number for it
    status: int | None = None  # exit status
    cwd: str = ""  # where the shell was afterwards
    seconds: float | None = None  # how long the command took
    latency_s: float | None = None  # from the request until it was measured
    retries: tuple[str, ...] = ()  # codes of the refusals after which it was tried again
    code: str = ""  # of the error, when it came to no end
    message: str = ""  # what that error says
    output_from: int | None = None  # the session's output offset at which its output begins
    output_to: int | None = None  # and ends
    effects: Effects | None = None  # null: not measured
    missing: tuple[Deviation, ...] = ()  # declared, and not found
    unexpected: tuple[Deviation, ...] = ()  # found, and not declared
    score: ActionScore | None = None  # null while it runs
    steps: tuple[TraceStep, ...] = ()  # in the journal


class ScoreTotals(Record):
    """Actions of one actor, counted."""

    actions: int = 0  # all of them
    valid: int = 0  # well-formed, and refused by nobody
    measured: int = 0  # of the valid ones, those whose effects are known
    success: int = 0  # of the measured ones
    clean: int = 0  # of the measured ones, those without an undeclared effect
    side_effects: int = 0  # undeclared effects in all
    points: float = 0.0  # sum of the scores of all that were scored
    scored: int = 0  # how many were scored


class DayScore(Record):
    """One day of an actor, in UTC."""

    day: str  # as 2026-11-18
    totals: ScoreTotals  # of that day


class UnintendedEffects(Record):
    """Effects of one action that its actor had not declared."""

    at: float  # when they were measured, seconds since 1970
    session: SessionId  # in which
    action: str  # its id, for `trace`
    command: str  # what was carried out, cut to `UNINTENDED_COMMAND_CHARS`
    effects: tuple[Deviation, ...]  # at most `UNINTENDED_NAMED` of them
    count: int  # how many there were


class ActorScore(Record):
    """An actor's record on this host."""

    actor: str  # its id
    name: str  # its name
    score: float | None  # mean of its actions in these days; null: there are none
    recent: float | None  # mean of its last `SCORE_RECENT` actions
    recent_count: int  # how many these are
    totals: ScoreTotals  # of these days
    days: tuple[DayScore, ...]  # days on which it acted, oldest first
    # its last actions with undeclared effects, the latest first; of sessions that the asker may see
    unintended: tuple[UnintendedEffects, ...] = ()
