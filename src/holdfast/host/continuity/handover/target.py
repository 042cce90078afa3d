"""The host that a session comes to which another one has asleep, or lost: it takes all of it, and
restores it when it is its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pwd
import shutil
from typing import TYPE_CHECKING

from holdfast.adapters import atomic_file
from holdfast.core.access.host_rules import check_may_run_as
from holdfast.host.continuity.arrived_journal import check_arrived
from holdfast.host.continuity.handover import messages as m
from holdfast.host.continuity.handover.session_files import BroughtFiles
from holdfast.host.session_store import CameFrom, Stored
from holdfast.model.checkpoint import Checkpoint, CheckpointId
from holdfast.model.errors import (
    CheckpointInvalid,
    HoldfastError,
    NotPermitted,
    ProtocolViolation,
    RestoreFailed,
    StorageFailed,
    why_not,
)
from holdfast.model.restore import RestoreReport
from holdfast.ports.host_link import HostLink

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon

log = logging.getLogger(__name__)

_ARRIVING = "arriving-sessions"  # directory of the state
_LAST_READ_S = 30.0  # for the other host to read what came of it


class HandoverTarget:
    """Of one host."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._arriving: set[str] = set()

    async def serve(self, link: HostLink) -> None:
        """One link, until it is over."""
        try:
            offer = await m.hear(link)
            if not isinstance(offer, m.Offer):
                raise ProtocolViolation("a handover begins with an offer")
            if offer.stored.info.id != link.session:
                raise ProtocolViolation("the ticket is for another session")
            if link.session in self._arriving:
                raise RestoreFailed("it is on its way here already", hint="try again in a moment")
            self._arriving.add(link.session)
            try:
                await _Arrival(self._daemon, link, offer).run()
            finally:
                self._arriving.discard(link.session)
        except HoldfastError as error:
            log.info("a session from %s: %s", link.peer_name, error.message)
            await m.say(link, m.failed(error))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_READ_S):
                await link.receive()  # until the other end has read it


def clear_unfinished(state: str) -> None:
    """Sessions that were on their way when the daemon died: they are still their source's."""
    shutil.rmtree(f"{state}/{_ARRIVING}", ignore_errors=True)


class _Arrival:
    """Of one session."""

    def __init__(self, daemon: Daemon, link: HostLink, offer: m.Offer) -> None:
        self._daemon, self._link, self._offer = daemon, link, offer
        self._session = link.session
        try:
            self._id = CheckpointId(offer.checkpoint)
        except ValueError as error:
            raise ProtocolViolation(f"the offer names no checkpoint: {error}") from error
        self._files = BroughtFiles(f"{daemon.home.state}/{_ARRIVING}/{self._session}")

    async def run(self) -> None:
        daemon, link = self._daemon, self._link
        live = daemon.registry.live.get(self._session)
        here = daemon.store.tombstone(self._session)
        if live is not None:
            if not self._offer.handed:
                raise RestoreFailed(f"{live.spec.name} runs on this host")
            await m.say(link, m.RestoredThere(live.info(), _no_report(self._id, live.spec.epoch)))
            return
        if here is not None and here.handed_to is None and here.may_come_back:
            if not self._offer.handed:
                raise RestoreFailed(f"this host has {here.info.name} itself")
            await self._restore(gives_back=False)  # it had come, and was not restored
            return
        self._check_user()
        try:
            await m.say(link, m.Wanted())
            checkpoint = await self._take()
            await m.say(link, m.Ready())
            if not isinstance(await m.hear(link), m.Yours):
                raise ProtocolViolation("it was not given to this host")
            stored = self._own()
        finally:
            await asyncio.to_thread(self._files.remove)
        log.info("%s came from %s, in %s", stored.info.name, link.peer_name, checkpoint.id)
        await self._restore(gives_back=True)

    def _check_user(self) -> None:
        """Whoever fetched the ticket may start processes as the session's user."""
        daemon, info = self._daemon, self._offer.stored.info
        actor = daemon.actors.authority.actor(self._link.admitted_by[1])
        if actor is None or actor.revoked_at is not None:
            raise NotPermitted("whoever fetched the ticket may not do anything here any longer")
        uid = self._offer.stored.uid
        try:
            name = pwd.getpwuid(uid).pw_name
        except KeyError:
            raise RestoreFailed(f"there is no unix user {uid} on this host") from None
        if info.user and name != info.user:
            raise RestoreFailed(f"user {uid} is {name} on this host, and {info.user} on its own")
        check_may_run_as(actor, uid, name, os.getuid())

    async def _take(self) -> Checkpoint:
        """All of it, aside; and checked, before it may become this host's."""
        try:
            await asyncio.to_thread(self._files.begin)
            while isinstance(said := await m.hear(self._link), m.SessionFile):
                await asyncio.to_thread(self._files.take, said)
            if not isinstance(said, m.AllSent):
                raise ProtocolViolation("files of the session were expected")
            checkpoint = await self._daemon.images.find(self._id)
            if checkpoint.session != self._session:
                raise CheckpointInvalid(f"{self._id} is of another session")
            store = self._daemon.store
            known = store.directory(self._session) if store.is_known(self._session) else None
            await asyncio.to_thread(
                check_arrived,
                self._files.directory,
                known,
                self._session,
                checkpoint,
                may_be_torn=True,
            )
            self._write_tombstone()
            await asyncio.to_thread(self._files.sync)
        except OSError as error:
            raise StorageFailed(f"it cannot be kept: {why_not(error)}") from error
        return checkpoint

    def _write_tombstone(self) -> None:
        link, stored = self._link, self._offer.stored
        origin = CameFrom(link.peer.hex(), link.peer_name, *link.admitted_by)
        arrived = stored.replace(came_from=origin, handed_to=None)
        text = json.dumps(arrived.pack(), indent=1).encode()
        atomic_file.replace(f"{self._files.directory}/tombstone.json", text)
        atomic_file.replace(f"{self._files.directory}/unacknowledged", b"")

    def _own(self) -> Stored:
        """From here on it is this host's, in one step."""
        store = self._daemon.store
        try:
            self._files.become(store.directory(self._session))
        except OSError as error:
            raise StorageFailed(f"it cannot be kept: {why_not(error)}") from error
        stored = store.tombstone(self._session)
        assert stored is not None
        self._daemon.registry.forget(self._session)  # of an earlier time
        self._daemon.registry.remember(stored)
        return stored

    async def _restore(self, *, gives_back: bool) -> None:
        daemon, link = self._daemon, self._link
        try:
            checkpoint = await daemon.images.find(self._id)
            live, report = await daemon.continuity.restore(
                checkpoint, link.admitted_by[1], files=self._offer.files
            )
        except HoldfastError as error:
            if not gives_back or self._session in daemon.registry.live:
                raise  # what lives here is never given back: it would live twice
            self._forget()
            await m.say(link, m.GaveBack(error.code, error.message, error.hint))
            return
        daemon.links.settled(self._session)
        await m.say(link, m.RestoredThere(live.info(), report))

    def _forget(self) -> None:
        """Nothing of it stays, so that it is its source's again."""
        self._daemon.registry.forget(self._session)
        self._daemon.store.forget(self._session)


def _no_report(id: CheckpointId, epoch: int) -> RestoreReport:
    """It was restored before, and what that was like is in its journal."""
    return RestoreReport(checkpoint=id, epoch_before=epoch - 1, epoch=epoch)
