"""The daemon's side of the launcher process: an asyncio face that implements `ports.launch`.

The process is started at the first launch and again after it died. Launches are queued: each
takes milliseconds, and one at a time keeps a failure from touching another.

Deliberately does not fork, wait for sessions or keep track of them: what is launched belongs to
the caller, and its first process to its keeper.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from holdfast.adapters import compiled
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch.process import (
    INHERIT_MAX,
    LAUNCH_TIMEOUT_S,
    REPLY_MAX_BYTES,
    Settings,
)
from holdfast.model.errors import LaunchFailed, from_code
from holdfast.model.spec import LaunchSpec, Place
from holdfast.model.state import Level
from holdfast.ports.launch import Launched

# The launcher has its own, shorter bound; past this one it is itself stuck and is replaced.
ANSWER_TIMEOUT_S = LAUNCH_TIMEOUT_S + 5.0
CLOSE_TIMEOUT_S = 2.0

_log = logging.getLogger(__name__)


class Launcher:
    """Starts sessions. `instance` names this host's cgroup directory; `keepers` is the directory of
    the keepers' sockets; `nofile` is the soft limit on open files that sessions get (0: the
    daemon's own)."""

    def __init__(self, instance: str, keepers: str, *, nofile: int = 0) -> None:
        self._instance, self._keepers = instance, keepers
        self._nofile = nofile
        self._queue = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    async def launch(self, spec: LaunchSpec, inherit: dict[int, int]) -> Launched:
        """See `ports.launch.Launch`. The caller's descriptors in `inherit` stay the caller's."""
        if len(inherit) > INHERIT_MAX or any(number < 3 for number in inherit):
            raise LaunchFailed("descriptors to inherit must be few, and numbered from 3")
        exchange = asyncio.ensure_future(self._queued(spec, inherit))
        try:
            return await asyncio.shield(exchange)
        except asyncio.CancelledError:
            # Nobody will take the session over; the answer must still be read, or the next
            # caller would get it.
            exchange.add_done_callback(_discard)
            raise

    async def _queued(self, spec: LaunchSpec, inherit: dict[int, int]) -> Launched:
        async with self._queue:
            channel = self._ensure_running()
            try:
                _send(channel, spec, inherit)
                reply, fds = await asyncio.wait_for(_receive(channel), ANSWER_TIMEOUT_S)
            except (OSError, TimeoutError, EOFError) as error:
                self._stop()
                await asyncio.to_thread(_clear_group, self._instance, spec)
                why = "took too long" if isinstance(error, TimeoutError) else "died"
                raise LaunchFailed(
                    f"the launcher {why}", hint="try again; it is restarted"
                ) from error
        return _launched(reply, fds)

    def _ensure_running(self) -> socket.socket:
        if self._socket is not None and self._process is not None and self._process.poll() is None:
            return self._socket
        self._stop()
        settings = Settings(
            compiled.program(compiled.INIT),
            compiled.program(compiled.KEEPER),
            self._keepers,
            self._instance,
            self._nofile,
        )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # Its own session: a ^C at the daemon's terminal is not meant for it.
            program = [sys.executable, "-P", "-m", "holdfast.adapters.launch.process"]
            self._process = subprocess.Popen(
                [*program, str(theirs.fileno()), json.dumps(settings.pack())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        ours.setblocking(False)
        self._socket = ours
        return ours

    def _stop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def close(self) -> None:
        """End the launcher process; sessions are not touched. A launch under way is finished."""
        async with self._queue:
            if self._socket is not None:
                self._socket.close()  # it sees the end of its input and exits
                self._socket = None
            if self._process is not None:
                try:
                    await asyncio.to_thread(self._process.wait, CLOSE_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    self._stop()
                self._process = None


def _clear_group(instance: str, spec: LaunchSpec) -> None:
    """Clean up after a launcher that died; its helper ended the processes."""
    home = cgroup.home(instance)
    if spec.level is not Level.PLAIN and home is not None:
        directory = f"{home}/{spec.session}"
        cgroup.kill(directory)
        cgroup.remove(directory)


def _send(channel: socket.socket, spec: LaunchSpec, inherit: dict[int, int]) -> None:
    text = json.dumps({"spec": spec.pack(), "inherit": list(inherit)}).encode()
    memory = os.memfd_create("holdfast-launch", os.MFD_CLOEXEC)
    with open(memory, "wb") as file:
        file.write(text)
        file.flush()
        file.seek(0)  # the offset is shared with the reader
        socket.send_fds(channel, [b"launch"], [memory, *inherit.values()])


async def _receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def ready() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(channel.fileno(), ready)
    try:
        await readable
    finally:
        loop.remove_reader(channel.fileno())
    data, fds, _, _ = socket.recv_fds(channel, REPLY_MAX_BYTES, 5, socket.MSG_CMSG_CLOEXEC)
    if not data:
        raise EOFError("the launcher closed its end")
    return json.loads(data), list(fds)


def _launched(reply: dict[str, Any], fds: list[int]) -> Launched:
    if "error" in reply:
        raise from_code(reply["error"], reply["message"], reply["hint"])
    for path, why in reply["skipped"].items():
        _log.warning("host mount %s is not in the session: %s", path, why)
    master, pidfd, keeper, *gate = fds
    place = Place.unpack(reply["place"])
    return Launched(place, master, pidfd, keeper, reply["keeper_pid"], *gate)


def _discard(exchange: asyncio.Future[Launched]) -> None:
    """End a session whose caller was cancelled while it started."""
    if exchange.cancelled() or exchange.exception() is not None:
        return
    launched = exchange.result()
    gate = [fd for fd in (launched.gate, launched.gate_page) if fd >= 0]
    for fd in (launched.keeper, launched.master, launched.pidfd, *gate):
        os.close(fd)  # without a daemon its keeper ends it
    if launched.place.cgroup:
        cgroup.kill(launched.place.cgroup)
        cgroup.remove(launched.place.cgroup)


def end(place: Place) -> None:
    """SIGKILL to a session, whole. The caller must not have reaped its first process yet.

    In a pid namespace the kernel ends everything with the first process. At level plain that
    would only orphan the tree: there the program is ended, and its init then ends the rest."""
    target = place.pid if place.cgroup or not place.shell_pid else place.shell_pid
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(target, signal.SIGKILL)
