"""A journal on disk: append-only segments and a head beside them, in the session's directory. The
files and how they are read: journal/reading.py. Writing is in writer.py.

Order of things: disk is reserved before an entry is made, the entry is written before its effect
happens, data is on disk before a head that speaks of it is. So a full disk is found while nothing
has happened yet, a killed daemon loses no entry it wrote, and after a power loss the head is never
ahead of the records.

What the directory cannot tell, if somebody who may write it puts segments and head back to an older
state, or cuts records off behind the head at a record's boundary: see journal/verify.py.

`JournalReader` needs no daemon and holds one segment at a time.
"""

from __future__ import annotations

import os

from holdfast.adapters import atomic_file
from holdfast.journal.lineage import Discontinuity
from holdfast.journal.reading import DISCONTINUED_NAME, JournalReading, segment_name, segment_names
from holdfast.model.errors import InvalidArgument, StorageFailed, why_not


def exists(directory: str) -> bool:
    """Whether a journal was begun here."""
    first = f"{directory}/{segment_name(1)}"
    return os.path.exists(first) or bool(segment_names(os.listdir(directory)))


class JournalReader(JournalReading):
    """The journal in one directory."""

    def __init__(self, directory: str) -> None:
        try:
            names = os.listdir(directory)
        except OSError as error:
            raise storage_failed(error) from error
        super().__init__(names, lambda name, limit: _read_file(f"{directory}/{name}", limit))


def _read_file(path: str, limit: int = -1) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(limit) or b""
    except OSError as error:
        raise storage_failed(error) from error


def storage_failed(error: OSError) -> StorageFailed:
    return StorageFailed(
        f"the journal cannot be kept: {why_not(error)} ({error.filename or 'segment'})",
        hint="free space or make it writable; until then nothing is done that must be recorded",
    )


def state_discontinuity(directory: str, statement: Discontinuity) -> None:
    """Put the signed statement beside the journal. Once it is there it is never replaced."""
    path = f"{directory}/{DISCONTINUED_NAME}"
    if os.path.exists(path):
        raise InvalidArgument("the discontinuity of this journal is stated already")
    try:
        atomic_file.replace(path, statement.text().encode())
        atomic_file.sync_directory(directory)
    except OSError as error:
        raise storage_failed(error) from error
