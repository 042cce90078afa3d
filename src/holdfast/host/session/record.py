"""The journal of one live session: what is recorded, before its effect, and when it is on disk.

Keys are gathered for a moment in shared memory (burst_page.py) and recorded as one entry;
everything else is written at once. What is written survives this daemon. It is on disk, and
survives the machine, within 50 ms, or before the answer where that matters (`sync`). When the disk
is full, what actors ask for is refused before anything happens; what happened anyway is written
into the reserve. Stopping, seizing and ending are never refused because of the disk: when even the
reserve is used up or the disk is broken, they happen, are reported as unrecorded, and wait in
record_backlog.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.session_memory.burst_page import ROOM_BYTES, BurstPage
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.core import events as ev
from holdfast.host.clock import now
from holdfast.host.session.journal_repair import last_input
from holdfast.host.session.record_backlog import Backlog
from holdfast.host.session.refusal_counts import Refusals
from holdfast.journal import entries
from holdfast.journal.entries import Body
from holdfast.model.errors import SessionEnded, StorageFailed
from holdfast.model.ids import HOST_ACTOR, OperatorId
from holdfast.model.limits import (
    JOURNAL_BURST_S,
    JOURNAL_FACTS_BYTES,
    JOURNAL_REFUSALS_S,
    JOURNAL_RETRY_S,
    JOURNAL_SEAL_S,
    JOURNAL_SYNC_S,
)
from holdfast.model.state import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from holdfast.adapters.session_memory.output_ring import Ring
    from holdfast.model.ids import SessionId

log = logging.getLogger(__name__)

# No state of the disk keeps anybody from these.
_NEVER_REFUSED = (
    *(ev.SeizeAsked, ev.HaltAsked, ev.ResumeAsked, ev.EndAsked, ev.AuthorityChanged),
    *(ev.ChannelOpened, ev.ChannelClosed, ev.ActorDisconnected, ev.ForwardLeft),
)


class SessionRecord:
    """Records one session."""

    def __init__(
        self,
        session: SessionId,
        epoch: Callable[[], int],
        ring: Ring,
        writer: JournalWriter,
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        written: Callable[[Body], None],
    ) -> None:
        """`written`: counts each entry."""
        self._written = written
        self._session, self._epoch, self._spawn = session, epoch, spawn
        self._loop = asyncio.get_running_loop()
        self.burst = BurstPage(ring)
        self._prepared = -1  # size of the burst with the key that is being taken
        self._refusals = Refusals()
        self._refusals_at: asyncio.TimerHandle | None = None
        self._keys_at: asyncio.TimerHandle | None = None
        self._seal_at: asyncio.TimerHandle | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._unsynced = False
        self._lost = ""  # why nothing is known to be recorded from then on
        self._backlog = Backlog()
        self._retry_at: asyncio.TimerHandle | None = None
        self._closed = False
        self._sealed = False  # it goes to another host: nothing more is written here
        self._writer = writer

    # -- carrying on ----------------------------------------------------------------------------

    def settle_inputs(self, ledger: InputLedger, recent: list[entries.Entry]) -> None:
        """Another daemon wrote it until now. What that one left undone is settled, and recorded."""
        writer, last = self._writer, last_input(recent)
        if writer.cut is not None:
            size = writer.cut
            log.error("journal of %s: %d bytes of torn tail were cut", self._session, size)
            self._happened(HOST_ACTOR, entries.TailCut(size))
        self.burst.settle(ledger.operators())
        self._recover_keys(last)
        if last is not None and ledger.last_seq(OperatorId(last.operator)) < last.last_seq:
            self._happened(HOST_ACTOR, entries.Voided(last.operator, last.seq, last.last_seq))

    def carried_on(self, holder: str, missed: Iterable[tuple[str, Body]]) -> None:
        """This daemon writes it from now on; `missed`: changes of rights, and by whom."""
        if self._writer.chain.closed_by:  # its end is recorded, and only its burial is left
            return
        self._happened(HOST_ACTOR, entries.CarriedOn(os.getpid(), holder))
        for by, body in missed:
            self._happened(by, body)

    def _recover_keys(self, last: entries.InputEntry | entries.BlindInput | None) -> None:
        keys = self.burst.keys()
        if keys and last and last.operator == keys.operator and last.last_seq >= keys.last_seq:
            self.burst.clear()
        self._record_keys()

    # -- recording ------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """Of the last entry."""
        return self._writer.chain.seq

    @property
    def head(self) -> bytes:
        """Its hash."""
        return self._writer.chain.head

    def record(self, actor: str, body: Body, *, forced: bool = False) -> int:
        """Write one entry, behind everything that happened before. Raises StorageFailed when it
        cannot be: then its effect must not happen."""
        self._record_keys()
        self._catch_up()
        return self._write(now(), actor, body, forced=forced, fact=False)

    def _happened(self, actor: str, body: Body, *, forced: bool = False) -> None:
        """Something that can no longer be refused."""
        at = now()
        try:
            self._catch_up(counts=False)
            self._write(at, actor, body, forced=forced, fact=True)
        except StorageFailed as error:
            self._backlog.hold(at, actor, body, error.message)
            if self._sealed:
                return
            self._retry_later()
            log.critical("journal of %s: %s; its input is refused", self._session, error)
        except SessionEnded:
            # Its end is recorded, but not buried yet: nothing that happens since is part of it.
            log.info("journal of %s: %s after its end", self._session, body.tag)

    def happened(self, actor: str, body: Body, *, forced: bool = False) -> None:
        """Something that happened, whether or not there is room to write it down."""
        self._record_keys()
        self._happened(actor, body, forced=forced)

    def record_best_effort(self, actor: str, body: Body) -> None:
        """Something that happened of which anybody may make any amount, and which nobody is kept
        from: not out of the reserve, which halting and ending need. Without room it is counted."""
        self._record_keys()
        at = now()
        try:
            self._catch_up()
            self._write(at, actor, body, forced=False, fact=False)
        except StorageFailed as error:
            self._backlog.count(at, actor, body, error.message)
            self._retry_later()
        except SessionEnded:
            log.info("journal of %s: %s after its end", self._session, body.tag)

    def _write(self, at: float, actor: str, body: Body, *, forced: bool, fact: bool) -> int:
        if self._sealed:
            raise StorageFailed("the session's record is on its way to another host")
        seq = self._writer.record(at, self._epoch(), actor, body, spend_reserve=fact)
        self._written(body)
        self._sync_soon(forced)
        self._seal_later()
        return seq

    def check_writable(self, event: ev.SessionEvent) -> None:
        """Raise unless what comes of this event can be recorded. Before it is judged."""
        size = 0
        if type(event) is ev.InputOffered:
            size = len(event.data)
        elif isinstance(event, _NEVER_REFUSED):
            return
        if event.actor != HOST_ACTOR:
            if self._lost or self._backlog.why:
                self._check_recordable()
            self._writer.reserve(ROOM_BYTES + size)

    def _check_recordable(self) -> None:
        if self._lost:
            raise StorageFailed(f"nothing more can be recorded: {self._lost}")
        self._catch_up()

    # -- what could not be written ----------------------------------------------------------------

    def _catch_up(self, *, counts: bool = True) -> None:
        """First what happened before, or StorageFailed: the journal has one order."""
        if not self._backlog.why:
            return
        self._backlog.write_facts(lambda *what: self._write(*what, forced=True, fact=True))
        if counts:
            self._backlog.write_counts(
                lambda *what: self._write(*what, forced=False, fact=False), now()
            )

    def _retry_later(self) -> None:
        if self._retry_at is None and not self._closed:
            self._retry_at = self._loop.call_later(JOURNAL_RETRY_S, self._retry)

    def _retry(self) -> None:
        self._retry_at = None
        self._try_to_catch_up()
        if self._backlog.why:
            self._retry_later()

    def unrecorded(self) -> str:
        """Why something that happened is in doubt, or not written; "" when nothing is. Tried once
        more before it is said."""
        self._try_to_catch_up()
        return self._lost or self._backlog.why

    def _try_to_catch_up(self) -> None:
        if not self._closed:
            with contextlib.suppress(StorageFailed):
                self._catch_up()

    # -- keys -----------------------------------------------------------------------------------

    def stage_key(
        self, actor: str, operator: OperatorId, seq: int, data: bytes, secret: bool, offset: int
    ) -> None:
        """Gather a key that is about to be taken; `commit_key` follows."""
        self._prepared = self.burst.prepare(actor, operator, seq, data, secret)
        if self._prepared < 0:
            self._open_burst(actor, operator, seq, secret, offset)
            self._prepared = self.burst.prepare(actor, operator, seq, data, secret)
        if self._prepared < 0:  # longer than a burst
            body: Body = entries.BlindInput(operator, seq, seq, len(data))
            if not secret:
                body = entries.InputEntry(operator, seq, seq, "keys", data, offset)
            self.record(actor, body)
            self.burst.clear()  # nothing is in it; what comes next begins one of its own

    def _open_burst(
        self, actor: str, operator: OperatorId, seq: int, secret: bool, offset: int
    ) -> None:
        """A new burst; the one before is recorded."""
        self._record_keys()
        self._check_recordable()
        self._writer.reserve(ROOM_BYTES)
        self.burst.begin(actor, operator, secret, seq, offset, now())
        self._keys_at = self._loop.call_later(JOURNAL_BURST_S, self._record_keys)

    def commit_key(self, seq: int) -> None:
        """The key staged last is in custody."""
        if self._prepared >= 0:
            self.burst.commit(self._prepared, seq)
            self._prepared = -1

    def flush(self) -> None:
        """What was gathered and counted is written."""
        if not self._closed:
            self._record_keys()
            self._try_to_catch_up()
            self._record_refusals()

    def _record_keys(self) -> None:
        """Before every other entry, for the journal has one order; and soon, if there is none."""
        if self._keys_at is not None:
            self._keys_at.cancel()
            self._keys_at = None
        if self._closed:
            return
        keys = self.burst.keys()
        if keys is None:
            self.burst.clear()  # one that was begun for a key that did not come to be taken
            return
        body: Body = entries.BlindInput(keys.operator, keys.seq, keys.last_seq, keys.size)
        if not keys.secret:
            body = entries.InputEntry(
                keys.operator, keys.seq, keys.last_seq, "keys", keys.data, keys.offset
            )
        self._happened(keys.actor, body)
        self.burst.clear()

    # -- refusals -------------------------------------------------------------------------------

    def refused(self, event: ev.SessionEvent, code: str) -> None:
        """Somebody asked for something and did not get it."""
        if (
            self._closed
            or self._writer.chain.closed_by
            or event.actor == HOST_ACTOR
            or code == StorageFailed.code
        ):
            return
        first = self._refusals.take(event, code)
        if first is None:
            return
        self._record_keys()
        self._record_refusal(*first)
        if self._refusals_at is None:
            self._refusals_at = self._loop.call_later(JOURNAL_REFUSALS_S, self._record_refusals)

    def _record_refusals(self) -> None:
        if self._refusals_at is not None:
            self._refusals_at.cancel()
            self._refusals_at = None
        if not self._closed:
            for actor, body in self._refusals.drain():
                self._record_refusal(actor, body)

    def _record_refusal(self, actor: str, body: entries.RefusedEntry) -> None:
        """Not out of the reserve: whoever is refused must not be able to use up what halting and
        ending the session need."""
        try:
            self._catch_up()
            self._write(now(), actor, body, forced=False, fact=False)
        except StorageFailed as error:
            log.warning("journal of %s: a refusal is not recorded: %s", self._session, error)

    # -- a move to another host -------------------------------------------------------------------

    async def seal_for_move(self) -> str:
        """All of it is signed and on disk, and nothing more is written, until `unseal`. Returns why
        that failed, or ""."""
        self.flush()
        if why := self._lost or self._backlog.why:
            return why
        self._seal()
        self.stay_sealed()
        return await self.sync()

    def stay_sealed(self) -> None:
        """What happens now waits: it is written if the session runs on here."""
        self._sealed = True

    def unseal(self) -> None:
        self._sealed = False
        self._try_to_catch_up()

    # -- disk -----------------------------------------------------------------------------------

    def _sync_soon(self, forced: bool) -> None:
        self._unsynced = True
        if self._syncing is None or self._syncing.done():
            self._syncing = self._spawn(self._synced(0 if forced else JOURNAL_SYNC_S))

    def _seal_later(self) -> None:
        """What is recorded is signed within the interval, also when nothing follows it."""
        if self._seal_at is None and self._writer.chain.unsealed_bytes:
            self._seal_at = self._loop.call_later(JOURNAL_SEAL_S, self._seal)

    def _seal(self) -> None:
        self._seal_at = None
        if self._closed or self._sealed or not self._writer.chain.unsealed_bytes:
            return
        self._record_keys()
        try:
            self._catch_up(counts=False)
            self._writer.seal(now(), self._epoch())
        except StorageFailed as error:
            log.error("journal of %s: %s", self._session, error)
            return
        self._sync_soon(forced=False)

    async def _synced(self, delay: float) -> None:
        if delay:
            await asyncio.sleep(delay)
        while self._unsynced and not self._closed:
            self._unsynced = False
            try:
                await asyncio.to_thread(self._writer.sync)
            except StorageFailed as error:
                self._lost = error.message
                log.critical("journal of %s: %s", self._session, error)
                return

    async def sync(self) -> str:
        """Write everything to disk. Returns why that failed, or \"\"."""
        self.flush()
        if not self._closed:
            try:
                await asyncio.to_thread(self._writer.sync)
            except StorageFailed as error:
                self._lost = error.message
        return self._lost or (self._backlog.why if self._backlog.holds else "")

    def ended(self, ending: Ending) -> None:
        """The last entry: how it ended, or that nobody can know (N9). The journal of one that is
        asleep goes on when it is restored."""
        self.flush()
        if self._writer.room() > JOURNAL_FACTS_BYTES:  # nothing else is in need of the reserve now
            with contextlib.suppress(StorageFailed):
                self._backlog.write_counts(
                    lambda *what: self._write(*what, forced=False, fact=True), now()
                )
        if ending.checkpoint or ending.may_come_back:
            with contextlib.suppress(StorageFailed):
                self._writer.seal(now(), self._epoch())
            return
        body: Body = entries.EndedEntry(ending.code, ending.signal, None)
        if ending.lost is not None:
            head = self._writer.chain.head
            body = entries.Discontinued(ending.lost, self.seq, head, ending.typed().cause)
        self.happened(HOST_ACTOR, body)

    def complete(self) -> bool:
        """Whether its end is written, and all that happened before; if not, tried once more."""
        self._try_to_catch_up()
        if self._backlog.holds:
            return False
        try:
            self._writer.finish()
        except StorageFailed as error:
            self._lost = error.message
            log.error("journal of %s: %s", self._session, error)
        return True

    def close(self) -> None:
        if self._closed:
            return
        self.flush()
        if lost := self.unrecorded():
            log.critical("journal of %s: not all is recorded: %s", self._session, lost)
        self._closed = True
        for timer in (self._seal_at, self._retry_at):
            if timer is not None:
                timer.cancel()
        self.burst.close()
        self._writer.close()
