"""Entries and their encoding, and the rules of the chain that need no file."""

from __future__ import annotations

import msgpack
import pytest

from holdfast.journal.chain import Chain, genesis
from holdfast.journal.encoding import decode, encode, hash_of, parent_of, seq_of
from holdfast.journal.entries import (
    BY_TAG,
    HOST,
    MAY_FOLLOW,
    Body,
    Discontinued,
    EndedEntry,
    Entry,
    EnvelopeSet,
    InputEntry,
    ResumedEntry,
    SealEntry,
    TurnAsked,
    UnknownEntry,
)
from holdfast.journal.framing import FRAME_BYTES, frame, header, read, read_header
from holdfast.model.actor import ActorKind
from holdfast.model.discontinuity import DiscontinuityCause
from holdfast.model.errors import SessionEnded
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import ActorId
from holdfast.model.limits import (
    JOURNAL_ENTRY_MAX_BYTES,
    JOURNAL_SEAL_BYTES,
    JOURNAL_SEAL_ENTRIES,
    JOURNAL_SEAL_S,
)
from holdfast.model.measured import (
    ActionScore,
    Deviation,
    Effects,
    FileEffects,
    LeftProcess,
    PortEffects,
)
from holdfast.model.record import Malformed
from holdfast.model.restore import PeerReset, RestorePhase
from unit.journaling import HOST as HOST_KEY
from unit.journaling import began, session_id, typed

SAMPLES: dict[str, object] = {
    "str": "text", "int": 7, "bytes": b"\x00\xff", "bool": True, "float": 1.5,
    "tuple[str, ...]": ("a", "b"), "tuple[int, ...]": (1, 2),
    "int | None": None, "str | None": "x", "float | None": None,
    "DiscontinuityCause | None": DiscontinuityCause("host_lost", boot_id="b"),
    "ActionScore": ActionScore(True, None, 3, {"process": 3}, 0.5),
    "Effects | None": Effects(
        FileEffects(("/a",)), (LeftProcess(1, "n", "n 1"),), PortEffects((80,)), (), "", (), 0, ()
    ),
    "tuple[Deviation, ...]": (Deviation("file", "a"),),
    "tuple[Contributor, ...]": (
        Contributor(ActorId.of_key(bytes(32)), "ann", ActorKind.HUMAN, Part.STATE, "var:PATH", 3),
    ),
    "tuple[RestorePhase, ...]": (RestorePhase("check", 1.5),),
    "tuple[PeerReset, ...]": (PeerReset("127.0.0.1:1", "[::1]:2", 3, "git"),),
}  # fmt: skip


def sample(kind: type[Body]) -> Body:
    return kind(*(SAMPLES[vars(kind)["__annotations__"][field]] for field in kind._fields))


@pytest.mark.parametrize("kind", BY_TAG.values(), ids=BY_TAG)
def test_every_kind_of_entry_comes_back_as_it_was(kind: type[Body]) -> None:
    entry = Entry(3, 1.25, 2, "alice", 1, sample(kind), b"p" * 32)
    record = encode(3, 1.25, 2, "alice", 1, entry.body, b"p" * 32)
    assert decode(record) == entry
    assert (seq_of(record), parent_of(record)) == (3, b"p" * 32)
    fields = msgpack.unpackb(record)
    assert fields[:6] == [3, 1.25, 2, "alice", 1, kind.tag]


def test_a_kind_of_a_newer_version_is_read_without_being_understood() -> None:
    record = msgpack.packb([3, 1.0, 1, "alice", 1, "teleported", {"to": "mars"}, b"p" * 32])
    entry = decode(record)
    assert entry.body == UnknownEntry("teleported", msgpack.packb({"to": "mars"}))
    changed = msgpack.packb([3, 1.0, 1, "alice", 1, "resized", {"cols": "many"}, b"p" * 32])
    assert isinstance(decode(changed).body, UnknownEntry)


@pytest.mark.parametrize(
    "fields",
    [
        [],
        "text",
        [1, 1.0, 1, "a", 1, "resumed", {}],
        ["1", 1.0, 1, "a", 1, "resumed", {}, b"p" * 32],
        [1, 1, 1, "a", 1, "resumed", {}, b"p" * 32],
        [1, 1.0, 1, "a", 1, "resumed", [], b"p" * 32],
        [1, 1.0, 1, "a", 1, "resumed", {}, b"p" * 31],
        [True, 1.0, 1, "a", 1, "resumed", {}, b"p" * 32],
    ],
)
def test_what_is_no_entry_is_refused(fields: object) -> None:
    with pytest.raises(Malformed):
        decode(msgpack.packb(fields))
    with pytest.raises(Malformed):
        decode(msgpack.packb(fields) + b"\x01")


