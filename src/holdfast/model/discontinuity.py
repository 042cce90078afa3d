"""Why a session could not go on (N9): a type for programs, beside the text for people.

Not here: the signed statements (journal.lineage), and who finds a session lost (host).
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import Record


class DiscontinuityKind(StrEnum):
    """What broke."""

    HOST_LOST = "host_lost"  # the machine stopped or restarted
    KEEPER_LOST = "keeper_lost"  # the machine ran on, the process that kept the session did not
    CHAIN_BREAK = "chain_break"  # records of the journal are missing, moved or of another session
    CONFLICTING_CHAINS = "conflicting_chains"  # the host signed two histories
    CORRUPTION = "corruption"  # records of the journal are not as they were written
    GIVEN_UP = "given_up"  # it was asleep, and somebody ended it, or started a successor
    UNKNOWN = "unknown"  # an older version recorded it, or a newer one in a way not known here


class DiscontinuityCause(Record):
    """What broke, and what is known of it."""

    kind: str  # `host_lost`, `keeper_lost`, `chain_break`, `conflicting_chains`, `corruption`, ...
    # `host_lost`, `keeper_lost`: the last checkpoint, from which it may be restored; empty when
    # there was none. `given_up`: the one it was asleep in
    checkpoint: str = ""
    boot_id: str = ""  # `host_lost`: boot id of the machine in which it ran; empty: not recorded
    at: int = 0  # of a broken journal: the first record that cannot be relied on; 0: not known
    a: str = ""  # `conflicting_chains`: hash of one chain there, in hexadecimal, if it is known
    b: str = ""  # and of the other


_TEXTS = {
    "its host died": DiscontinuityKind.HOST_LOST,
    "its keeper died": DiscontinuityKind.KEEPER_LOST,
}


def cause_of_text(text: str) -> DiscontinuityCause:
    """Of a record without a type, which an older version wrote."""
    for words, kind in _TEXTS.items():
        if text.startswith(words):
            return DiscontinuityCause(kind)
    return DiscontinuityCause(DiscontinuityKind.UNKNOWN)
