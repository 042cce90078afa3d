"""Messages about the record: journal, verdicts, proofs, blame."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.info import BlameLine, Judgement
from holdfast.wire.messages.base import Answer, Request


class GetJournal(Request):
    """Records as they were written, from `since_seq` on. Answered by JournalShown."""

    tag = "journal"
    session: str
    since_seq: int = 1
    max_bytes: int = 262144


class JournalShown(Answer):
    """A piece of the journal; `more`: ask again from the next sequence on."""

    tag = "journal_shown"
    session: SessionId
    records: tuple[bytes, ...]
    more: bool
    names: dict[str, str]  # of the actors this host knows, by id


class Verify(Request):
    """Check the journal against its links, its seals and what the host remembers of it. `thorough`:
    every link, not only every sealed block. Answered by Verified."""

    tag = "verify"
    session: str
    thorough: bool = False


class Verified(Answer):
    tag = "verified"
    judgement: Judgement


class Prove(Request):
    """A proof that the records from `first` to `last` are one unbroken chain. Answered by
    Proven."""

    tag = "prove"
    session: str
    first: int
    last: int  # 0: the last one there is


class Proven(Answer):
    """`proof` is the full-strength one as JSON text; `witness` its 36-byte form."""

    tag = "proven"
    witness: bytes
    proof: str


class Blame(Request):
    """Every line of the output that is held, with the command and actor that produced it; of a
    live session or an ended one. Lines are numbered from 1. Answered by Blamed."""

    tag = "blame"
    session: str
    first: int = 1
    last: int | None = None


class Blamed(Answer):
    """As many of the lines as fit; the rest is asked for from the next one on."""

    tag = "blamed"
    lines: tuple[BlameLine, ...]
    total: int  # lines there are
