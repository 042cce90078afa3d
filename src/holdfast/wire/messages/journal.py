"""Messages about the record: journal, verdicts, proofs, blame."""

from __future__ import annotations

from holdfast.model.ids import SessionId
from holdfast.model.info import BlameLine, Judgement
from holdfast.wire.messages.base import Answer, Request


class GetJournal(Request, tag="journal"):
    """Records of the journal as they were written, of a live session or an ended one. Answered by
    JournalShown."""

    session: str
    since_seq: int = 1  # number of the first record wanted, from 1
    # about as many bytes of records, at most 524288; one record comes in any case
    max_bytes: int = 262144


class JournalShown(Answer, tag="journal_shown"):
    """A piece of a journal."""

    session: SessionId  # whose journal it is
    # records in order, without frames, as in journal.md; none when `since_seq` is beyond the last
    records: tuple[bytes, ...]
    more: bool  # there are more: ask again from the number after the last one
    names: dict[str, str]  # names of the actors the asker sees, by id


class Verify(Request, tag="verify"):
    """Check the journal of a live or ended session against its links, its seals and what the host
    remembers of it. Answered by Verified."""

    session: str
    # every link, and not only every sealed block; finds the same faults, slower
    thorough: bool = False


class Verified(Answer, tag="verified"):
    judgement: Judgement  # the journal now


class Prove(Request, tag="prove"):
    """A proof that records are one unbroken range of the journal. Answered by Proven."""

    session: str
    first: int  # number of the first record, from 1
    last: int  # number of the last record; 0 is the last there is


class Proven(Answer, tag="proven"):
    """A proof; its two forms are described in journal.md."""

    witness: bytes  # the short form, 36 bytes
    proof: str  # the signed form, as JSON


class Certify(Request, tag="certificate"):
    """A continuity certificate of the session. Answered by Certified."""

    session: str


class Certified(Answer, tag="certified"):
    """A certificate; journal.md describes it."""

    certificate: str  # as JSON


class Blame(Request, tag="blame"):
    """Every line of the scrollback of a session, live or ended, with the command and actor that
    produced it. Answered by Blamed."""

    session: str
    first: int = 1  # number of the first line wanted, from 1
    last: int | None = None  # number of the last line wanted; null is the last there is


class Blamed(Answer, tag="blamed"):
    """Lines and where they came from."""

    lines: tuple[BlameLine, ...]  # the lines asked for
    total: int  # how many lines there are in all
