"""What a new daemon finds: sessions in the custody of their keepers, which it carries on, and
sessions on disk that nobody holds, which it buries.

A daemon that dies between launching a session and depositing it, or a host that dies whole, leaves
processes which no session owns. In a cgroup they are found there; at level plain by the session id
every process of a session has in its environment. They are ended, so that what is buried is dead.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from typing import TYPE_CHECKING

from holdfast.host import levels
from holdfast.host.continuity.checkpoint import settle_interrupted
from holdfast.host.keeper_link import Collected, KeeperGone, KeeperLink, Keepers
from holdfast.host.session.parcel import StateBlob
from holdfast.host.session.recovery import recover
from holdfast.model.ids import SessionId

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon

log = logging.getLogger(__name__)

_INIT = "hold-init"
_SILENT_AGAIN_S = 5.0  # between tries to reach a keeper that does not answer
_LEFTOVERS_AGAIN_S = 30.0  # a process that waits for a disk or a server may end by then
_STRAYS_AGAIN_S = (0.5, 2.0, 15.0)  # the last is beyond a launch's own time limit


def carry_on(daemon: Daemon) -> None:
    """Take up everything there is."""
    levels.make_places(daemon.home)
    _carry_on(daemon, daemon.keepers.tags(), set())


def _carry_on(daemon: Daemon, tags: list[SessionId], uncarried: set[SessionId]) -> None:
    silent = [tag for tag in tags if not _take_up(daemon, tag, uncarried)]
    if silent:
        # A keeper that was stopped holds its session still, so that nothing may be buried that it
        # could be about.
        log.error("no answer from the keepers of %s; trying again", ", ".join(silent))
        loop = asyncio.get_running_loop()
        loop.call_later(_SILENT_AGAIN_S, _carry_on, daemon, silent, uncarried)
    else:
        _bury_the_lost(daemon, uncarried)


def _take_up(daemon: Daemon, tag: SessionId, uncarried: set[SessionId]) -> bool:
    """One session. False: its keeper does not answer now."""
    try:
        link, collected = _collect(daemon.keepers, tag)
    except KeeperGone:
        daemon.keepers.forget(tag)
        return True
    except OSError as error:
        log.error("keeper of %s: %s", tag, error)
        return False
    if collected is None:
        link.close()  # its daemon died before the deposit; it ends by itself
        return True
    try:
        live = recover(daemon, collected, link)
        if collected.ending is None:  # it lives: the daemon before may have died over a restore
            daemon.store.rise(live.spec.id)
        daemon.registry.risen(live)
        live.start()
        live.halts.reconcile()
        daemon.watch(live)
        if live.core.asleep_in and collected.ending is None:
            live.spawn(settle_interrupted(live))
        if collected.ending is not None:
            asyncio.get_running_loop().call_soon(live.main_ended, collected.ending)
    except Exception:
        # One session that cannot be carried on must not keep the others from it; it stays in
        # custody, for a daemon that can.
        log.exception("session %s stays in custody", tag)
        link.close()
        uncarried.add(tag)
        with contextlib.suppress(Exception):
            uncarried.add(StateBlob.of_blob(collected.blob).spec.id)
    return True


def _collect(keepers: Keepers, tag: SessionId) -> tuple[KeeperLink, Collected | None]:
    """A keeper that leaves closes a connection that waited to be accepted: asked once more, it is
    known to be gone."""
    for attempt in (1, 2):
        link = keepers.connect(tag)
        try:
            return link, link.collect(tag)
        except BaseException as error:
            link.close()
            if attempt == 2 or not isinstance(error, KeeperGone):
                raise
    raise AssertionError


def _bury_the_lost(daemon: Daemon, uncarried: set[SessionId]) -> None:
    """Sessions on disk that nobody holds: they died with their keeper or their machine, or the
    daemon that was starting them died before it could hand them over."""
    strays = [each for each in daemon.store.forget_cut_off() if not daemon.moves.decides(each)]
    for stored in daemon.store.unburied():
        if stored.info.id in daemon.registry.live or stored.info.id in uncarried:
            continue
        if daemon.moves.decides(stored.info.id):
            continue  # it may be at another host by now
        strays.append(stored.info.id)
        buried = daemon.lost.bury(stored, daemon.actors.name, daemon.make_screen)
        daemon.registry.remember(buried)
        cause = buried.info.ending.cause if buried.info.ending is not None else None
        daemon.counts.signatures.lost(cause.kind if cause is not None else "")
    living = {live.spec.process_tag for live in daemon.registry.live.values()}
    living |= uncarried | daemon.continuity.restoring
    _try_again(daemon, levels.clear_leftovers(daemon.instance, daemon.home, living))
    _end_strays(daemon, strays, list(_STRAYS_AGAIN_S))


def _try_again(daemon: Daemon, left: list[str]) -> None:
    """While there are trees that do not end; what is restored under one of their names is not
    ended, and a restore is refused while there are processes in its group."""
    if left:
        log.error("processes of %s, which nobody holds, do not end; trying again", ", ".join(left))
        asyncio.get_running_loop().call_later(_LEFTOVERS_AGAIN_S, _end_left, daemon, left)


def _end_left(daemon: Daemon, left: list[str]) -> None:
    living = {live.spec.process_tag for live in daemon.registry.live.values()}
    living |= daemon.continuity.restoring
    dead = [name for name in left if name not in living]
    _try_again(daemon, levels.end_trees(daemon.instance, dead, 0.0))


def _end_strays(daemon: Daemon, sessions: list[SessionId], again: list[float]) -> None:
    """Now, and again later: the launcher of a daemon that died finishes what it had begun. What was
    restored meanwhile lives.

    The init of a plain session is left to find that its program has ended: it then ends the rest
    of its tree, also what has cleared its environment."""
    living = daemon.continuity.restoring | daemon.registry.live.keys()
    sessions = [session for session in sessions if session not in living]
    if not sessions:
        return
    marks = {f"HOLDFAST_SESSION={session}".encode() for session in sessions}
    found = 0
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid() and _is_marked(name, marks):
            found += 1
            if not _is_plain_init(name):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(name), signal.SIGKILL)
    if found:
        log.warning("ended %d processes of sessions that nobody holds", found)
    if again:
        delay = again.pop(0)
        asyncio.get_running_loop().call_later(delay, _end_strays, daemon, sessions, again)


def _is_marked(pid: str, marks: set[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return not marks.isdisjoint(file.read().split(b"\0"))
    except OSError:
        return False


def _is_plain_init(pid: str) -> bool:
    """Ours, and not the first process of a pid namespace, with which the kernel ends the rest."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            fields = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
    except OSError:
        return False
    return fields["Name"].strip() == _INIT and len(fields.get("NSpid", "1").split()) == 1
