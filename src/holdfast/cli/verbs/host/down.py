"""`hold down`: stop the host."""

from __future__ import annotations

import contextlib
import os
import select
import sys

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.text.progress import progress_line
from holdfast.cli.text.sanitize import sanitize
from holdfast.model.errors import CheckpointFailed, HostLost, InvalidArgument, TimedOut
from holdfast.sdk.client import Host
from holdfast.wire.messages.session import HostStopped

SUMMARY = "stop the host; sessions run on"

_GONE_TIMEOUT_S = 30.0  # ending every session has its own, shorter, limits


def parser() -> Parser:
    parser = verb_parser(
        "down",
        "Stop this user's host: daemon, supervisor and relay. Return when they are gone. Sessions "
        "are not the host's to end: they run on, and the next command that needs the host starts "
        "it again. With --end-sessions those that you may end are ended first; the others run on "
        "and are named. With --checkpoint movable sessions are checkpointed first and asleep; the "
        "next `hold up` restores them. That is for a shutdown of the machine.",
        "  hold down\n"
        "  hold down --end-sessions      end sessions (hang up, then kill), then stop\n"
        "  hold down --checkpoint        put them to sleep, then stop",
    )
    parser.add_flag("--end-sessions", help="first end every session that you may end")
    parser.add_flag("--checkpoint", help="first put every movable session to sleep")
    return parser


def run(options: Options) -> int:
    if options.end_sessions and options.checkpoint:
        raise InvalidArgument("--end-sessions or --checkpoint, not both")
    with progress_line() as told, Host(client="hold down", on_progress=told) as host:
        supervisor = _pidfd_of_supervisor(host)
        stopped = HostStopped(0, ())
        # It may close before its answer is read; the supervisor's end tells the truth.
        with contextlib.suppress(HostLost):
            stopped = host.shutdown(
                end_sessions=options.end_sessions, checkpoint=options.checkpoint
            )
        _await_end(supervisor)
    print("the host is down")
    if stopped.asleep:
        print(f"asleep until `hold up`: {', '.join(stopped.asleep)}")
    if stopped.kept:
        print(f"still running: {', '.join(stopped.kept)}")
    for name, why in stopped.failed.items():
        print(f"hold: {name} was not checkpointed: {sanitize(why)}", file=sys.stderr)
    return CheckpointFailed.exit_status if stopped.failed else 0


def _pidfd_of_supervisor(host: Host) -> int:
    """A handle on it; -1: it is gone already."""
    pid = host.host().supervisor_pid
    try:
        return -1 if pid is None else os.pidfd_open(pid)
    except ProcessLookupError:
        return -1


def _await_end(supervisor: int) -> None:
    if supervisor >= 0 and not select.select([supervisor], [], [], _GONE_TIMEOUT_S)[0]:
        raise TimedOut("the host was asked to stop and is still running", hint="see `hold doctor`")
