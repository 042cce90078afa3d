"""What a session is started with, and where it runs."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.record import Record
from holdfast.model.size import Size
from holdfast.model.state import Level


class LaunchSpec(Record):
    """Everything the launch needs; complete, so that the launcher decides nothing."""

    session: SessionId
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    size: Size
    level: Level
    hostname: str = ""  # inside the session's own uts namespace; "" keeps the host's
    # directories that the session does not see, parents first; empty at level plain
    hidden: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()  # directories below these that it sees
    gate: bool = False  # under the exec gate's system call filter; not at level plain


class Place(Record):
    """Where a launched session lives on this host: what is needed to observe, freeze, dump it."""

    pid: int  # of the session's first process (its init), in the host's numbering
    shell_pid: int  # of the main process the init started; 0 when there is no init of ours
    tty: str  # the slave's path as the session sees it
    cgroup: str  # absolute directory; "" at level plain
    mounts: tuple[str, ...] = ()  # host mounts bound into the session, for a later checkpoint
    hidden: tuple[str, ...] = ()  # directories of the host's that are covered there
    kept: tuple[str, ...] = ()  # and those below them that are not
