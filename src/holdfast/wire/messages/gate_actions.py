"""Messages about structured actions: carrying one out, its trace, and an actor's score."""

from __future__ import annotations

from holdfast.model.measured import ActionTrace, ActorScore
from holdfast.wire.messages.base import Answer, Request


class Act(Request, tag="action"):
    """Carry out a structured action: a command line as `exec` runs one, with what it is for and
    what it is expected to do. It is checked before anything runs; what it did is measured when it
    has ended. Answered by ActionTaken, then as `exec` is: ExecBegan, any number of `exec_output`,
    and `exec_ended` or `failed`, all with this id."""

    session: str
    seq: int  # number of this input, see *Input*
    # the action as JSON, of the form in action-schema.json; at most `ACTION_MAX_BYTES`
    action: str
    # codes of the refusals after which the client tries it again, for its trace; the last
    # `ACTION_RETRIES_MAX` are kept
    retried: tuple[str, ...] = ()


class ActionTaken(Answer, tag="action_taken"):
    """The action was typed, now or before."""

    action: str  # its id, for `trace`
    repeated: bool = False  # its key was used before: this joins the first time, and runs nothing


class GetTrace(Request, tag="trace"):
    """Everything about one action of a live session or an ended one. Answered by TraceShown."""

    session: str
    # the action's id, its key, or the shell's number for its command; of keys that several actors
    # used, the asker's own
    action: str
    wait: bool = False  # answer only when it was measured, or can no longer be


class TraceShown(Answer, tag="trace_shown"):
    trace: ActionTrace  # the action now


class GetScore(Request, tag="score"):
    """An actor's record on this host. Its own, or of an actor of the asker's unix user; root's
    actors see everybody's. Answered by ScoreShown."""

    actor: str = ""  # name or id; empty is the asker
    days: int = 30  # so many days up to today, at most `SCORE_DAYS`


class ScoreShown(Answer, tag="score_shown"):
    score: ActorScore  # the record now
