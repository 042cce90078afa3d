"""The daemon's start. Only the supervisor runs this; it hands over two descriptors."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys

import uvloop

from holdfast.adapters.log_lines import log_to_stderr
from holdfast.host import daemon_lock
from holdfast.host.daemon import Daemon
from holdfast.host.supervisor_link import SupervisorLink
from holdfast.keeper import log_file, oom
from holdfast.model.errors import HoldfastError
from holdfast.model.home import home_of

_LOG_LOOK_S = 60.0


async def serve() -> None:
    supervisor_fd = int(os.environ.pop("HOLDFAST_SUPERVISOR_FD"))
    supervisor_pid = int(os.environ.pop("HOLDFAST_SUPERVISOR_PID"))
    listen_fd = int(os.environ.pop("HOLDFAST_LISTEN_FD"))
    starts = int(os.environ.pop("HOLDFAST_STARTS", "0"))
    oom.restore()
    for fd in (supervisor_fd, listen_fd):
        os.set_inheritable(fd, False)
    home = home_of(os.environ, os.getuid())
    daemon_lock.hold(home.run)
    supervisor = SupervisorLink(supervisor_fd, supervisor_pid)
    daemon = Daemon(home, supervisor, socket.socket(fileno=listen_fd), starts)
    # A signal is no way to end a host's daemon: it is started again, sessions carry on.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, daemon.stop)
    # What was loaded to get here lives forever; looking at it again and again is waste.
    gc.collect()
    gc.freeze()
    _bound_log()
    await daemon.run()


def _bound_log() -> None:
    """Now and then also without a line of ours: relay and keeper write to the same file, and the
    relay may not be allowed to cut it."""
    log_file.bound()
    asyncio.get_running_loop().call_later(_LOG_LOOK_S, _bound_log)


def main() -> int:
    if "HOLDFAST_SUPERVISOR_FD" not in os.environ:
        print("holdfast.host is started by the supervisor; use `hold up`", file=sys.stderr)
        return 64
    log_to_stderr(log_file.bound)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        uvloop.run(serve())
    except HoldfastError as error:
        logging.error("%s (%s) %s", error.message, error.code, error.hint)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
