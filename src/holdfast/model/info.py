"""What the host tells about a session and about itself. These fields are the stable ones of
`--json`; docs/cli.md documents each."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState


class CommandRecord(Record):
    """One command line as the session's own shell reported it."""

    seq: int
    text: str
    cwd: str
    began_at: float
    began_offset: int
    status: int | None = None  # None while it runs
    ended_at: float | None = None
    ended_offset: int | None = None


class SessionInfo(Record):
    """A session at one moment."""

    id: SessionId
    name: str
    state: SessionState
    level: Level
    epoch: int
    user: str
    argv: tuple[str, ...]
    cwd: str  # of the main process now, as the kernel says; the starting one when unreadable
    size: Size
    created_at: float
    pid: int  # the main process, in the host's numbering; 0 when ended
    operators: int  # attached now
    observers: int  # of these, those that only watch
    output_offset: int  # bytes printed in the whole life of the session
    held_from: int  # oldest output offset still held
    last_output_at: float | None = None
    title: str = ""
    waiting_line: str = ""  # the prompt text when state is input or secret
    shell: str = ""  # bash, zsh, fish when its commands are reported
    last_command: CommandRecord | None = None
    ending: Ending | None = None
    ended_at: float | None = None


class Finding(Record):
    """One line of `hold doctor`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class HostInfo(Record):
    """A host and what it can do."""

    version: str
    daemon_pid: int
    keeper_pid: int
    started_at: float  # of this daemon
    restarts: int  # of the daemon since the keeper began
    user: str
    level: Level
    home: str
    sessions: int
    findings: tuple[Finding, ...]
