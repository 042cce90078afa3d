"""`hold daemon`: the replaceable half of a host."""

from __future__ import annotations

import contextlib
import os
import sys
import time

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.host_check import check_works
from holdfast.cli.hung_daemon import (
    daemon_pid,
    is_supervisor_stopped,
    kill_daemon,
    kill_supervisor,
    starts_no_daemon,
    supervisor_pid,
)
from holdfast.cli.start_host import start_again
from holdfast.cli.text.table import ago
from holdfast.model.errors import HostDown, HostLost, TimedOut
from holdfast.model.home import Home, home_of
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.sdk.client import Host
from holdfast.sdk.connection import target_host

SUMMARY = "restart the daemon without disturbing sessions, or show its status"


EXIT_MISCONFIGURED = 78


def parser() -> Parser:
    parser = verb_parser(
        "daemon",
        "The daemon can be replaced at any time: keepers hold the sessions meanwhile. "
        "`restart` does so (a hot upgrade: the new one runs the code that is installed now) and "
        "returns when the new one answers. A daemon that hangs is killed, and so is a supervisor "
        "that starts none. Exits with 78 if the new one found the configuration wrong and uses "
        "the defaults, and fails if the new one cannot start sessions or its relay cannot listen. "
        "`status` shows which one runs.",
        "  hold daemon restart\n  hold daemon status --json",
    )
    parser.add_argument("action", choices=("restart", "status"), help="what to do")
    parser.add_json()
    return parser


def run(options: Options) -> int:
    if options.action == "restart":
        return _restart(options.json)
    with Host(client="hold daemon") as host:
        _status(host, options.json)
    return 0


def _restart(as_json: bool) -> int:
    began = time.monotonic()
    home = home_of(os.environ, os.getuid())
    is_here = target_host() == home.socket
    try:
        host = Host(client="hold daemon")
        old = host.connection.welcome.daemon_pid
        if is_here and is_supervisor_stopped(home):
            print("hold: the supervisor is stopped; it is replaced", file=sys.stderr)
            kill_supervisor(home)  # the daemon starts another one, and leaves
        else:
            # It may close before its answer is read; the new pid tells the truth.
            with contextlib.suppress(HostLost):
                host.restart_daemon()
    except (HostDown, TimedOut):
        if not is_here or (daemon_pid(home) is None and supervisor_pid(home) is None):
            raise
        old = _kill_what_hangs(home)
        host = Host(client="hold daemon")
    with host:
        new = _await_other(host, old)
        _say_replaced(old, new, time.monotonic() - began, as_json=as_json)
        status = _say_wrong(host)
        check_works(host)
        return status


def _kill_what_hangs(home: Home) -> int:
    """The daemon, and its supervisor if that does not start another one. Gives the daemon's pid, or
    0 if there was none."""
    old = 0
    if daemon_pid(home) is not None:
        print("hold: the daemon does not answer; it is killed", file=sys.stderr)
        old = kill_daemon(home)
    if starts_no_daemon(home):
        print("hold: the supervisor starts no daemon; it is replaced", file=sys.stderr)
        kill_supervisor(home)
        start_again(home)
    return old


def _say_wrong(host: Host) -> int:
    """A setting that is wrong does not stop a running host, so nobody else says it here."""
    wrong = [each for each in host.host().findings if each.name == "configuration" and not each.ok]
    for each in wrong:
        print(
            f"hold: the defaults are used, because the configuration is wrong: {each.detail}",
            file=sys.stderr,
        )
    return EXIT_MISCONFIGURED if wrong else 0


def _say_replaced(old: int, new: int, seconds: float, *, as_json: bool) -> None:
    if as_json:
        import json

        print(json.dumps({"old_pid": old, "new_pid": new, "seconds": round(seconds, 4)}))
    elif not old:
        print(f"daemon {new} was started; sessions carried on")
    else:
        print(f"daemon {old} was replaced by {new} in {seconds:.2f} s; sessions carried on")


def _await_other(host: Host, old: int) -> int:
    """The pid of the daemon that answers now and is not the old one."""
    deadline = time.monotonic() + RECONNECT_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            host.reconnect(deadline - time.monotonic())
        except (HostDown, HostLost) as error:
            raise TimedOut("the new daemon does not answer", hint="see `hold doctor`") from error
        if host.connection.welcome.daemon_pid != old:
            return host.connection.welcome.daemon_pid
        time.sleep(0.02)  # the old one has not left yet; there is nothing to wait on
    raise TimedOut(f"daemon {old} is still there", hint="see `hold doctor`")


def _status(host: Host, as_json: bool) -> None:
    info = host.host()
    if as_json:
        print_json(info.pack())
        return
    up = ago(time.time() - info.started_at)
    times = "once" if info.restarts == 1 else f"{info.restarts} times"
    print(f"daemon    {info.daemon_pid}, version {info.version}, up {up}")
    print(f"restarts  supervisor {info.supervisor_pid} has restarted it {times}")
    print(f"home      {info.home}")
    print(f"level     {info.level}")
    print(f"sessions  {info.sessions}")
