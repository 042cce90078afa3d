"""The journal: one more entry, verifying, proving.

Function by function, in one process, without a session around it. An entry is a 64-byte input:
made, linked, hashed, signed now and then and written by the host's own writer, beside one `write`
of as many bytes to a plain file. Both with one fdatasync for every hundred: a host syncs every 50
ms, and two thousand such inputs in a second is a busy session. The same without any fdatasync is
what the daemon's loop itself spends; nobody keeps a journal like that, so it has no target.
Verifying reads the journal from disk and judges it, beside one SHA-256 over the same bytes, read
likewise. A proof is checked by finding the range in the journal's files and recomputing it; once in
a journal that is ten times as long outside the range."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from functools import partial

from bench.results import Row, Target
from bench.sampling import interleaved, medians
from bench.stage import Stage
from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.signing import SigningKey, check
from holdfast.journal.entries import Began, InputEntry
from holdfast.journal.framing import read_header
from holdfast.journal.proof import SignedProof, check_signed, prove
from holdfast.journal.signatures import binding_message
from holdfast.journal.verdict import VerdictKind
from holdfast.model.ids import SessionId

_PER_KEY = 100  # entries of a journal, for each key of the run's scale: 100 000 in a full run
_SYNC_EACH = 100
_REPETITIONS = 7
_RANGE = 2000
_OPERATOR = "a" * 32
_ACTOR = "7cdztvcb2fk9gnj9canmysjmzq"


def measure(stage: Stage) -> list[Row]:
    entries = stage.scale.keys * _PER_KEY
    host = SigningKey.generate()
    return [
        *_appending(stage, host, entries // 10),
        _verifying(stage, host, entries),
        _proving(stage, host, entries),
    ]


# -- appending --------------------------------------------------------------------------------


def _appending(stage: Stage, host: SigningKey, count: int) -> list[Row]:
    rows = []
    for grouped in (True, False):
        directory = stage.path(f"journal-append-{grouped}")
        writer, session = _begin(directory, host)
        typed = InputEntry(_OPERATOR, 1, 1, "keys", b"x" * 64, 123456)
        size = len(writer.chain.extend(time.time(), 1, _ACTOR, typed)[1])
        writer.chain.retract()
        plain = os.open(f"{directory}/plain", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        samples = interleaved(
            {
                "holdfast": partial(_journal, writer, count, grouped),
                "plain": partial(_append, plain, bytes(size), count, grouped),
            },
            _REPETITIONS,
        )
        assert JournalReader(directory).verify(session, check).outcome is VerdictKind.INTACT
        os.close(plain)
        writer.close()
        values = medians(samples)
        rows.append(
            Row(
                "a journaled 64-byte input"
                + (", same fdatasync grouping" if grouped else ", no fdatasync"),
                "µs",
                {"holdfast": values["holdfast"]},
                "plain append",
                values["plain"],
                Target("<=", 4) if grouped else None,
                note=f"{size} bytes on disk",
                samples=samples,
            )
        )
    return rows


def _journal(writer: JournalWriter, count: int, grouped: bool) -> float:
    """Microseconds for one."""
    data = b"x" * 64
    now = time.time
    began = time.perf_counter()
    for number in range(count):
        writer.record(now(), 1, _ACTOR, InputEntry(_OPERATOR, number, number, "keys", data, 123456))
        if grouped and number % _SYNC_EACH == _SYNC_EACH - 1:
            writer.sync()
    return (time.perf_counter() - began) / count * 1e6


def _append(fd: int, record: bytes, count: int, grouped: bool) -> float:
    began = time.perf_counter()
    for number in range(count):
        os.write(fd, record)
        if grouped and number % _SYNC_EACH == _SYNC_EACH - 1:
            os.fdatasync(fd)
    return (time.perf_counter() - began) / count * 1e6


# -- verifying --------------------------------------------------------------------------------


def _verifying(stage: Stage, host: SigningKey, count: int) -> Row:
    directory = stage.path("journal-verify")
    session = _written(directory, host, count)
    reader = JournalReader(directory)

    def verified() -> None:
        assert reader.verify(session, check).outcome is VerdictKind.INTACT

    def hashed() -> None:
        digest = hashlib.sha256()
        for index in range(len(reader.names)):
            digest.update(reader.segment(index) or b"")
        digest.digest()

    samples = interleaved({"holdfast": _timed(verified), "hashing": _timed(hashed)}, _REPETITIONS)
    values = medians(samples)
    began = time.perf_counter()
    reader.verify(session, check, thorough=True)
    thorough_ms = (time.perf_counter() - began) * 1e3
    return Row(
        f"verifying a chain of {count} entries",
        "ms",
        {"holdfast": values["holdfast"]},
        "hashing its bytes",
        values["hashing"],
        Target("<=", 4),
        note=f"thorough, every link: {thorough_ms:.0f} ms",
        samples=samples,
    )


# -- proving ----------------------------------------------------------------------------------


def _proving(stage: Stage, host: SigningKey, count: int) -> Row:
    """The range begins with the middle segment of both, so that they differ in length only."""
    size = min(_RANGE, count // 40)
    actions = {}
    for name, length in (("short", count // 10), ("holdfast", count)):
        directory = stage.path(f"journal-proof-{name}")
        _written(directory, host, length, limit=1 << 20)
        reader = JournalReader(directory)
        first = read_header(reader.segment(len(reader.names) // 2) or b"").first
        began = next(reader.entries()).body
        assert isinstance(began, Began)
        proof = prove(began, 1, reader.records(first, first + size - 1), host.sign)
        actions[name] = _timed(partial(_check, directory, proof))
    samples = interleaved(actions, 3 * _REPETITIONS)
    values = medians(samples)
    return Row(
        f"proof check of {size} entries, chain 10× longer outside the range",
        "ms",
        {"holdfast": values["holdfast"]},
        "the shorter chain",
        values["short"],
        Target("<=", 1.2),
        samples=samples,
    )


def _check(directory: str, proof: SignedProof) -> None:
    found = JournalReader(directory).records(proof.first, proof.last)
    assert check_signed(proof, check, found)


# -- journals ---------------------------------------------------------------------------------


def _begin(directory: str, host: SigningKey, limit: int = 0) -> tuple[JournalWriter, str]:
    os.mkdir(directory)
    key = SigningKey.generate()
    session = SessionId.of_key(key.public)
    options = {"limit": limit} if limit else {}
    writer = JournalWriter.create(directory, session, host.sign, **options)
    binding = key.sign(binding_message(session, host.public))
    body = Began(session, key.public, host.public, binding, "bench", ("bash",), "plain", "root")
    writer.record(time.time(), 1, "", body)
    writer.sync()
    return writer, session


def _written(directory: str, host: SigningKey, count: int, limit: int = 0) -> str:
    writer, session = _begin(directory, host, limit)
    _journal(writer, count, False)
    writer.seal(time.time(), 1)
    writer.finish()
    writer.close()
    return session


def _timed(action: Callable[[], None]) -> Callable[[], float]:
    """Milliseconds."""

    def timed() -> float:
        began = time.perf_counter()
        action()
        return (time.perf_counter() - began) * 1e3

    return timed
