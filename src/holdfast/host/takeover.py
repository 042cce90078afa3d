"""What a new daemon finds: sessions in the keeper's custody, which it carries on, and sessions on
disk that nobody holds any more, which it buries, with what is left of their processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from holdfast.host import levels
from holdfast.host.orphans import end_strays
from holdfast.host.session.discontinuity import discontinue
from holdfast.host.session.recovery import recover
from holdfast.host.session_store import Stored
from holdfast.model.errors import StorageFailed
from holdfast.model.ids import SessionId
from holdfast.model.state import Ending, SessionState

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon

log = logging.getLogger(__name__)

_STRAYS_AGAIN_S = (0.5, 2.0, 15.0)  # the last is beyond a launch's own time limit


def carry_on(daemon: Daemon) -> None:
    """Take up everything there is."""
    uncarried: set[SessionId] = set()
    loop = asyncio.get_running_loop()
    for collected in daemon.keeper.collect():
        try:
            live = recover(daemon, collected)
            daemon.registry.add(live)
            live.start()
            if collected.ending is not None:
                loop.call_soon(live.main_ended, collected.ending)
        except Exception:
            # One session that cannot be carried on must not keep the others from it; it stays in
            # custody, for a daemon that can.
            log.exception("session %s stays in custody", collected.session)
            uncarried.add(collected.session)
    _bury_the_lost(daemon, uncarried)


def _bury_the_lost(daemon: Daemon, uncarried: set[SessionId]) -> None:
    """Sessions on disk that nobody holds: they died with their keeper or their machine, or the
    daemon that was starting them died before it could hand them over."""
    strays = daemon.store.forget_cut_off()
    for stored in daemon.store.unburied():
        if stored.info.id in daemon.registry.live or stored.info.id in uncarried:
            continue
        strays.append(stored.info.id)
        info = stored.info.replace(
            state=SessionState.ENDED,
            pid=0,
            ending=Ending(lost="its host died"),
            ended_at=time.time(),
        )
        discontinue(daemon.store, info.id, info.epoch, "its host died")
        with contextlib.suppress(StorageFailed):
            daemon.store.bury(Stored(info, stored.uid), b"", "")
        daemon.registry.remember(Stored(info, stored.uid))
        log.warning("session %s (%s) was lost with its host", info.id, info.name)
    living = {live.spec.process_tag for live in daemon.registry.live.values()}
    levels.clear_leftovers(daemon.instance, daemon.home, living | uncarried)
    _end_strays(strays, list(_STRAYS_AGAIN_S))


def _end_strays(sessions: list[SessionId], again: list[float]) -> None:
    """Now, and again later: the launcher of a daemon that died finishes what it had begun."""
    if not sessions:
        return
    found = end_strays(sessions)
    if found:
        log.warning("ended %d processes of sessions that nobody holds", found)
    if again:
        delay = again.pop(0)
        asyncio.get_running_loop().call_later(delay, _end_strays, sessions, again)
