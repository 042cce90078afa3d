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
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.adapters import compiled
from holdfast.adapters.criu import find as criu
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch.process import (
    INHERIT_MAX,
    LAUNCH_TIMEOUT_S,
    REPLY_MAX_BYTES,
    RESTORE_TIMEOUT_S,
    Settings,
)
from holdfast.model.errors import LaunchFailed, LevelUnavailable, from_code
from holdfast.model.restore import PeerReset, RestorePhase
from holdfast.model.spec import LaunchSpec, Place
from holdfast.model.state import Level
from holdfast.ports.launch import (
    NOTHING_MORE,
    CriuExtra,
    Launched,
    RestoredTree,
    RestoreSpec,
)

# The launcher has its own, shorter bound; past this one it is itself stuck and is replaced.
_SLACK_S = 5.0
ANSWER_TIMEOUT_S = LAUNCH_TIMEOUT_S + _SLACK_S
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
        request = {"spec": spec.pack(), "inherit": list(inherit)}
        contained = spec.session if spec.level is not Level.PLAIN else ""
        ask = self._asked(b"launch", request, [*inherit.values()], ANSWER_TIMEOUT_S, contained)
        return _launched(*await _finished(ask, _discard))

    async def restore(self, spec: RestoreSpec, images: int) -> RestoredTree:
        """See `ports.launch.Launch`."""
        request = {"spec": spec.pack(), **await asyncio.to_thread(_criu)}
        timeout_s = RESTORE_TIMEOUT_S + _SLACK_S
        ask = self._asked(b"restore", request, [images], timeout_s, spec.session)
        reply, fds = await _finished(ask, _discard)
        phases = tuple(RestorePhase.unpack(each) for each in reply["phases"])
        reset = tuple(PeerReset.unpack(each) for each in reply["reset"])
        return RestoredTree(_launched(reply, fds), phases, reset)

    async def start_criu(self, socket: int, more: CriuExtra = NOTHING_MORE) -> int:
        """See `ports.launch.Launch`."""
        request = {**await asyncio.to_thread(_criu), "env": more.environment}
        ask = self._asked(b"criu", request, [socket, *more.fds], ANSWER_TIMEOUT_S, "")
        _, fds = await _finished(ask, _discard_criu)
        return fds[0]

    async def start_unread_reader(self, socket: int, master: int) -> None:
        """See `ports.launch.Launch`."""
        ask = self._asked(b"unread", {}, [socket, master], ANSWER_TIMEOUT_S, "")
        await _finished(ask, _nothing_started)

    async def _asked(
        self, what: bytes, request: dict[str, Any], fds: list[int], timeout_s: float, session: str
    ) -> tuple[dict[str, Any], list[int]]:
        """`session`: that whose control group is cleared if the launcher dies over it."""
        async with self._queue:
            channel = self._ensure_running()
            try:
                _send(channel, what, request, fds)
                reply, sent = await asyncio.wait_for(_receive(channel), timeout_s)
            except (OSError, TimeoutError, EOFError) as error:
                self._stop()
                if session:
                    await asyncio.to_thread(_clear_group, self._instance, session)
                why = "took too long" if isinstance(error, TimeoutError) else "died"
                raise LaunchFailed(
                    f"the launcher {why}", hint="try again; it is restarted"
                ) from error
        if "error" in reply:
            raise from_code(reply["error"], reply["message"], reply["hint"])
        return reply, sent

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


Exchange = tuple[dict[str, Any], list[int]]


async def _finished(
    ask: Coroutine[Any, Any, Exchange], discard: Callable[[asyncio.Future[Exchange]], None]
) -> Exchange:
    """If the caller is cancelled nobody will take over what was started; the answer must still be
    read, or the next caller would get it."""
    exchange = asyncio.ensure_future(ask)
    try:
        return await asyncio.shield(exchange)
    except asyncio.CancelledError:
        exchange.add_done_callback(discard)
        raise


def _criu() -> dict[str, Any]:
    found = criu.find()
    if isinstance(found, str):
        raise LevelUnavailable(
            f"this host has no CRIU: {found}", hint="python -m holdfast.adapters.criu.install"
        )
    return {"criu": found.command, "facts": found.facts.hex()}


def _clear_group(instance: str, session: str) -> None:
    """Clean up after a launcher that died; its helper ended the processes."""
    home = cgroup.home(instance)
    if home is not None:
        directory = f"{home}/{session}"
        cgroup.kill(directory)
        cgroup.remove(directory)


def _send(channel: socket.socket, what: bytes, request: dict[str, Any], fds: list[int]) -> None:
    text = json.dumps(request).encode()
    memory = os.memfd_create("holdfast-launch", os.MFD_CLOEXEC)
    with open(memory, "wb") as file:
        file.write(text)
        file.flush()
        file.seek(0)  # the offset is shared with the reader
        socket.send_fds(channel, [what], [memory, *fds])


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
    for path, why in reply["skipped"].items():
        _log.warning("host mount %s is not in the session: %s", path, why)
    master, pidfd, keeper, *gate = fds
    place = Place.unpack(reply["place"])
    return Launched(place, master, pidfd, keeper, reply["keeper_pid"], *gate)


def _discard(exchange: asyncio.Future[Exchange]) -> None:
    """End a session whose caller was cancelled while it started."""
    if exchange.cancelled() or exchange.exception() is not None:
        return
    launched = _launched(*exchange.result())
    gate = [fd for fd in (launched.gate, launched.gate_page) if fd >= 0]
    for fd in (launched.keeper, launched.master, launched.pidfd, *gate):
        os.close(fd)  # without a daemon its keeper ends it
    if launched.place.cgroup:
        cgroup.kill(launched.place.cgroup)
        cgroup.remove(launched.place.cgroup)


def _nothing_started(exchange: asyncio.Future[Exchange]) -> None:
    """What was started ends by itself."""
    if not exchange.cancelled():
        exchange.exception()


def _discard_criu(exchange: asyncio.Future[Exchange]) -> None:
    """Its socket is closed by whoever was cancelled: it ends by itself."""
    if not exchange.cancelled() and exchange.exception() is None:
        os.close(exchange.result()[1][0])


def end(place: Place) -> None:
    """SIGKILL to a session, whole. The caller must not have reaped its first process yet.

    In a pid namespace the kernel ends everything with the first process. At level plain that
    would only orphan the tree: there the program is ended, and its init then ends the rest."""
    target = place.pid if place.cgroup or not place.shell_pid else place.shell_pid
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(target, signal.SIGKILL)
