"""Makes docs/journal-vectors.json: one small journal, with everything in it spelled out.

    PYTHONPATH=src:tests python -m unit.journal_vectors > docs/journal-vectors.json

A test compares the file with what is made here, so a change of the format is seen. It must then be
a change on purpose: who wrote a verifier from the document relies on the old one.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.adapters.signing import SigningKey, check
from holdfast.journal import entries as e
from holdfast.journal.chain import Chain, genesis
from holdfast.journal.encoding import decode, hash_of
from holdfast.journal.framing import FRAME_BYTES, HEADER_BYTES, frame, header
from holdfast.journal.lineage import Discontinuity
from holdfast.journal.proof import linked, prove
from holdfast.journal.signatures import Head, binding_message, seal_message
from holdfast.journal.verdict import Verdict
from holdfast.journal.verify import verify
from holdfast.model.discontinuity import DiscontinuityCause, DiscontinuityKind
from holdfast.model.ids import ActorId, SessionId
from unit.journaling import flip

SESSION_SEED, HOST_SEED = bytes(range(32)), bytes(range(32, 64))
ADA = ActorId.of_key(SigningKey(bytes(range(64, 96))).public)
SCOUT = ActorId.of_key(SigningKey(bytes(range(96, 128))).public)
OPERATOR = "00112233445566778899aabbccddeeff"
SEGMENTS = ("journal-00000001.seg", "journal-00000002.seg")
_ROOM = 24  # zeros reserved behind the last record

_BEGINNING = (
    (ADA, e.AttachedEntry(OPERATOR, "example 1.0", False, 0)),
    (ADA, e.TurnMoved("request", "", ADA)),
    (ADA, e.InputEntry(OPERATOR, 1, 8, "keys", b"make\xc3\xa9\r", 2)),
    ("", e.SealEntry(0, b"", b"")),
    (ADA, e.CommandBegan(1, "makeé", "/srv", 9, (ADA,))),
)
_END = (
    (SCOUT, e.RefusedEntry(OPERATOR, "input", "turn_held", 3, 300)),
    (ADA, e.BlindInput(OPERATOR, 9, 17, 9)),
    ("", e.CommandEnded(1, 2, "/srv", 70000)),
    ("", e.SealEntry(0, b"", b"")),
    ("", e.EndedEntry(code=0)),
    ("", e.SealEntry(0, b"", b"")),
    (ADA, e.DetachedEntry(OPERATOR)),
)


class Made:
    """The journal, as its two files would be."""

    def __init__(self) -> None:
        self.session_key, self.host = SigningKey(SESSION_SEED), SigningKey(HOST_SEED)
        self.session = str.__str__(SessionId.of_key(self.session_key.public))
        self.binding = self.session_key.sign(binding_message(self.session, self.host.public))
        self.began = e.Began(
            self.session, self.session_key.public, self.host.public, self.binding,
            "build", ("bash",), "plain", "ada", ("prod",), cols=80, rows=24,
        )  # fmt: skip
        self._chain = Chain(self.session)
        self.framed: list[tuple[int, int, bytes]] = []  # segment, offset, frame and record
        first = ((ADA, self.began), ("", e.SealEntry(0, b"", b"")), *_BEGINNING)
        self.segments = [self._segment(0, first), self._segment(1, _END) + bytes(_ROOM)]

    def _segment(self, index: int, wanted: tuple[tuple[str, e.Body], ...]) -> bytes:
        chain = self._chain
        data = header(self.session, chain.seq + 1, chain.head)
        for actor, body in wanted:
            at = 1767225600.0 + 0.25 * chain.seq
            if isinstance(body, e.SealEntry):
                entry, framed = chain.seal(at, 1, self.host.sign)
                chain.sealed()
                self._at_seal = (entry.seq, chain.head, index, len(data), dict(chain.actors))
                self._closed_by = chain.closed_by
            else:
                _, framed = chain.extend(at, 1, actor, body)
            self.framed.append((index, len(data), framed))
            data += framed
        return data

    def head(self) -> Head:
        return Head(self.session, *self._at_seal, self._closed_by).signed(self.host.sign)

    def records(self) -> list[bytes]:
        return [framed[FRAME_BYTES:] for _, _, framed in self.framed]

    def files(self) -> dict[str, bytes]:
        return {**dict(zip(SEGMENTS, self.segments, strict=True)), "journal.head": self._head_file}

    @property
    def _head_file(self) -> bytes:
        return self.head().encoded()


def made() -> dict[str, Any]:
    journal = Made()
    return {
        "about": "See journal.md, Test vectors.",
        "session_seed": SESSION_SEED.hex(),
        "host_seed": HOST_SEED.hex(),
        "session": journal.session,
        "session_key": journal.session_key.public.hex(),
        "host_key": journal.host.public.hex(),
        "genesis": genesis(journal.session).hex(),
        "binding": {
            "message": binding_message(journal.session, journal.host.public).hex(),
            "signature": journal.binding.hex(),
        },
        "segments": [
            {"name": name, "bytes": data.hex()}
            for name, data in zip(SEGMENTS, journal.segments, strict=True)
        ],
        "records": [_record(*place) for place in journal.framed],
        "seals": [_seal(journal, record) for record in journal.records() if _is_seal(record)],
        "head": {
            "bytes": journal.head().encoded().hex(),
            "message": journal.head().message().hex(),
            "fields": _plain(journal.head().pack()),
        },
        **_proofs(journal),
        "broken": [_broken(journal, *case) for case in _spoilings(journal)],
    }


def _record(segment: int, offset: int, framed: bytes) -> dict[str, Any]:
    record = framed[FRAME_BYTES:]
    entry = decode(record)
    return {
        "segment": segment,
        "offset": offset,
        "record": record.hex(),
        "hash": hash_of(record).hex(),
        "seq": entry.seq,
        "at": entry.at,
        "epoch": entry.epoch,
        "actor": entry.actor,
        "actor_seq": entry.actor_seq,
        "kind": entry.body.tag,
        "body": _plain(entry.body.pack()),
        "parent": entry.parent.hex(),
    }


def _is_seal(record: bytes) -> bool:
    return isinstance(decode(record).body, e.SealEntry)


def _seal(journal: Made, record: bytes) -> dict[str, Any]:
    entry = decode(record)
    assert isinstance(entry.body, e.SealEntry)
    return {
        "seq": entry.seq,
        "from_seq": entry.body.from_seq,
        "digest": entry.body.digest.hex(),
        "message": seal_message(journal.session, entry).hex(),
        "signature": entry.body.signature.hex(),
    }


def _proofs(journal: Made) -> dict[str, Any]:
    messages: list[bytes] = []

    def sign(message: bytes) -> bytes:
        messages.append(message)
        return journal.host.sign(message)

    records = journal.records()[2:9]
    link = linked(records)
    assert link is not None
    proof = prove(journal.began, 1, records, sign)
    statement = Discontinuity(
        journal.session, "its host died", 2, hash_of(journal.records()[1]),
        1767225700.5, journal.host.public,
    ).signed(sign)  # fmt: skip
    cause = DiscontinuityCause(DiscontinuityKind.HOST_LOST, boot_id="a-boot")
    typed = statement.replace(cause=cause).signed(sign)
    return {
        "range": {**_plain(link.pack(), hexed=True), "witness": proof.witness.hex()},
        "proof": {"message": messages[0].hex(), "text": proof.text()},
        "discontinuity": {"message": messages[2].hex(), "text": typed.text()},
        "discontinuity_v1": {"message": messages[1].hex(), "text": statement.text()},
    }


def _plain(value: Any, hexed: bool = False) -> Any:
    if isinstance(value, bytes):
        return value.hex() if hexed else {"hex": value.hex()}
    if isinstance(value, dict):
        return {key: _plain(item, hexed) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, hexed) for item in value]
    return value


# -- ways to spoil it -------------------------------------------------------------------------

Edit = tuple[str, int, int, bytes]  # file, offset, bytes to remove, bytes to insert


def _spoilings(journal: Made) -> list[tuple[str, list[Edit]]]:
    one, two = SEGMENTS
    files = journal.files()
    places = journal.framed

    def flipped(file: str, at: int) -> Edit:
        return (file, at, 1, bytes([files[file][at] ^ 1]))

    def whole(seq: int) -> tuple[str, int, bytes]:
        segment, offset, framed = places[seq - 1]
        return SEGMENTS[segment], offset, framed

    _, at_input, typed = whole(5)
    _, at_moved, moved = whole(4)
    _, at_refused, refused = whole(8)
    _, at_detached, detached = whole(14)
    return [
        ("nothing is spoilt", []),
        ("a byte of an input is changed", [flipped(one, at_input + len(typed) - 50)]),
        ("a record is dropped", [(one, at_moved, len(moved), b"")]),
        ("two records change places", [(one, at_moved, len(moved) + len(typed), typed + moved)]),
        ("the second segment is dropped", [(two, 0, len(files[two]), b"")]),
        ("the header of a segment is changed", [flipped(two, 20)]),
        ("the last record is torn", [(two, at_detached + 30, len(detached) - 30, b"")]),
        ("records before the head's seal are cut off", [(two, HEADER_BYTES, 1 << 20, b"")]),
        ("the head is gone", [("journal.head", 0, 1 << 20, b"")]),
        ("the head is changed", [flipped("journal.head", len(files["journal.head"]) - 1)]),
        ("a record of the last segment is changed", [flipped(two, at_refused + len(refused) - 1)]),
        *_on_purpose(journal),
    ]


def _on_purpose(journal: Made) -> list[tuple[str, list[Edit]]]:
    """By somebody who knows the format and makes the checksums right."""
    one, two = SEGMENTS

    def changed(file: str, seq: int, at: int) -> Edit:
        _, offset, framed = journal.framed[seq - 1]
        record = flip(framed[FRAME_BYTES:], at)
        return (file, offset, len(framed), frame(record, _is_seal(framed[FRAME_BYTES:])))

    typed = journal.records()[4].index(b"make")
    signature = len(journal.records()[5]) - 34 - 64
    _, end, last = journal.framed[-1]
    after = Chain(journal.session, seq=14, head=hash_of(last[FRAME_BYTES:]), actors={ADA: 99})
    _, more = after.extend(1767225800.0, 1, ADA, e.Signalled(9))
    other = str.__str__(SessionId.of_key(journal.host.public))
    foreign = header(other, 8, hash_of(journal.records()[6]))
    return [
        ("an input is changed and its checksum made right", [changed(one, 5, typed)]),
        ("a seal is signed by somebody else", [changed(one, 6, signature)]),
        ("a segment is said to be of another session", [(two, 0, HEADER_BYTES, foreign)]),
        ("a record follows the end of the session", [(two, end + len(last), len(more), more)]),
    ]


def spoilt(files: dict[str, bytes], edits: list[Edit]) -> dict[str, bytes]:
    """The files with these edits made. One that nothing is left of is not there."""
    found = dict(files)
    for file, offset, size, inserted in edits:
        data = found[file]
        found[file] = data[:offset] + inserted + data[offset + size :]
    return {name: data for name, data in found.items() if data}


def verdict(session: str, files: dict[str, bytes], *, thorough: bool = False) -> Verdict:
    segments = [files[name] for name in SEGMENTS if name in files]
    head = Head.decode(files["journal.head"]) if "journal.head" in files else None

    def segment(index: int) -> bytes | None:
        return segments[index] if index < len(segments) else None

    return verify(session, segment, head, check, thorough=thorough)


def _broken(journal: Made, why: str, edits: list[Edit]) -> dict[str, Any]:
    found = verdict(journal.session, spoilt(journal.files(), edits))
    return {
        "why": why,
        "edits": [
            {"file": file, "offset": offset, "remove": size, "insert": inserted.hex()}
            for file, offset, size, inserted in edits
        ],
        "verdict": str(found.outcome),
        "problem": str(found.kind or ""),
        "broken_at": found.broken_seq,
        "trustworthy_through": found.trustworthy_through,
        "signed_through": found.signed_through,
    }


if __name__ == "__main__":
    print(json.dumps(made(), indent=1))
