"""A continuity certificate: what became of a session over hosts and epochs, on one page that anyone
can check without a host.

It carries a signed proof of the whole chain (proof.py), and what the chain's entries say about the
session's life, signed by the host that writes the journal now. The session's own key, from which
its id is derived, named each host. With the records, everything it says can be worked out again.

What it cannot show: that nobody made another history with the host's key, and what happened after
its last entry.
"""

from __future__ import annotations

from holdfast.journal.encoding import decode
from holdfast.journal.entries import (
    Began,
    CarriedOn,
    CheckpointedEntry,
    Discontinued,
    EndedEntry,
    RestoredEntry,
    RevivedEntry,
)
from holdfast.journal.proof import SignedProof, check_signed
from holdfast.journal.signatures import as_text, is_bound, of_text, signed_message
from holdfast.model.record import Malformed, Record
from holdfast.model.restore import PeerReset, RestorePhase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.journal.entries import Entry
    from holdfast.journal.signatures import Check, Sign

_CERTIFICATE = b"holdfast certificate v1\0"
# From the least that goes on to the most.
_KINDS = ("cold", "application", "memory")
UNBROKEN = "unbroken"  # it never had to come back


class CertifiedEpoch(Record):
    """One incarnation."""

    epoch: int
    host: str  # public key of the host that wrote these entries, in hexadecimal
    binding: str  # the session key's signature over session and host key, in hexadecimal
    first: int  # entry
    last: int  # entry
    began_at: float  # of the first entry, in seconds since 1970
    ended_at: float  # of the last one


class CertifiedReturn(Record):
    """How an incarnation came out of the one before."""

    seq: int  # the entry that says so
    epoch_before: int
    epoch: int
    kind: str  # what went on: `memory`, `application` or `cold`
    checkpoint: str  # id; empty: it was not restored from one
    downtime_s: float  # from the last entry before to this one
    bytes: int  # of the checkpoint
    inputs_lost: int  # inputs recorded after the checkpoint, which are not part of it
    resets: int  # connections to peers outside, which were reset
    reset: tuple[PeerReset, ...]  # the first of them
    phases: tuple[RestorePhase, ...]  # what was done, and what each took


class Life(Record):
    """What a chain's entries say about the session."""

    session: str
    name: str
    epochs: tuple[CertifiedEpoch, ...]
    returns: tuple[CertifiedReturn, ...]
    checkpoints: int  # that were made
    takeovers: int  # daemons that took over within an incarnation, without disturbing it
    predecessor: str  # the discontinued session that this one follows; empty: none
    revived: bool  # it was started cold to follow that one, with what was known of it
    closed_by: str  # `ended` or `discontinued`; empty: it goes on

    @property
    def continuity(self) -> str:
        """The least of what went on at any time."""
        kinds = {each.kind for each in self.returns} | ({"cold"} if self.revived else set())
        return next((kind for kind in _KINDS if kind in kinds), UNBROKEN)


class Certificate(Life):
    """The life, and what proves it."""

    made_at: float
    first: int  # entry; always 1
    last: int  # entry
    before: bytes  # hash that entry 1 is linked to
    after: bytes  # hash of the last entry
    witness: bytes
    session_key: bytes  # the id is derived from it
    host_key: bytes  # of the host that signs
    binding: bytes  # the session key's signature over session and host key
    proof: bytes  # the host's signature over the range
    signature: bytes = b""  # and over all of this

    def text(self) -> str:
        return as_text("certificate", self)

    @classmethod
    def of_text(cls, text: str) -> Certificate:
        """Raises Malformed."""
        return of_text("certificate", cls, text)


# -- making -----------------------------------------------------------------------------------


def life_of(entries: Iterable[Entry]) -> Life:
    """From all entries, in order. Raises Malformed when they do not begin with the first."""
    began: Began | None = None  # the first entry
    host: Began | None = None  # that named the host which writes
    epochs, returns = list[CertifiedEpoch](), list[CertifiedReturn]()
    checkpoints = takeovers = 0
    closed_by, revived = "", False
    for entry in entries:
        body = entry.body
        if began is None:
            if not isinstance(body, Began):
                raise Malformed("the records do not begin with the first entry")
            began = body
        if isinstance(body, Began):
            host = body
        assert host is not None
        if isinstance(body, RestoredEntry) and epochs:
            returns.append(_return(entry, body, epochs))
        if not epochs or entry.epoch != epochs[-1].epoch:
            epochs.append(_epoch(entry, host))
        epochs[-1] = epochs[-1].replace(last=entry.seq, ended_at=entry.at)
        checkpoints += isinstance(body, CheckpointedEntry)
        takeovers += isinstance(body, CarriedOn)
        revived |= isinstance(body, RevivedEntry)
        if isinstance(body, EndedEntry | Discontinued):
            closed_by = body.tag
    if began is None:
        raise Malformed("there are no records")
    return Life(
        began.session,
        began.name,
        tuple(epochs),
        tuple(returns),
        checkpoints,
        takeovers,
        began.predecessor,
        revived,
        closed_by,
    )


