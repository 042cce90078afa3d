"""Honest discontinuity (N9): a session that cannot go on is said to have been discontinued, by a
signed statement of why and how far its record can be trusted. Its identity never runs again; what
follows it is a new session that names it."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from holdfast.adapters.journal_files.segments import JournalReader, exists, state_discontinuity
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.signing import check
from holdfast.host.clock import now
from holdfast.host.session.parcel import SavedHalt, StateBlob
from holdfast.host.session_store import SessionStore, Stored
from holdfast.journal import lineage
from holdfast.journal.entries import HOST, Began, Discontinued, TailCut
from holdfast.journal.signatures import binding_message
from holdfast.journal.verdict import Break, Verdict, VerdictKind
from holdfast.model.discontinuity import DiscontinuityCause
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import SessionId

log = logging.getLogger(__name__)


def discontinue(
    store: SessionStore,
    session: SessionId,
    epoch: int,
    reason: str,
    cause: DiscontinuityCause | None = None,
) -> int:
    """State it: as the journal's last entry, or beside a journal that is damaged. What cannot be
    written is logged; the session's end is certain either way. Without a cause it is the damage.
    Gives the last entry that can be trusted, 0 when none can."""
    directory, through = store.directory(session), 0
    try:
        if not exists(directory):
            return 0
        reader = JournalReader(directory)
        verdict = reader.verify(session, check)
        through = verdict.trustworthy_through
        if verdict.closed_by or reader.discontinuity() is not None:
            return through
        cause = cause or _damage(reader, session, verdict)
        if verdict.outcome is VerdictKind.DAMAGED:
            statement = lineage.discontinuity(
                session,
                verdict,
                reader.hash_at(session, through) if through else b"",
                f"{reason}; its journal is {verdict.text()}",
                now(),
                store.host_key.public,
                cause,
            )
            state_discontinuity(directory, statement.signed(store.host_key.sign))
            return through
        journal = JournalWriter.open(directory, session, store.host_key.sign, check)
        try:
            if journal.cut is not None:  # never silently
                cut = TailCut(journal.cut)
                journal.record(now(), epoch, HOST, cut, spend_reserve=True)
            stated = lineage.discontinued(verdict, reason, cause)
            journal.record(now(), epoch, HOST, stated, spend_reserve=True)
            journal.finish()
        finally:
            journal.close()
    except (HoldfastError, OSError) as error:
        log.error("discontinuity of %s: %s", session, error)
    return through


def _damage(reader: JournalReader, session: SessionId, verdict: Verdict) -> DiscontinuityCause:
    """With both hashes where the head and the records are of two histories."""
    mine = other = b""
    if verdict.kind is Break.FORKED and (head := reader.head()) is not None:
        other = head.hash
        with contextlib.suppress(HoldfastError):
            mine = reader.hash_at(session, verdict.broken_seq)
    return lineage.cause_of(verdict, mine, other)


def continue_as_successor(
    store: SessionStore, kept: StateBlob, reason: str
) -> tuple[StateBlob, JournalWriter, Stored | None]:
    """What runs goes on under a new identity that names the old one. Nobody holds its turn: it was
    got under a record that cannot be trusted. Gives the old one's tombstone too."""
    old = kept.spec
    discontinue(store, old.id, old.epoch, reason)
    fresh = store.create()
    trusted = JournalReader(store.directory(old.id)).discontinuity()
    journal = begin_journal(
        store,
        fresh,
        HOST,
        old.epoch,
        name=old.name,
        argv=old.argv,
        level=old.level,
        user=old.user,
        labels=old.labels,
        cols=kept.size.cols,
        rows=kept.size.rows,
        predecessor=old.id,
        predecessor_seq=trusted.last_seq if trusted else 0,
        predecessor_hash=trusted.last_hash if trusted else b"",
    )
    journal.sync()
    cause = trusted.cause if trusted else None
    ended = store.bury_discontinued(old.id, fresh, reason, cause)
    spec = old.replace(id=fresh, born_as=old.process_tag)
    fresh_start = kept.replace(spec=spec, turn=None, lease=None)
    if kept.lease is not None and kept.halt is None:
        # A lease is for one identity, and who held this one's is not known from a damaged record:
        # what runs goes on, pinned, when somebody says so.
        fresh_start = fresh_start.replace(halt=SavedHalt(confirmed=False))
    return fresh_start, journal, ended


def begin_journal(
    store: SessionStore, session: SessionId, actor: str, epoch: int, **known: Any
) -> JournalWriter:
    """The journal with its first entry: before anything of the session runs."""
    key, host_key = store.session_key(session), store.host_key
    began = Began(
        session=session,
        session_key=key.public,
        host_key=host_key.public,
        binding=key.sign(binding_message(session, host_key.public)),
        **known,
    )
    journal = JournalWriter.create(store.directory(session), session, host_key.sign)
    try:
        journal.record(now(), epoch, actor, began)
    except HoldfastError:
        journal.close()
        raise
    return journal


def lineage_of(store: SessionStore, session: SessionId) -> dict[str, Any]:
    """What a new session says of the ended one that it follows, for its first entry."""
    reader = JournalReader(store.directory(session))
    statement = reader.discontinuity()
    if statement is not None:
        seq, head = statement.last_seq, statement.last_hash
    else:
        verdict = reader.verify(session, check)
        seq, head = verdict.last_seq, verdict.last_hash
        for entry in reader.entries(max(1, seq - 8), seq):
            if isinstance(entry.body, Discontinued):
                seq, head = entry.body.last_seq, entry.body.last_hash
    return {"predecessor": session, "predecessor_seq": seq, "predecessor_hash": head}
