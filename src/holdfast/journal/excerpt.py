"""The records of a range as a file of their own, for whoever checks a proof without the journal:
a magic word, then the records framed as in a segment. Nothing in it is to be believed by itself; it
is the proof that says whether these are the records.
"""

from __future__ import annotations

from holdfast.journal.framing import frame, is_clean, read
from holdfast.model.record import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGIC = b"HOLDEXC\x01"  # the last byte is the version


def excerpt(records: Iterable[bytes]) -> Iterator[bytes]:
    """The file, piece by piece."""
    yield MAGIC
    for record in records:
        yield frame(record)


def records_of(data: bytes) -> Iterator[bytes]:
    """The records of such a file. Malformed when it is none, or not whole."""
    if not data.startswith(MAGIC):
        raise Malformed("not an excerpt of a journal")
    at = len(MAGIC)
    while (whole := read(data, at)) is not None:
        yield whole.record
        at = whole.end
    if at != len(data):
        cut = "is cut off" if not is_clean(data, at) else "has something behind its end"
        raise Malformed(f"the excerpt {cut}")
