"""Policies of the gate as people and programs see them. Values only."""

from __future__ import annotations

from holdfast.model.gate_facts import Facts
from holdfast.model.record import Record


class PolicyInfo(Record):
    """A policy in force."""

    scope: str  # `host`, `label:NAME` or `session:ID`
    # an admin's floor: judged besides whatever is set for labels and sessions; the stricter counts
    floor: bool
    source: str  # what it was set from: a file's name, or `starter:NAME`
    format: str  # `cedar`, `toml` or `webhook`
    digest: str  # SHA-256 of its text, 64 hexadecimal digits
    rules: int  # how many it has
    set_by: str  # id of the actor that set it
    set_at: float  # seconds since 1970
    text: str  # as it was given
    session: str = ""  # of a session's: its name
    counts: bool = True  # asked for one session: whether it counts there; a narrower one hides it


class JudgedLine(Record):
    """What a policy says of one line."""

    seq: int  # of its entry in the journal; 0 when it is not from one
    text: str  # the line, cut to 400 characters
    actors: tuple[str, ...]  # names of those who had a part in it, whoever set it off first
    outcome: str  # `refuse` or `hold`
    reason: str  # of the rule
    policy: str  # the scope and the id of the rule
    quorum: int = 1  # of a hold: how many must approve
    at: float = 0.0  # seconds since 1970, when it began; 0 when it is not from a journal


class PartShown(Record):
    """An actor behind an effect."""

    name: str  # of the actor
    kind: str  # of the actor: `human`, `agent`, `service` or `device`
    part: str  # how it had a part: `trigger`, `typed`, `state` ...
    what: str = ""  # of state and files: which
    command: int = 0  # number of the command by which it did that; 0: not known


class Explanation(Record):
    """Why a line was judged as it was, or would be now."""

    seq: int  # of the entry in the journal
    kind: str  # of the effect: `line`, `input`, `exec` ...
    text: str  # the line
    at: float  # seconds since 1970
    contributors: tuple[PartShown, ...]  # who had a part in it, as it was recorded
    facts: Facts  # what a policy knows of it
    outcome: str  # `allow`, `refuse` or `hold`: by the policies in force now
    reason: str  # of the rule
    policy: str  # the scope and the id of the rule; empty: no rule
    quorum: int = 1  # of a hold: how many must approve
    recorded: str = ""  # what was decided then; empty: nothing was recorded
    recorded_reason: str = ""  # why
    recorded_policy: str = ""  # by which rule