def _epoch(entry: Entry, host: Began) -> CertifiedEpoch:
    return CertifiedEpoch(
        entry.epoch,
        host.host_key.hex(),
        host.binding.hex(),
        entry.seq,
        entry.seq,
        entry.at,
        entry.at,
    )


def _return(entry: Entry, body: RestoredEntry, epochs: list[CertifiedEpoch]) -> CertifiedReturn:
    """On another host its own first entry comes before this one."""
    seq, before = entry.seq, epochs[-1]
    if before.epoch == entry.epoch and len(epochs) > 1:
        seq, before = before.first, epochs[-2]
    downtime_s = entry.at - before.ended_at
    return CertifiedReturn(
        seq,
        body.before,
        entry.epoch,
        body.kind,
        body.checkpoint,
        max(0.0, downtime_s),
        body.size,
        body.inputs_lost,
        body.resets,
        body.reset,
        body.phases,
    )


def certify(life: Life, proof: SignedProof, made_at: float, sign: Sign) -> Certificate:
    """`proof`: of the records that the life was read from."""
    fields = {name: getattr(life, name) for name in Life._fields}
    unsigned = Certificate(
        **fields,
        made_at=made_at,
        first=proof.first,
        last=proof.last,
        before=proof.before,
        after=proof.after,
        witness=proof.witness,
        session_key=proof.session_key,
        host_key=proof.host_key,
        binding=proof.binding,
        proof=proof.signature,
    )
    return unsigned.replace(signature=sign(signed_message(_CERTIFICATE, unsigned)))


# -- checking ---------------------------------------------------------------------------------


def fault_of(certificate: Certificate, check: Check, records: Iterable[bytes] | None = None) -> str:
    """Why it is not valid; empty when it is. With the records of the journal, also whether they say
    the same."""
    if not check_signed(_proof_of(certificate), check):
        return "the chain is not signed by a host that the session's own key named"
    message = signed_message(_CERTIFICATE, certificate)
    if not check(certificate.host_key, message, certificate.signature):
        return "it was altered: the host's signature does not fit"
    if fault := _contradiction(certificate, check):
        return fault
    return _other_records(certificate, check, list(records)) if records is not None else ""


def _proof_of(certificate: Certificate) -> SignedProof:
    return SignedProof(
        certificate.session,
        _named_in(certificate),
        certificate.first,
        certificate.last,
        certificate.before,
        certificate.after,
        certificate.witness,
        certificate.session_key,
        certificate.host_key,
        certificate.binding,
        certificate.proof,
    )


def _named_in(certificate: Certificate) -> int:
    """The epoch in which the session's key named the host that signs: its first there."""
    own = certificate.host_key.hex()
    return next((each.epoch for each in certificate.epochs if each.host == own), 0)


def _contradiction(certificate: Certificate, check: Check) -> str:
    next_first, epoch_before, known = 1, 0, set[int]()
    for each in certificate.epochs:
        if each.first != next_first or each.last < each.first:
            return f"the entries of epoch {each.epoch} do not follow those before"
        if each.epoch <= epoch_before:
            return f"epoch {each.epoch} does not come after epoch {epoch_before}"
        if not _is_named(certificate, each, check):
            return f"the host of epoch {each.epoch} was not named by the session's own key"
        next_first, epoch_before = each.last + 1, each.epoch
        known.add(each.epoch)
    if certificate.first != 1 or next_first != certificate.last + 1:
        return "it is not about the whole chain"
    starts = {each.first: each for each in certificate.epochs}
    for came in certificate.returns:
        began = starts.get(came.seq)
        if began is None or began.epoch != came.epoch or came.epoch_before not in known:
            return f"entry {came.seq} does not begin an epoch"
    return ""


def _is_named(certificate: Certificate, epoch: CertifiedEpoch, check: Check) -> bool:
    try:
        host, binding = bytes.fromhex(epoch.host), bytes.fromhex(epoch.binding)
    except ValueError:
        return False
    return is_bound(certificate.session, certificate.session_key, host, binding, check)


def _other_records(certificate: Certificate, check: Check, records: list[bytes]) -> str:
    if not check_signed(_proof_of(certificate), check, records):
        return "the records given are not the ones it is about"
    try:
        life = life_of(map(decode, records))
    except Malformed as error:
        return f"the records given cannot be read: {error}"
    for name in Life._fields:
        if getattr(life, name) != getattr(certificate, name):
            return f"the records say something else about its {name}"
    return ""
