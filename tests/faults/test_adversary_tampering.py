"""N8: some thousand ways to tamper with the files of a real journal, from one seed. Verification
refuses each, or not a record of the journal has changed. `tests/unit/test_journal_tampering.py`
has the ways one by one, with what exactly is said of each; here they come in any mixture."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from holdfast.journal.framing import FRAME_BYTES, HEADER_BYTES, read
from holdfast.journal.reading import HEAD_NAME, JournalReading, segment_name, segment_names
from holdfast.journal.verdict import VerdictKind
from holdfast.model.errors import StorageFailed
from holdfast.wire.ed25519 import check
from unit.journaling import flip, rechecked

SEED = 20_261_118
TAMPERINGS = 10_000
AT_ONCE = (1, 1, 1, 2, 5)  # on top of each other

# As small as a test's: several segments, as a journal of months has them.
_SMALL_SEGMENTS = """
from holdfast.adapters.journal_files.writer import JournalWriter
for make in (JournalWriter.create, JournalWriter.open):
    make.__func__.__kwdefaults__["limit"] = 3000
"""

Files = dict[str, bytes]
Tampering = Callable[[random.Random, Files, Files], None]  # the files, and another session's


class Recorded(NamedTuple):
    session: str
    files: Files
    others: Files  # of another session on the same host
    records: list[bytes]


def files_of(host: FaultHost, session: str) -> Files:
    paths = (host.home / "sessions" / session).glob("journal*")
    return {path.name: path.read_bytes() for path in paths}


def reading(files: Files) -> JournalReading:
    def bytes_of(name: str, limit: int) -> bytes:
        if name not in files:
            raise StorageFailed(name)
        return files[name] if limit < 0 else files[name][:limit]

    return JournalReading(list(files), bytes_of)


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    with customized_host(_SMALL_SEGMENTS) as host:
        client = host.up().client()
        ids = []
        for name in ("one", "other"):
            ids.append(client.run(["cat"], name=name).id)
            for number in range(40):
                client.send(name, f"line {number} of {name}")
            client.end(name)
        mine, others = (files_of(host, each) for each in ids)
        assert len(segment_names(mine)) > 3 and len(segment_names(others)) > 3
        yield Recorded(ids[0], mine, others, [each.record for each in reading(mine).found()])


# -- what is done to them -------------------------------------------------------------------------


def a_segment(chance: random.Random, files: Files) -> str:
    return chance.choice(segment_names(files) or [segment_name(1)])


def flip_a_bit(chance: random.Random, files: Files, _others: Files) -> None:
    name = chance.choice(sorted(files))
    if files[name]:
        files[name] = flip(files[name], chance.randrange(len(files[name])), chance.randrange(8))


def cut_a_file(chance: random.Random, files: Files, _others: Files) -> None:
    name = chance.choice(sorted(files))
    files[name] = files[name][: chance.randrange(len(files[name]) + 1)]


def lengthen_a_file(chance: random.Random, files: Files, others: Files) -> None:
    name = chance.choice(sorted(files))
    more = [bytes(chance.randrange(1, 200)), chance.randbytes(40), others[segment_name(1)][-90:]]
    files[name] += chance.choice(more)


def overwrite(chance: random.Random, files: Files, _others: Files) -> None:
    name = chance.choice(sorted(files))
    at, size = chance.randrange(len(files[name]) + 1), chance.choice([1, 8, 64])
    new = chance.choice([bytes(size), chance.randbytes(size)])
    files[name] = files[name][:at] + new + files[name][at + size :]


def remove_a_file(chance: random.Random, files: Files, _others: Files) -> None:
    del files[chance.choice(sorted(files))]


def swap_segments(chance: random.Random, files: Files, _others: Files) -> None:
    one, two = a_segment(chance, files), a_segment(chance, files)
    files[one], files[two] = files.get(two, b""), files.get(one, b"")


def repeat_a_segment(chance: random.Random, files: Files, _others: Files) -> None:
    number = chance.randrange(1, len(segment_names(files)) + 2)
    files[segment_name(number)] = files.get(a_segment(chance, files), b"")


def a_segment_of_another(chance: random.Random, files: Files, others: Files) -> None:
    files[a_segment(chance, files)] = others[a_segment(chance, others)]


def a_head_of_another(_chance: random.Random, files: Files, others: Files) -> None:
    files[HEAD_NAME] = others[HEAD_NAME]


def change_records(chance: random.Random, files: Files, others: Files) -> None:
    """One is deleted, repeated, moved, changed with its checksum, or another session's."""
    name = a_segment(chance, files)
    data = files.get(name, b"")
    if not (found := _whole_frames(data)):
        return
    at, to = chance.randrange(len(found)), chance.randrange(len(found))
    how = chance.randrange(6)
    if how == 0:
        del found[at]
    elif how == 1:
        found.insert(to, found[at])
    elif how == 2:
        found[at], found[to] = found[to], found[at]
    elif how == 3:
        changed = flip(
            found[at], chance.randrange(FRAME_BYTES, len(found[at])), chance.randrange(8)
        )
        found[at] = rechecked(changed)
    elif how == 4:
        found[at] = chance.choice(_whole_frames(others[a_segment(chance, others)]))
    else:
        del found[at:]
    files[name] = data[:HEADER_BYTES] + b"".join(found)


def _whole_frames(data: bytes) -> list[bytes]:
    """Of a file that may be cut or altered already: up to that place."""
    found, at = [], HEADER_BYTES
    while (whole := read(data, at)) is not None:
        found.append(data[at : whole.end])
        at = whole.end
    return found


def in_order(files: Files) -> list[bytes]:
    """The records as the files have them, whatever their headers say."""
    names = segment_names(files)
    return [each[FRAME_BYTES:] for name in names for each in _whole_frames(files[name])]


TAMPER: tuple[Tampering, ...] = (
    *(flip_a_bit, cut_a_file, lengthen_a_file, overwrite, remove_a_file, swap_segments),
    *(repeat_a_segment, a_segment_of_another, a_head_of_another, change_records, change_records),
)


@pytest.mark.requirement("N8")
@pytest.mark.timeout(120)
def test_thousands_of_tamperings_are_refused_or_changed_no_record(recorded: Recorded) -> None:
    untouched = reading(recorded.files).verify(recorded.session, check)
    assert untouched.outcome is VerdictKind.INTACT
    assert untouched.signed_through == len(recorded.records)
    chance, outcomes, changed = random.Random(SEED), Counter[str](), 0
    for number in range(TAMPERINGS):
        files = dict(recorded.files)
        done = chance.choices(TAMPER, k=chance.choice(AT_ONCE))
        for tamper in done:
            if files:
                tamper(chance, files, recorded.others)
        changed += files != recorded.files
        found = reading(files)
        verdict = found.verify(recorded.session, check, thorough=number % 4 == 0)
        said = (number, [tamper.__name__ for tamper in done], verdict.text())
        outcomes[verdict.outcome] += 1
        # What it says is signed is what was written, whatever the rest is now.
        signed = verdict.signed_through
        assert signed <= len(recorded.records), said
        assert in_order(files)[:signed] == recorded.records[:signed], said
        if verdict.outcome is not VerdictKind.DAMAGED:
            assert [each.record for each in found.found()] == recorded.records, said
            assert verdict.last_hash == untouched.last_hash, said
    assert changed > TAMPERINGS * 0.9
    assert outcomes[VerdictKind.DAMAGED] > TAMPERINGS * 0.8
