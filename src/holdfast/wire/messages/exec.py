"""Running one command line in a session's own shell, and joining one that was begun before. The
rest of the protocol is in messages.py and authority.py."""

from __future__ import annotations

from holdfast.wire.messages.base import Answer, Request


class Exec(Request):
    """Run one command line in the session's own shell; see *Commands with a result*. Answered by
    ExecBegan, any number of `exec_output`, and `exec_ended` or `failed`, all with this id.
    `exec_began` is left out when the shell itself refused the line."""

    tag = "exec"
    session: str
    seq: int  # number of this input, see *Input*
    command: str  # one command line, not blank
    # names this command: the same key again runs nothing and joins the first; at most
    # `EXEC_KEY_MAX_CHARS`
    key: str = ""
    # what it is for, for people to read in the journal; cut to `TURN_TEXT_MAX_CHARS`
    intent: str = ""


class ExecBegan(Answer):
    tag = "exec_began"
    seq: int  # the shell's own number for this command line
    journal_seq: int = 0  # number of the journal's record that says it began
    offset: int = 0  # output offset at which the line was typed


class ExecOutput(Answer):
    tag = "exec_output"
    data: bytes  # the next bytes the command printed, without the shell's marks
    # output offset of the first byte; a client that joins again can tell what it has already
    offset: int = 0


class ExecEnded(Answer):
    tag = "exec_ended"
    status: int  # exit status as the shell reports it
    cwd: str  # the shell's working directory afterwards
    seconds: float  # how long it took, as the host saw it
    lost_bytes: int = 0  # output that rolled off before it could be sent
