"""A session that another daemon served: from its deposit to a live session, step by step.

What a daemon leaves half done is settled here and nowhere else; constructors repair nothing. Every
step may be repeated: a daemon that dies in the middle leaves the next one the same deposit.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.output_ring import Ring
from holdfast.adapters.signing import check
from holdfast.host import clock
from holdfast.host.session.discontinuity import continue_as_successor
from holdfast.host.session.journal_repair import missed_changes
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session.parcel import SessionFds, StateBlob
from holdfast.host.session_store import SessionStore
from holdfast.journal import entries
from holdfast.journal.signatures import binding_message
from holdfast.model.errors import HoldfastError, JournalDamaged
from holdfast.model.ids import HOST_ACTOR, SessionId
from holdfast.model.limits import JOURNAL_TAIL_ENTRIES, JOURNAL_TYPED_ENTRIES
from holdfast.model.record import Record

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon
    from holdfast.host.keeper_link import Collected, KeeperLink
    from holdfast.host.session.lease import SessionLease

log = logging.getLogger(__name__)


class RestoredLife(Record):
    """The deposit is made of a checkpoint: what was recorded after that is of another life."""

    actor: str  # who had it restored
    through: int  # the last entry of the journal that is part of it
    entry: entries.RestoredEntry


def recover(
    daemon: Daemon,
    deposit: Collected,
    keeper: KeeperLink,
    restored: RestoredLife | None = None,
    leasing: SessionLease | None = None,
) -> LiveSession:
    """The live session, with everything settled and nothing started (`LiveSession.start`).
    `leasing`: of a restored one that is re-homeable."""
    parcel, fds = StateBlob.of_blob(deposit.blob), SessionFds(**deposit.fds)
    ring, ledger = _open_memory(fds)
    try:
        writer, recent = _open_journal(daemon.store, parcel.spec.id)
    except JournalDamaged as damage:
        if restored is not None:
            raise
        # Its record is broken, so its identity cannot go on; what runs does, as another.
        log.error("%s; its identity ends here", damage.message)
        return _recover_as_successor(daemon, keeper, parcel, fds, ring, ledger, damage.message)
    lease, last = leasing, writer.chain.seq
    if parcel.lease is not None:
        spec = parcel.spec
        lease = daemon.leases.carry_on(spec.id, spec.process_tag, parcel.lease)
    live = LiveSession(daemon, keeper, parcel, fds, ring, ledger, writer, lease)
    if live.core.state.is_moving:
        live.journal.stay_sealed()
    missed = missed_changes(daemon.actors.authority, parcel.spec.uid, live.scopes(), recent)
    if restored is not None:
        if writer.host_key != daemon.store.host_key.public:
            _begin_here(live, daemon.store, restored.actor)
        live.journal.happened(restored.actor, restored.entry, forced=True)
        for by, body in missed:
            live.journal.happened(by, body)
        recent = [entry for entry in recent if entry.seq <= restored.through]
    live.journal.settle_inputs(ledger, recent)
    if restored is None:
        live.journal.carried_on(live.core.turn.holder or HOST_ACTOR, missed)
    directory = daemon.store.directory(parcel.spec.id)
    live.commands.recover(directory, ledger.last_seq, recent)
    live.provenance.recover(recent, partial(_more, directory, writer.chain.seq))
    live.provenance.shells_are(live.shells.numbers)
    if live.core.approvals.pending:
        live.gate.decided_in_another_life = _decided_elsewhere(directory, last, restored)
    return live


def _begin_here(live: LiveSession, store: SessionStore, actor: str) -> None:
    """Another host wrote its journal until now: the session's own key names this one."""
    spec, key = live.spec, store.session_key(live.spec.id)
    began = entries.Began(
        session=spec.id,
        session_key=key.public,
        host_key=store.host_key.public,
        binding=key.sign(binding_message(spec.id, store.host_key.public)),
        name=spec.name,
        argv=spec.argv,
        level=spec.level,
        user=spec.user,
        labels=spec.labels,
        cols=live.size.cols,
        rows=live.size.rows,
    )
    live.journal.happened(actor, began, forced=True)


def _decided_elsewhere(directory: str, last: int, restored: RestoredLife | None) -> frozenset[str]:
    """Requests for approval that were decided between the checkpoint that it was last restored from
    and that restore. Asked at each recovery: a daemon may die before it is dealt with."""
    reader, through = JournalReader(directory), None if restored is None else restored.through
    try:
        if through is None:
            for entry in reader.entries(max(1, last - JOURNAL_TYPED_ENTRIES), last):
                if isinstance(entry.body, entries.RestoredEntry):
                    through, last = entry.body.journal_seq, entry.seq
        if through is None or through >= last:
            return frozenset()
        since = reader.entries(through + 1, last)
        return frozenset(id for each in since if (id := _decided(each.body)) is not None)
    except HoldfastError:  # whoever writes the journal next will report it
        return frozenset()


def _decided(body: entries.Body) -> str | None:
    """Of what was withdrawn nobody decided: so is what waits when its session falls asleep."""
    match body:
        case entries.ApprovedEntry(enough=True) | entries.DeniedEntry():
            return body.id
    return None


def _more(directory: str, seq: int) -> list[entries.Entry]:
    try:
        return list(JournalReader(directory).entries(max(1, seq - JOURNAL_TYPED_ENTRIES), seq))
    except HoldfastError:  # whoever writes the journal next will report it
        return []


def _open_memory(fds: SessionFds) -> tuple[Ring, InputLedger]:
    """How far the output goes, and which inputs were taken."""
    ring = Ring(fds.ring, fds.output)
    ring.recover()
    ledger = InputLedger(ring, fds.input)
    ledger.recover()
    return ring, ledger


def _open_journal(
    store: SessionStore, session: SessionId
) -> tuple[JournalWriter, list[entries.Entry]]:
    """Its writer, behind a torn tail if there is one, and its last entries. The host's clock is set
    no earlier than these. Raises JournalDamaged."""
    directory, sign = store.directory(session), store.host_key.sign
    writer = JournalWriter.open(directory, session, sign, check, whole=False)
    seq = writer.chain.seq
    recent = list(JournalReader(directory).entries(max(1, seq - JOURNAL_TAIL_ENTRIES), seq))
    for entry in recent:
        clock.not_before(entry.at)
    return writer, recent


def _recover_as_successor(
    daemon: Daemon,
    keeper: KeeperLink,
    parcel: StateBlob,
    fds: SessionFds,
    ring: Ring,
    ledger: InputLedger,
    damage: str,
) -> LiveSession:
    """Its memory serves the successor; its turn, its lease and its journal do not."""
    parcel, writer, ended = continue_as_successor(daemon.store, parcel, damage)
    if ended is not None:
        daemon.registry.remember(ended)
    keeper.update(parcel.blob())  # from here on it holds the successor
    live = LiveSession(daemon, keeper, parcel, fds, ring, ledger, writer, None)
    live.commands.recover(daemon.store.directory(parcel.spec.id), ledger.last_seq)
    live.provenance.recover((), tuple)
    live.provenance.shells_are(live.shells.numbers)
    live.save_parcel()
    return live
