"""`hold down`: stop the host."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.model.errors import HostLost, TimedOut
from holdfast.sdk.client import Host

SUMMARY = "stop the host; refused while sessions live"

_GONE_TIMEOUT_S = 30.0  # ending every session has its own, shorter, limits


def parser() -> Parser:
    parser = verb_parser(
        "down",
        "Stop this user's host, and return when it is gone. Sessions are not the host's to end: "
        "while any lives this is refused, unless you say --end-sessions.",
        "  hold down\n  hold down --end-sessions      end them all (hang up, then kill), then stop",
    )
    parser.add_flag("--end-sessions", help="end every session first")
    return parser


def run(options: Options) -> None:
    with Host(client="hold down") as host:
        keeper = _pidfd_of_keeper(host)
        # It may close before its answer is read; the keeper's end tells the truth.
        with contextlib.suppress(HostLost):
            host.shutdown(end_sessions=options.end_sessions)
        _await_end(keeper)
    print("the host is down")


def _pidfd_of_keeper(host: Host) -> int:
    """A handle on the process that listens: the kernel remembers it for the socket. -1: it is gone
    already."""
    credentials = host.connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    (keeper, _, _) = struct.unpack("3i", credentials)
    try:
        return os.pidfd_open(keeper)
    except ProcessLookupError:
        return -1


def _await_end(keeper: int) -> None:
    if keeper >= 0 and not select.select([keeper], [], [], _GONE_TIMEOUT_S)[0]:
        raise TimedOut("the host was asked to stop and is still running", hint="see `hold doctor`")