def test_frames_are_read_only_when_whole() -> None:
    record = b"r" * 100
    data = frame(record)
    assert read(data, 0) is not None
    assert read(data[:-1], 0) is None
    assert read(data, 1) is None
    assert read(frame(bytes(JOURNAL_ENTRY_MAX_BYTES + 1)), 0) is None
    assert read(bytes(100), 0) is None
    made = header(session_id(), 7, b"p" * 32)
    assert (read_header(made).first, read_header(made).session) == (7, session_id())
    for bad in (made[:-1], made[:-1] + b"\0", b"X" + made[1:]):
        with pytest.raises(Malformed):
            read_header(bad)


# -- the chain --------------------------------------------------------------------------------


def test_each_entry_names_the_hash_of_the_one_before() -> None:
    chain = Chain(session_id())
    assert genesis(session_id("one")) != genesis(session_id("two"))
    before = genesis(session_id())
    for number in range(1, 5):
        entry, framed = chain.extend(number, 1, "alice", typed(number))
        assert (entry.seq, entry.actor_seq, entry.parent) == (number, number, before)
        assert decode(framed[FRAME_BYTES:]) == entry
        before = hash_of(framed[FRAME_BYTES:])
        assert chain.head == before


def test_each_actor_has_its_own_count() -> None:
    chain = Chain(session_id())
    made = [chain.extend(1.0, 1, actor, TurnAsked())[0] for actor in "abaab"]
    assert [entry.actor_seq for entry in made] == [1, 1, 2, 3, 2]


def test_an_entry_taken_back_leaves_the_chain_as_it_was() -> None:
    one, two = Chain(session_id()), Chain(session_id())
    for chain in (one, two):
        chain.extend(1.0, 1, HOST, began())
        chain.seal(1.0, 1, HOST_KEY.sign)
        chain.sealed()
        chain.extend(1.0, 1, "alice", typed(1))
    two.extend(1.0, 1, "bob", EndedEntry(code=0))
    two.retract()
    assert two.closed_by == ""
    assert one.is_seal_due(1.0) == two.is_seal_due(1.0)
    assert one.extend(2.0, 1, "alice", typed(2)) == two.extend(2.0, 1, "alice", typed(2))
    assert one.seal(3.0, 1, HOST_KEY.sign) == two.seal(3.0, 1, HOST_KEY.sign)
    two.retract()
    assert one.seq == two.seq + 1


def test_a_seal_is_due_by_count_bytes_time_and_at_once_on_a_lifecycle_entry() -> None:
    chain = Chain(session_id())
    assert not chain.is_seal_due(0.0)
    chain.extend(0.0, 1, HOST, began())
    assert chain.is_seal_due(0.0)
    entry, _ = chain.seal(0.0, 1, HOST_KEY.sign)
    assert isinstance(entry.body, SealEntry)
    assert entry.body.from_seq == 1
    chain.sealed()
    assert not chain.is_seal_due(1e9)
    chain.extend(100.0, 1, "alice", typed(1))
    assert not chain.is_seal_due(100.0 + JOURNAL_SEAL_S / 2)
    assert chain.is_seal_due(100.0 + JOURNAL_SEAL_S)
    assert chain.is_seal_due(50.0), "a clock set back must not put it off"
    for number in range(JOURNAL_SEAL_ENTRIES - 2):
        chain.extend(100.0, 1, "alice", typed(number))
    assert not chain.is_seal_due(100.0)
    for _ in range(JOURNAL_SEAL_ENTRIES // 20):
        chain.extend(100.0, 1, "alice", typed(1))
    assert chain.is_seal_due(100.0), "it may come a few entries later, not more"
    chain.seal(100.0, 1, HOST_KEY.sign)
    chain.sealed()
    large = InputEntry("a" * 32, 1, 1, "paste", bytes(64 << 10), 0)
    while chain.unsealed_bytes < JOURNAL_SEAL_BYTES:
        assert not chain.is_seal_due(100.0)
        chain.extend(100.0, 1, "alice", large)
    assert chain.is_seal_due(100.0)


def test_nothing_but_a_seal_follows_a_discontinuity() -> None:
    for tag, kind in BY_TAG.items():
        chain = Chain(session_id())
        chain.extend(1.0, 1, HOST, Discontinued("lost", 0, b""))
        if tag == "sealed":
            chain.seal(1.0, 1, HOST_KEY.sign)
            continue
        with pytest.raises(SessionEnded):
            chain.extend(2.0, 1, HOST, sample(kind))
        assert chain.seq == 1


def test_an_ended_session_takes_only_what_comes_to_light_late() -> None:
    for tag, kind in BY_TAG.items():
        chain = Chain(session_id())
        chain.extend(1.0, 1, HOST, EndedEntry(code=0))
        if tag in MAY_FOLLOW["ended"]:
            chain.extend(2.0, 1, HOST, sample(kind))
        else:
            with pytest.raises(SessionEnded):
                chain.extend(2.0, 1, HOST, sample(kind))
    assert "input" not in MAY_FOLLOW["ended"]
    assert ResumedEntry.tag not in MAY_FOLLOW["ended"]


def test_an_envelope_without_end_keeps_its_none() -> None:
    body = EnvelopeSet("bob", "session", ("observe", "input"), None)
    assert decode(encode(1, 1.0, 1, "", 1, body, b"p" * 32)).body == body
