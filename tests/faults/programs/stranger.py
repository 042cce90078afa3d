"""Runs as another unix user: tries everything on sessions that are not its own, then its own.

Starts as root in the host's run directory and becomes the user before it connects, because the
interpreter may lie where only root can read. Arguments: the user's name, then the sessions of
others. Prints one line of JSON: what each attempt came to, and its own session. Stays until its
input ends."""

import json
import os
import pwd
import sys
import time

from holdfast.model.errors import HoldfastError
from holdfast.model.size import Size
from holdfast.model.state import Level
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m


def main() -> None:
    user, *targets = sys.argv[1:]
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)
    host = Host(path="hold.sock")
    connection = host.connection
    outcomes: dict[str, str] = {}

    def attempt(what: str, request: m.Request) -> None:
        try:
            answer = connection.ask(request.replace(id=connection.next_id()), 10)
            outcomes[what] = answer.tag
        except HoldfastError as error:
            outcomes[what] = error.code

    for target in targets:
        for request in (
            m.Show(0, target), m.GetGraph(0, target), m.GetScreen(0, target), m.Watch(0, target),
            m.Attach(0, target, 1), m.Attach(0, target, 2, observe=True, raw=True, since=0),
            m.Input(0, target, 1, b"x"), m.Submit(0, target, 1, "x"),
            m.Keys(0, target, 1, ("C-c",)),
            m.Exec(0, target, 1, "id"), m.Resize(0, target, Size(10, 10)), m.Signal(0, target, 9),
            m.End(0, target),
        ):  # fmt: skip
            attempt(f"{request.tag} {target}", request)
    attempt("run as root", m.Run(0, ("id",), user="root"))
    attempt("restart", m.RestartDaemon(0))
    attempt("shutdown", m.Shutdown(0))
    attempt("shutdown all", m.Shutdown(0, True))
    listed = [str(info.id) for info in host.sessions(ended=True)]
    own = [run_own(host, user, level) for level in (Level.PLAIN, Level.CONTAINED)]
    print(json.dumps({"outcomes": outcomes, "listed": listed, "own": own}), flush=True)
    sys.stdin.read()


def run_own(host: Host, user: str, level: Level) -> list[str]:
    """A session of our own: its id, and the uid it says it runs as."""
    script = "echo uid=$(id -u) gid=$(id -g) groups=$(id -G); cat"
    info = host.run(["/bin/sh", "-c", script], name=f"own-{level}", level=level, cwd="/")
    deadline = time.monotonic() + 10
    while "groups=" not in (text := host.screen(info.id).text) and time.monotonic() < deadline:
        time.sleep(0.02)
    host.send(info.id, "typed")
    assert info.user == user and host.graph(info.id).processes
    return [str(info.id), text.strip().split("\n")[0]]


main()
