"""What can happen to a move, and what can come of it: the vocabulary of `migration.py`.

`now` is the host's own CLOCK_BOOTTIME in seconds. Image, journal and tree are not in here: they are
large, and only where they are and whether they are whole matters to the machine.
"""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.ids import OperatorId
from holdfast.model.record import Record


class HeldInput(Record):
    """An input that came while the session moved. Its actor was not answered yet; it is judged when
    it is delivered, at the host where the session then lives."""

    actor: str
    operator: OperatorId
    seq: int
    data: bytes
    form: str = "keys"
    intent: str = ""


class MoveNote(StrEnum):
    """What one end tells the other. A note that is lost or repeated does no harm."""

    RESTORING = "restoring"  # target: the image is here, and whole
    RESTORED = "restored"  # target: a tree is made of it
    PRIMED = "primed"  # target: it needs nothing more of the source but the release
    ASKS = "asks"  # target: heard nothing for long
    FAILED = "failed"  # target: gave it up
    RELEASED = "released"  # source: look at the record
    CALLED_OFF = "called off"  # source: the session runs here


# -- events -----------------------------------------------------------------------------------


class MoveEvent(Record):
    """A fact that bears on a move. One that does not fit the state changes nothing: it is late, or
    a repetition."""

    now: float


class Noted(MoveEvent):
    """The other end says this."""

    note: MoveNote
    reason: str = ""


class Progress(MoveEvent):
    """More of the image was sent, or has come."""


class MoveFailed(MoveEvent):
    """What this end was doing cannot be done: to take the image, to send it, to restore it, to
    reach the other end."""

    reason: str


class RecordIs(MoveEvent):
    """The lease record, as an answer to LookAtRecord."""

    epoch: int
    incarnation: str
    released_to: str = ""  # the incarnation it is released to; "": it is held
    ours: bool = False  # its owner is this host


class RecordUnknown(MoveEvent):
    """The coordination point did not answer."""


class MoveTick(MoveEvent):
    """Time has passed."""


class Recovered(MoveEvent):
    """A new daemon carries it on. `tree`: the session's processes are still there, standing still;
    they are not after a restart of the machine."""

    tree: bool


class InputCame(MoveEvent):
    """At the source: an input that was not taken before."""

    held: HeldInput


class ImageTaken(MoveEvent):
    """At the source: the tree stands still, and its image is whole."""


class LeaseReleased(MoveEvent):
    """At the source: the record says so, or says that it is another's."""


class FencedBeforeRelease(MoveEvent):
    """At the source: fenced, before it was released."""

    reason: str


class Reclaimed(MoveEvent):
    """At the source: the lease is held here again, in this epoch."""

    epoch: int


class ReclaimOusted(MoveEvent):
    """At the source: the target was faster."""


class Disposed(MoveEvent):
    """At the source: nothing of the tree is left."""


class ImageArrived(MoveEvent):
    """At the target: all of it is on the disk, and its digests are right."""


class TreeRestored(MoveEvent):
    """At the target: it stands still, in its keeper's custody."""


class RestArrived(MoveEvent):
    """At the target: what happened since the image. The rest of the journal is on the disk."""

    held: tuple[HeldInput, ...]


class Claimed(MoveEvent):
    """At the target: the lease is held here, in this epoch."""

    epoch: int


class ClaimOusted(MoveEvent):
    """At the target: the source took it back, or somebody forced it."""


class Delivered(MoveEvent):
    """At the target: the answer to DeliverHeld."""


# -- effects ----------------------------------------------------------------------------------


class MoveEffect(Record):
    """What follows, to be carried out in the order given, after what `kept` gives is on the disk
    or in custody."""


class Tell(MoveEffect):
    """The other end, if it can be reached."""

    note: MoveNote
    reason: str = ""


class LookAtRecord(MoveEffect):
    """Answer with RecordIs or RecordUnknown."""


class TakeImage(MoveEffect):
    """At the source: freeze the tree and take its image; answer with ImageTaken or MoveFailed."""


class SendImage(MoveEffect):
    """At the source: with the session's parcel and its journal so far. Each piece is Progress."""


class SendRest(MoveEffect):
    """At the source: what was journaled since, and these inputs. From here on nothing is journaled,
    unless the move is rolled back."""

    held: tuple[HeldInput, ...]


class StopTree(MoveEffect):
    """At the source: freeze it so that it stays frozen whatever becomes of its tracer and of the
    daemon."""


class ReleaseLease(MoveEffect):
    """At the source: answer with LeaseReleased, once it is certain."""

    successor: str


class ReclaimLease(MoveEffect):
    """At the source: as the heir of this epoch. Begin, or carry on; answer with Reclaimed or
    ReclaimOusted."""

    heir_of: int


class RunOnHere(MoveEffect):
    """At the source: say in the journal that the move failed and why, and let the tree run, in this
    epoch."""

    epoch: int
    reason: str


class DisposeOfTree(MoveEffect):
    """At the source: end it without a trace of its own, tell its operators where the session is;
    answer with Disposed."""

    epoch: int  # of the target


class CloseAsLost(MoveEffect):
    """At the source: the session is lost with its host, as without a move."""


class AnswerInput(MoveEffect):
    """At the source: refuse this input, which was not held."""

    held: HeldInput
    reason: str


class DeliverHeld(MoveEffect):
    """Offer these to the tree, in this order, before anything else; one that was taken before is
    no new one. At the target answer with Delivered, when each is in custody or refused."""

    held: tuple[HeldInput, ...]


class RestoreTree(MoveEffect):
    """At the target: answer with TreeRestored or MoveFailed."""


class ClaimLease(MoveEffect):
    """At the target: as the heir of this epoch. Begin, or carry on; answer with Claimed or
    ClaimOusted."""

    heir_of: int


class AdoptEpoch(MoveEffect):
    """At the target: write it into token file, journal and parcel. The tree stands still yet."""

    epoch: int


class LiveHere(MoveEffect):
    """At the target: let the tree run, announce it, and let operators in."""


class Discard(MoveEffect):
    """At the target: tree, image and everything else of it."""

    reason: str
