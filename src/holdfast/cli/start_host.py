"""Starting a host: the supervisor, detached from whoever asked for it."""

from __future__ import annotations

import contextlib
import os
import sys

from holdfast.model.errors import AlreadyUp, HostDown, StorageFailed
from holdfast.model.home import Home, home_of, is_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client import Host

_START_TIMEOUT_S = 20.0
RELAY_VARIABLE = "HOLDFAST_RELAY"  # tells the daemon, and each that follows it, of --listen


def started_host(client: str) -> Host:
    """The host here, started if there is none; or the machine that was asked for."""
    from holdfast.sdk.client import Host
    from holdfast.sdk.connection import target_host

    try:
        return Host(client=client)
    except HostDown:
        if not isinstance(target_host(), str):
            raise  # on another machine: not ours to start
        with contextlib.suppress(AlreadyUp):  # somebody else started it meanwhile
            start_host()
        return Host(client=client)


def carry_on(path: str) -> bool:
    """Start the host that listens at this path, if it is this user's and sessions wait for it in
    the custody of their keepers. Whether it serves now."""
    home = home_of(os.environ, os.getuid())
    if path != home.socket:
        return False
    _check_outside(home)
    if not _keepers_wait(home):
        _say_what_was_lost(home)
        return False
    start_again(home)
    return True


def start_again(home: Home) -> None:
    """Start the host as it was started the last time."""
    with contextlib.suppress(OSError), open(_relay_choice(home), encoding="utf-8") as file:
        os.environ.setdefault(RELAY_VARIABLE, file.read().strip())
    with contextlib.suppress(AlreadyUp):  # somebody else started it meanwhile
        start_host(home)


def _relay_choice(home: Home) -> str:
    """Where it is kept what `hold up` said about the relay, for the host's next start."""
    return f"{home.run}/relay"


def _keepers_wait(home: Home) -> bool:
    try:
        return any(name.endswith(".sock") for name in os.listdir(f"{home.run}/keepers"))
    except OSError:
        return False


def start_host(home: Home | None = None) -> None:
    """Start supervisor and daemon, and return once they serve. Raises AlreadyUp when they do."""
    home = home or home_of(os.environ, os.getuid())
    _check_outside(home)
    _make_places(home)
    with contextlib.suppress(OSError), open(_relay_choice(home), "w", encoding="utf-8") as file:
        file.write(os.environ.get(RELAY_VARIABLE, ""))
    log_began = os.path.getsize(home.log) if os.path.exists(home.log) else 0
    reader, writer = os.pipe()
    _spawn_supervisor(home, writer)
    os.close(writer)
    answer = _read_line(reader)
    os.close(reader)
    if answer == "already up":
        raise AlreadyUp("a host already runs here", hint="`hold ls` lists its sessions")
    if answer != "ready":
        why = (answer or "no word from it") + _last_words(home.log, log_began)
        raise HostDown(
            f"the host did not start: {why}",
            hint=f"its log is {home.log}",
        )


def _check_outside(home: Home) -> None:
    """A host that one of its own sessions started would end with it."""
    token = os.environ.get("HOLDFAST_TOKEN_FILE", "")
    if os.environ.get("HOLDFAST_SESSION") and is_within(token, home.run):
        raise HostDown(
            "the host of this session is down, and from inside it is not started",
            hint="run `hold up` in a terminal that is not in a session of this host",
        )


def _say_what_was_lost(home: Home) -> None:
    """As after a restart of the machine: the next host records it, and lists what was in flight."""
    lost = 0
    with contextlib.suppress(OSError):
        for each in os.scandir(f"{home.state}/sessions"):
            known = set(os.listdir(each.path))
            lost += "spec.json" in known and "tombstone.json" not in known
    if lost:
        were = "session was" if lost == 1 else "sessions were"
        raise HostDown(
            f"no host is running here, and {lost} {were} lost with the last one",
            hint="start one with `hold up -d`; `hold ls` then says what was in flight",
        )


def _make_places(home: Home) -> None:
    try:
        os.makedirs(home.state, mode=0o700, exist_ok=True)
        # Others connect to a system host, so they must be able to reach its socket.
        os.makedirs(home.run, mode=0o755 if os.getuid() == 0 else 0o700, exist_ok=True)
    except OSError as error:
        raise StorageFailed(
            f"cannot make {error.filename}: {error.strerror}",
            hint="set HOLDFAST_HOME to a directory you can write",
        ) from error


def _spawn_supervisor(home: Home, ready: int) -> None:
    """Double fork with a session of its own: the supervisor belongs to no terminal and no login, so
    closing either changes nothing for it."""
    if (pid := os.fork()) > 0:
        os.waitpid(pid, 0)
        return
    try:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        log = os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2), (ready, 3)):
            os.dup2(source, target, inheritable=True)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        os.chdir("/")
        os.umask(0o077)
        mode = "0666" if os.getuid() == 0 else "0600"
        arguments = ["--run-dir", home.run, "--socket-mode", mode, "--ready-fd", "3"]
        os.execv(sys.executable, [sys.executable, "-m", "holdfast.keeper.supervisor", *arguments])
    except BaseException as error:
        os.write(ready, f"{error}\n".encode())
    finally:
        os._exit(71)


def _read_line(fd: int) -> str:
    import select

    text = b""
    while not text.endswith(b"\n"):
        if not select.select([fd], [], [], _START_TIMEOUT_S)[0]:
            return "it took too long"
        piece = os.read(fd, 4096)
        if not piece:
            break
        text += piece
    return text.decode(errors="replace").strip()


def _last_words(path: str, since: int) -> str:
    """The daemon's own last line of this start. The supervisor's, which only count the failures,
    may come after it."""
    try:
        with open(path, "rb") as file:
            file.seek(since if os.path.getsize(path) >= since else 0)  # it was started again
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    lines = [line for line in lines if " supervisor: " not in line]
    return f" [{lines[-1][:200]}]" if lines else ""
