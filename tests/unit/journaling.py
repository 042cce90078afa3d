"""Journals made for tests: real keys, real files, small segments; and the ways to spoil them."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.journal_files.writer import JournalWriter
from holdfast.adapters.signing import SigningKey, check
from holdfast.journal.entries import Began, InputEntry
from holdfast.journal.framing import FRAME_BYTES, HEADER_BYTES, SEAL_MARK, length_at
from holdfast.journal.signatures import binding_message
from holdfast.journal.verdict import Verdict
from holdfast.model.ids import SessionId

HOST = SigningKey(b"h" * 32)
OPERATOR = "a" * 32


@functools.cache
def session_key(name: str = "one") -> SigningKey:
    return SigningKey(name.encode().ljust(32, b"-"))


def session_id(name: str = "one") -> str:
    return str(SessionId.of_key(session_key(name).public))


def began(name: str = "one", host: SigningKey = HOST, **more: object) -> Began:
    key, session = session_key(name), session_id(name)
    binding = key.sign(binding_message(session, host.public))
    fields = {"name": name, "argv": ("bash",), "level": "plain", "user": "root", **more}
    return Began(session, key.public, host.public, binding, **fields)  # type: ignore[arg-type]


def typed(number: int, size: int = 8) -> InputEntry:
    data = (b"%08d" % number).ljust(size, b".")[:size]
    return InputEntry(OPERATOR, number, number, "keys", data, 10 * number)


class Journal:
    """A journal on disk, by default in one segment: began, sealed, inputs, and what else is put."""

    def __init__(self, directory: Path, name: str = "one", limit: int = 1 << 20) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.name, self.session = directory, name, session_id(name)
        self.limit = limit
        self.writer = JournalWriter.create(str(directory), self.session, HOST.sign, limit=limit)
        self.writer.record(1000.0, 1, "", began(name))
        self.writer.sync()  # as a host does before anything runs

    def type(self, count: int, actor: str = "alice", size: int = 8) -> Journal:
        for _ in range(count):
            seq = self.writer.chain.seq + 1
            self.writer.record(1000.0 + seq / 1000, 1, actor, typed(seq, size))
        return self

    def sealed(self) -> Journal:
        """Sealed, on disk, and without the room reserved ahead."""
        self.writer.seal(1001.0, 1)
        self.writer.finish()
        return self

    def reopened(self, whole: bool = True) -> Journal:
        self.writer.close()
        self.writer = JournalWriter.open(
            str(self.directory), self.session, HOST.sign, check, whole=whole, limit=self.limit
        )
        return self

    @property
    def reader(self) -> JournalReader:
        return JournalReader(str(self.directory))

    def verdict(self, thorough: bool = False) -> Verdict:
        return self.reader.verify(self.session, check, thorough=thorough)

    def segments(self) -> list[Path]:
        return sorted(self.directory.glob("journal-*.seg"))

    @property
    def head(self) -> Path:
        return self.directory / "journal.head"


def verdict_of(session: str, segments: list[bytes], journal: Journal) -> Verdict:
    """The verdict on segments in memory, with the journal's head: no files are touched."""
    from holdfast.journal.verify import verify

    def segment(index: int) -> bytes | None:
        return segments[index] if index < len(segments) else None

    return verify(session, segment, journal.reader.head(), check)


def frames(data: bytes) -> list[bytes]:
    """A segment's framed records."""
    found, at = [], HEADER_BYTES
    while at < len(data) and length_at(data, at)[0]:
        end = at + FRAME_BYTES + (length_at(data, at)[0] & ~SEAL_MARK)
        found.append(data[at:end])
        at = end
    return found


def starts(data: bytes) -> Iterator[int]:
    at = HEADER_BYTES
    for frame in frames(data):
        yield at
        at += len(frame)


def rechecked(frame: bytes) -> bytes:
    """A changed frame with its checksum made right: what somebody does on purpose."""
    word, record = frame[:4], frame[FRAME_BYTES:]
    return word + zlib.crc32(record, int.from_bytes(word)).to_bytes(4) + record


def change_frames(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:HEADER_BYTES] + b"".join(change(frames(data))))


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
