"""The host that a session leaves which is asleep, or was lost: it gives it to another one, and
writes down to which."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from holdfast.host.continuity.handover import messages as m
from holdfast.host.continuity.handover.session_files import pieces_of
from holdfast.host.continuity.progress import WorkProgress
from holdfast.host.lost_sessions import ListedSessions
from holdfast.host.session_store import HandedTo, SessionStore, Stored
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.errors import (
    HoldfastError,
    HostLost,
    ProtocolViolation,
    session_over,
)
from holdfast.model.ids import ActorId, SessionId
from holdfast.model.info import SessionInfo
from holdfast.model.restore import RestoreReport
from holdfast.model.state import Ending
from holdfast.ports.host_link import HostLink, HostLinks

log = logging.getLogger(__name__)

_RESTORED_S = 300.0  # for the target to restore what it has
_READY_S = 120.0  # and to check it before


class HandoverSource:
    """Of one host."""

    def __init__(
        self,
        links: HostLinks,
        store: SessionStore,
        listed: ListedSessions,
        announce: Callable[[SessionId], None],
    ) -> None:
        """`announce`: relays hear that this host does not answer for a session any longer."""
        self._links, self._store, self._listed = links, store, listed
        self._announce = announce

    async def hand_over(
        self,
        stored: Stored,
        checkpoint: Checkpoint,
        ticket: str,
        name: str,
        actor: ActorId,
        files: RestoreFiles,
        progress: WorkProgress,
    ) -> tuple[SessionInfo, RestoreReport]:
        """On behalf of this actor, which may; `name`: what people call the other host. Nothing else
        happens to the session meanwhile. What fails leaves it as it was, unless the error says
        that the other host has it."""
        session = stored.info.id
        progress.phase("connect")
        link = await self._links.dial(ticket, session, actor, m.SERVICE)
        try:
            return await self._with(
                link, stored, checkpoint, name or link.peer_name, files, progress
            )
        finally:
            await link.close()

    async def _with(
        self,
        link: HostLink,
        stored: Stored,
        checkpoint: Checkpoint,
        name: str,
        files: RestoreFiles,
        progress: WorkProgress,
    ) -> tuple[SessionInfo, RestoreReport]:
        handed = stored.handed_to
        if handed is not None and handed.host != link.peer.hex():
            raise session_over(stored.info.name, stored.info.ending)
        offered = stored.given_back().for_other_host()
        offer = m.Offer(offered, checkpoint.id, handed is not None, files)
        await m.say(link, offer)
        match await _answer(link, _READY_S):
            case m.Wanted():
                await self._bring(link, stored, checkpoint, progress)
                stored = self._give(stored, link, name)
                await m.say(link, m.Yours())
            case m.RestoredThere() as done:
                return self._is_there(stored, done)
            case said:
                raise _failure(said)
        progress.phase("restore")
        try:
            said = await _answer(link, _RESTORED_S)
        except HostLost as error:
            raise HostLost(
                f"{stored.info.name} was handed to {name}, and what came of it is not known: "
                f"{error.message}",
                hint=f"look there; `hold restore {stored.info.name} --on {name}` asks again",
            ) from error
        match said:
            case m.RestoredThere() as done:
                return self._is_there(stored, done)
            case m.GaveBack() if said.tag == m.GaveBack.tag:
                self._take_back(stored)
        raise _failure(said)

    async def _bring(
        self, link: HostLink, stored: Stored, checkpoint: Checkpoint, progress: WorkProgress
    ) -> None:
        progress.phase("transfer", checkpoint.raw_bytes)
        await link.send_checkpoint(checkpoint.id, progress.bytes)
        pieces = pieces_of(self._store.directory(stored.info.id))
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            await m.say(link, piece)
        await m.say(link, m.AllSent())
        said = await _answer(link, _READY_S)
        if not isinstance(said, m.Ready):
            raise _failure(said)

    def _give(self, stored: Stored, link: HostLink, name: str) -> Stored:
        """On disk before the other host hears of it."""
        if stored.handed_to is not None:
            return stored  # it was before
        ending = stored.info.ending
        assert ending is not None
        handed = HandedTo(link.peer.hex(), name, stored.info.epoch + 1, ending, stored.info.state)
        moved = Ending(code=None, moved_to=name)
        info = stored.info.replace(ending=moved, state=moved.state)
        given = stored.replace(info=info, handed_to=handed, returns_for="", wakes=False)
        self._keep(given)
        return given

    def _take_back(self, stored: Stored) -> None:
        try:
            self._keep(stored.given_back())
        except HoldfastError as error:
            log.error("%s is here again, and this cannot be kept: %s", stored.info.id, error)

    def _is_there(self, stored: Stored, done: m.RestoredThere) -> tuple[SessionInfo, RestoreReport]:
        handed = stored.handed_to
        if handed is not None:
            self._keep(stored.replace(handed_to=handed.replace(epoch=done.info.epoch)))
            log.info("%s lives on %s, epoch %d", stored.info.name, handed.name, done.info.epoch)
        return done.info, done.report

    def _keep(self, stored: Stored) -> None:
        """Raises StorageFailed."""
        self._store.rewrite_tombstone(stored)
        self._listed.updated(stored)
        self._announce(stored.info.id)


async def _answer(link: HostLink, within_s: float) -> object:
    try:
        async with asyncio.timeout(within_s):
            return await m.hear(link)
    except TimeoutError:
        raise HostLost(f"{link.peer_name} did not answer within {within_s:.0f} s") from None


def _failure(said: object) -> HoldfastError:
    if isinstance(said, m.GaveBack):
        return said.error()
    return ProtocolViolation("the other host said something else than was asked")
