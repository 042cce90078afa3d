"""Sessions that were lost (A9, M6, N9): how they are closed, what is said of them, and that
somebody has acknowledged it.

A lost session has not ended. Its tombstone has why it was lost, what was under way, and its
successor once it has one. It is listed until it is acknowledged, and kept on disk until then.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.signing import check
from holdfast.core.access.authority import Authority
from holdfast.host import clock
from holdfast.host.near_end import NearEnd, differences
from holdfast.host.session.discontinuity import discontinue
from holdfast.host.session_store import SessionStore, Stored
from holdfast.journal.in_flight import in_flight
from holdfast.keeper.boottime import boot_id
from holdfast.model.actor import Actor
from holdfast.model.discontinuity import DiscontinuityCause, DiscontinuityKind
from holdfast.model.envelope import Right
from holdfast.model.errors import (
    EnvelopeExpired,
    HoldfastError,
    NotPermitted,
    RestoreFailed,
    StorageFailed,
)
from holdfast.model.ids import SessionId
from holdfast.model.info import InFlight, SessionInfo
from holdfast.model.limits import JOURNAL_TYPED_ENTRIES
from holdfast.model.size import Size
from holdfast.model.state import Ending
from holdfast.ports.screen import ScreenPort

log = logging.getLogger(__name__)

Name = Callable[[str], str]  # an actor's name, by its id
KEEPER_LOST = Ending(
    lost="its keeper died", cause=DiscontinuityCause(DiscontinuityKind.KEEPER_LOST)
)


def bury_lost(
    store: SessionStore,
    stored: Stored,
    name: Name,
    make_screen: Callable[[Size], ScreenPort],
    checkpoint: str = "",
) -> Stored:
    """The tombstone of a session on disk that nobody holds: its keeper or its machine is gone. With
    its last output and screen, as far as they had been written down. With a checkpoint it may come
    back: its journal is closed only when somebody decides otherwise."""
    ending, near = ending_of(stored), store.near_end(stored.info.id)
    stored = stored.replace(info=as_last_known(store, stored.info, near))
    info, reason = stored.info, ending.lost
    assert reason is not None and ending.cause is not None
    if checkpoint:
        ending = ending.replace(cause=ending.cause.replace(checkpoint=checkpoint))
        through = JournalReader(store.directory(info.id)).verify(info.id, check).trustworthy_through
    else:
        through = discontinue(store, info.id, info.epoch, reason, ending.cause)
    going_on = what_was_in_flight(store, info.id, through, name)
    lost = stored.lost(ending, going_on)
    with contextlib.suppress(StorageFailed):
        store.bury(lost, near.output if near else b"", _screen(near, make_screen))
    log.warning("session %s (%s) was lost: %s", info.id, info.name, ending.lost)
    return lost


def as_last_known(store: SessionStore, info: SessionInfo, near: NearEnd | None) -> SessionInfo:
    """What is said of a session that was lost, by what had been written down of it."""
    if near is None:
        return info
    launch = store.launch(info.id)
    changed = differences(launch.env, near.environment) if launch is not None else ()
    near = near.replace(known=near.known.replace(environment=changed))
    return near.applied_to(info)


def _screen(near: NearEnd | None, make_screen: Callable[[Size], ScreenPort]) -> str:
    if near is None:
        return ""
    try:
        return near.screen(make_screen)
    except Exception:  # a library's; the last screen must not keep a daemon from starting
        log.exception("the last screen of a lost session")
        return ""


def ending_of(stored: Stored) -> Ending:
    """By the boot it ran in: in this one it was its keeper that died."""
    if stored.boot_id and stored.boot_id == boot_id():
        return KEEPER_LOST
    cause = DiscontinuityCause(DiscontinuityKind.HOST_LOST, boot_id=stored.boot_id)
    return Ending(lost="its host died", cause=cause)


def what_was_in_flight(
    store: SessionStore, session: SessionId, through: int, name: Name
) -> InFlight | None:
    """From its journal up to this entry; None when that cannot be read."""
    try:
        reader = JournalReader(store.directory(session))
        first = max(1, through - JOURNAL_TYPED_ENTRIES + 1)
        return in_flight(list(reader.entries(first, through)), name)
    except (HoldfastError, OSError) as error:
        log.error("what was in flight in %s: %s", session, error)
        return None


class ListedSessions(Protocol):
    """The ended and lost sessions that are listed."""

    def updated(self, stored: Stored) -> None: ...


class LostSessions:
    """Acknowledgements and successors."""

    def __init__(
        self,
        store: SessionStore,
        listed: ListedSessions,
        authority: Authority,
        announce: Callable[[SessionId], None],
        last_checkpoint: Callable[[SessionId], str],
        is_restoring: Callable[[SessionId], bool],
    ) -> None:
        """`announce`: relays hear whether this host still answers for a lost session;
        `last_checkpoint`: its id, or ""; `is_restoring`: whether it is about to live again."""
        self._store, self._listed, self._authority = store, listed, authority
        self._announce, self._last_checkpoint = announce, last_checkpoint
        self._is_restoring = is_restoring

    def with_checkpoint(self, ending: Ending, session: SessionId) -> Ending:
        """Of a session that is being lost: with the checkpoint it may come back from."""
        if ending.cause is None or not (found := self._last_checkpoint(session)):
            return ending
        return ending.replace(cause=ending.cause.replace(checkpoint=found))

    def bury(self, stored: Stored, name: Name, make_screen: Callable[[Size], ScreenPort]) -> Stored:
        """See `bury_lost`."""
        checkpoint = self._last_checkpoint(stored.info.id)
        return bury_lost(self._store, stored, name, make_screen, checkpoint)

    def close_for_good(self, stored: Stored) -> Stored:
        """It does not come back from a checkpoint: its journal says so, and is closed. One that was
        asleep is lost with that."""
        info, ending = stored.info, stored.info.ending
        if ending is None or not (ending.checkpoint or ending.may_come_back):
            return stored
        if self._is_restoring(info.id):
            raise RestoreFailed(
                f"{info.name} is being restored", hint="`hold ls` shows whether it runs"
            )
        cause = ending.cause or DiscontinuityCause(
            DiscontinuityKind.GIVEN_UP, checkpoint=ending.checkpoint
        )
        why = ending.lost or "its checkpoint was given up"
        discontinue(self._store, info.id, info.epoch, why, cause)
        if ending.checkpoint:
            stored = stored.lost(Ending(lost=why, cause=cause), None)
            self._store.rewrite_tombstone(stored)
            self._listed.updated(stored)
        return stored

    def give_up(self, actor: Actor, stored: Stored) -> Stored:
        """Somebody ends a session that is asleep: it is not restored, and nobody need acknowledge
        that."""
        info = stored.info
        self._authority.check(actor.id, Right.END, info.id, info.labels, clock.now())
        return self.acknowledge(actor, self.close_for_good(stored))

    def acknowledge(self, actor: Actor, stored: Stored) -> Stored:
        """Recorded with the actor's name, in the tombstone: the journal is closed for good. The
        first to acknowledge a session stays the one. Needs the right to end it, because what is
        acknowledged may be pruned."""
        info, now = stored.info, clock.now()
        self._authority.check(actor.id, Right.END, info.id, info.labels, now)
        if info.acknowledged_at is not None or not stored.is_lost:
            return stored
        self.close_for_good(stored)
        info = info.replace(acknowledged_at=now, acknowledged_by=actor.name)
        stored = stored.replace(info=info)
        self._store.rewrite_tombstone(stored)
        self._listed.updated(stored)
        self._announce(info.id)
        log.info("session %s (%s), lost, acknowledged by %s", info.id, info.name, actor.name)
        return stored

    def acknowledge_all(self, actor: Actor, seen: Iterable[Stored]) -> tuple[Stored, ...]:
        """Those of them that the actor could end."""
        done = []
        for stored in (each for each in seen if each.is_lost):
            with contextlib.suppress(NotPermitted, EnvelopeExpired, RestoreFailed):
                done.append(self.acknowledge(actor, stored))
        return tuple(done)

    def followed(self, stored: Stored, successor: SessionId, uid: int) -> None:
        """A session was started to follow a lost one, whose id leads to it from now on. The first
        of the same unix user counts: nobody else may lead its operators elsewhere."""
        ending = stored.info.ending
        if ending is None or ending.lost is None or stored.successor or uid != stored.uid:
            return
        if self._is_restoring(stored.info.id):  # its id leads to itself
            return
        stored = stored.replace(
            info=stored.info.replace(ending=ending.replace(successor=successor))
        )
        with contextlib.suppress(StorageFailed):  # the successor's own journal names it too
            self._store.rewrite_tombstone(stored)
        self._listed.updated(stored)
        self._announce(stored.info.id)
