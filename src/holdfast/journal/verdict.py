"""The verdict on a journal: intact or not, where it first breaks, what is still intact."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class VerdictKind(StrEnum):
    INTACT = "intact"
    TORN_TAIL = "torn_tail"  # the last record is incomplete, as after a power loss; may be cut
    DAMAGED = "damaged"


class Break(StrEnum):
    """What is wrong at the first broken place."""

    ALTERED = "altered"  # bytes are not the ones that were written
    MISSING = "missing"  # a record is not there, later ones are
    REORDERED = "reordered"  # a record is where another belongs
    FOREIGN = "foreign"  # a record of another session
    TRUNCATED = "truncated"  # the end is missing: the head knows of more
    BAD_SIGNATURE = "bad_signature"  # a seal, or the first entry, is not signed with the right key
    HEADLESS = "headless"  # no valid head: records cut off the end would not be noticed
    FORKED = "forked"  # the host signed another history too
    EXTENDED = "extended"  # something follows the entry that closed the journal


class BreakPoint(Record):
    """A place between two records from which the rest can be verified: the beginning, or a seal."""

    segment: int  # index of the segment, from 0
    offset: int  # in it; 0 is before its header
    seq: int  # of the next record
    parent: bytes  # hash of the record before
    closed_by: str = ""  # tag of an entry that closed the journal


class Verdict(Record):
    """What is known of a journal."""

    outcome: VerdictKind
    last_seq: int  # of the last record that is whole and linked
    last_hash: bytes
    trustworthy_through: int
    signed_through: int
    tail: BreakPoint  # behind the last good seal
    host_key: bytes = b""  # of the first entry
    closed_by: str = ""  # tag of the entry that closed the journal: ended, discontinued
    broken_seq: int = 0  # the first record that is not as it was written; 0: none
    kind: Break | None = None
    detail: str = ""
    seals: int = 0
    segments: int = 0
    size: int = 0  # bytes of all segments
    torn_size: int = 0  # bytes written behind the last whole record

    def text(self) -> str:
        """One line for people."""
        if self.outcome is VerdictKind.INTACT:
            return f"intact through entry {self.last_seq}, signed through {self.signed_through}"
        if self.outcome is VerdictKind.TORN_TAIL:
            return f"torn tail: {self.torn_size} bytes after entry {self.last_seq} are incomplete"
        return (
            f"{self.kind} at entry {self.broken_seq}: {self.detail}; "
            f"trustworthy through entry {self.trustworthy_through}"
        )
