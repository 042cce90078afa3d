"""A journal's files opened without a host, and the files that proofs and exports come in. A journal
is only read: nothing here can change one."""

from __future__ import annotations

import os
from functools import partial

from holdfast.journal.reading import JournalReading, segment_names
from holdfast.model.errors import InvalidArgument, StorageFailed


def open_journal(directory: str, session: str) -> JournalReading:
    """The journal in this directory, or that session's in a host's state directory."""
    places = (directory, f"{directory}/{session}", f"{directory}/sessions/{session}")
    for place in places:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        if segment_names(names):
            return JournalReading(names, partial(_read_in, place))
    raise InvalidArgument(
        f"there is no journal of {session[:26]} in {directory}",
        hint="give the directory with its journal-*.seg, or a host's state directory",
    )


def _read_in(directory: str, name: str, limit: int) -> bytes:
    return read_file(f"{directory}/{name}", limit)


def read_file(path: str, limit: int = -1) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except OSError as error:
        raise StorageFailed(f"cannot read {path}: {error.strerror}") from error


def write_file(path: str, data: bytes | list[bytes]) -> None:
    """A new file, or the old one replaced as a whole."""
    beside = f"{path}.new"
    try:
        with open(beside, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
        os.rename(beside, path)
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}") from error
