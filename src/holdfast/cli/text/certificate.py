"""A continuity certificate as one page."""

from __future__ import annotations

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import amount, clock, counted, lasting
from holdfast.journal.certificate import UNBROKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.journal.certificate import Certificate, CertifiedReturn

_KINDS = {
    UNBROKEN: "unbroken: it never had to come back",
    "memory": "memory: its processes went on as they were",
    "application": "application: its program went on with the state it had saved",
    "cold": "cold: its command was started again",
}
_CLOSED = {"ended": "it has ended", "discontinued": "it was discontinued", "": "it goes on"}
_HOST_DIGITS = 16


def certificate_lines(certificate: Certificate) -> Iterator[str]:
    yield f"continuity of session {certificate.session} ({sanitize(certificate.name)})"
    yield f"  certified    {clock(certificate.made_at)} by host {certificate.host_key.hex()[:16]}"
    yield "  identity     one: the session's own key named every host below"
    yield f"  chain        entries 1 to {certificate.last}, unbroken"
    yield f"  last hash    {certificate.after.hex()}"
    yield f"  continuity   {_KINDS.get(certificate.continuity, sanitize(certificate.continuity))}"
    for each in certificate.epochs:
        host, when = (
            sanitize(each.host)[:_HOST_DIGITS],
            (clock(each.began_at), clock(each.ended_at)),
        )
        yield f"  epoch {each.epoch:<6} entries {each.first} to {each.last}, by host {host}"
        yield f"               {when[0]} to {when[1]}"
    for came in certificate.returns:
        yield from _return_lines(came)
    yield f"  checkpoints  {certificate.checkpoints}"
    yield f"  daemons      {certificate.takeovers} took over without disturbing it"
    if certificate.predecessor:
        how = (
            "was lost; its command was started again" if certificate.revived else "was discontinued"
        )
        yield f"  follows      session {sanitize(certificate.predecessor)}, which {how}"
    yield f"  state        {_CLOSED.get(certificate.closed_by, sanitize(certificate.closed_by))}"


def _return_lines(came: CertifiedReturn) -> Iterator[str]:
    of = f" from {sanitize(came.checkpoint)}" if came.checkpoint else ""
    yield f"  came back    epoch {came.epoch_before} to {came.epoch}{of}: {sanitize(came.kind)}"
    yield f"    away       {lasting(came.downtime_s)}, {amount(came.bytes)} restored"
    yield f"    inputs     {came.inputs_lost} after the checkpoint, which are not part of it"
    yield f"    reset      {counted(came.resets, 'connection')}"
    for reset in came.reset:
        yield (
            f"      {sanitize(reset.local)} to {sanitize(reset.peer)}, of "
            f"{sanitize(reset.process)} ({reset.pid})"
        )
