"""The records that a proof or a certificate is about, in a file of their own."""

from __future__ import annotations

from typing import Protocol

from holdfast.cli.journal.files import read_file, write_file
from holdfast.cli.journal.pages import Pages
from holdfast.journal.excerpt import excerpt, records_of
from holdfast.journal.proof import check_witness
from holdfast.model.errors import InvalidArgument, JournalDamaged
from holdfast.model.record import Malformed
from holdfast.sdk.client import Host


class ProvenRange(Protocol):
    """What is proven of which entries."""

    @property
    def session(self) -> str: ...

    @property
    def first(self) -> int: ...

    @property
    def last(self) -> int: ...

    @property
    def witness(self) -> bytes: ...


def write_records(host: Host, path: str, proven: ProvenRange) -> None:
    """The records, once they are seen to be the ones that the proof is of."""
    kept = Pages(host, proven.session).entries(proven.first, proven.last)
    records = [each.record for each in kept]
    if not check_witness(proven.witness, proven.session, proven.first, proven.last, records):
        raise JournalDamaged("the records are not the ones the proof is of", hint="`hold verify`")
    write_file(path, list(excerpt(records)))


def read_records(path: str) -> list[bytes]:
    try:
        return list(records_of(read_file(path)))
    except Malformed as error:
        raise InvalidArgument(
            f"not a journal's records: {path}: {error}",
            hint="`hold proof` and `hold certificate` write them with --records FILE",
        ) from error
