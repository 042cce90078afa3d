"""The journal that came with a session from another host, judged before it becomes this host's."""

from __future__ import annotations

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.signing import check
from holdfast.journal.verdict import VerdictKind
from holdfast.model.checkpoint import Checkpoint
from holdfast.model.errors import CheckpointInvalid, JournalDamaged
from holdfast.model.ids import SessionId


def check_arrived(
    arrived: str,
    known: str | None,
    session: SessionId,
    checkpoint: Checkpoint,
    *,
    may_be_torn: bool = False,
) -> None:
    """It is whole, leads to the checkpoint, and goes on from what this host knew of the session.
    Directories; `known`: of an earlier journal of the session here, which the arrived one replaces.
    `may_be_torn`: the host that wrote it may have died. Raises JournalDamaged and
    CheckpointInvalid. Blocking."""
    reader = JournalReader(arrived)
    verdict = reader.verify(session, check)
    accepted = {VerdictKind.INTACT} | ({VerdictKind.TORN_TAIL} if may_be_torn else set())
    if verdict.outcome not in accepted:
        raise JournalDamaged(f"its journal did not come whole: {verdict.text()}")
    expected = [(checkpoint.journal_seq, checkpoint.journal_head)]
    if known is not None:
        before = JournalReader(known).verify(session, check)
        expected.append((before.last_seq, before.last_hash))
    for seq, head in expected:
        if seq > verdict.last_seq or reader.hash_at(session, seq) != head:
            raise CheckpointInvalid(
                f"what came of {checkpoint.session_name} is not of the history that is known"
            )
