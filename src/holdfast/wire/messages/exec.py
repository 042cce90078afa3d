"""Running one command line in a session's own shell, and joining one that was begun before. The
rest of the protocol is in messages.py and authority.py."""

from __future__ import annotations

from holdfast.wire.messages.base import Answer, Request


class Exec(Request):
    """One command line for the session's own shell, which must be at its prompt.

    Answered by ExecBegan, then ExecOutput as it comes, then ExecEnded (all with this id). The same
    again joins the command it began the first time: by `key`, or without one by operator and
    `seq`."""

    tag = "exec"
    session: str
    seq: int
    command: str
    key: str = ""  # of the asker's choosing; the actor's own in this session
    intent: str = ""  # what it is for, for people to read in the journal


class ExecBegan(Answer):
    tag = "exec_began"
    seq: int  # of the command in its shell
    journal_seq: int = 0  # of the journal's record that it began
    offset: int = 0  # of the session's output when it was typed


class ExecOutput(Answer):
    tag = "exec_output"
    data: bytes
    offset: int = 0  # of its first byte in the session's output


class ExecEnded(Answer):
    tag = "exec_ended"
    status: int
    cwd: str
    seconds: float
    lost_bytes: int = 0  # output that rolled off before it could be sent
