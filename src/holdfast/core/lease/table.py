"""The states of a lease as one would-be holder has it, and what leads from one to another. The
table is the truth; the diagram in docs/leases.md is drawn from it."""

from __future__ import annotations

from enum import StrEnum


class LeaseState(StrEnum):
    """Where one incarnation stands with its lease."""

    IDLE = "idle"  # wants nothing yet
    WAITING = "waiting"  # wants it; another may still act on it
    ASKING = "asking"  # wrote its claim; what came of it is not known
    HELD = "held"  # may be attached to, until the deadline
    RELEASED = "released"  # stopped by itself, and says so
    FENCED = "fenced"  # may not act any more; it can only hand over what others have of it


class LeaseStep(StrEnum):
    """What happens to a lease."""

    ACQUIRE = "acquire"  # wanted
    FORCE = "force"  # somebody attests that the holder is gone
    CLAIM = "claim"  # nobody can be acting on it: the record is written
    GRANTED = "granted"
    LATE = "late"  # granted, but the answer took longer than the lease
    REFUSED = "refused"  # the record had changed
    UNKNOWN = "unknown"  # no answer: it may have been written
    RENEW = "renew"  # a renewal is confirmed
    LAPSE = "lapse"  # the deadline passed on the holder's own clock
    OUSTED = "ousted"  # a later incarnation's record was seen: by its holder, or by an heir
    RELEASE = "release"


IDLE, WAITING, ASKING, HELD, RELEASED, FENCED = LeaseState
TRANSITIONS: dict[tuple[LeaseState, LeaseStep], LeaseState] = {
    (IDLE, LeaseStep.ACQUIRE): WAITING,
    (WAITING, LeaseStep.FORCE): WAITING,
    (WAITING, LeaseStep.CLAIM): ASKING,
    (WAITING, LeaseStep.RELEASE): RELEASED,
    (WAITING, LeaseStep.OUSTED): FENCED,
    (ASKING, LeaseStep.FORCE): ASKING,
    (ASKING, LeaseStep.GRANTED): HELD,
    (ASKING, LeaseStep.LATE): WAITING,
    (ASKING, LeaseStep.REFUSED): WAITING,
    (ASKING, LeaseStep.UNKNOWN): WAITING,
    (ASKING, LeaseStep.RELEASE): RELEASED,
    (HELD, LeaseStep.RENEW): HELD,
    (HELD, LeaseStep.UNKNOWN): HELD,
    (HELD, LeaseStep.LAPSE): FENCED,
    (HELD, LeaseStep.REFUSED): FENCED,
    (HELD, LeaseStep.OUSTED): FENCED,
    (HELD, LeaseStep.RELEASE): RELEASED,
    (FENCED, LeaseStep.RELEASE): RELEASED,
}
