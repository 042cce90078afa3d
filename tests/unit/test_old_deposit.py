"""What an earlier build stored, this one reads: each name, each value.

The files in `deposits/` were written by an earlier build (`deposits/made-by.txt` is how): the state
blob that the keeper holds, with every part set and nothing left at its default, the names of the
descriptors, the host's JSON files, and a session's memory after some typing. `Record.unpack`
ignores names that it does not know and fills in defaults, so a renamed field would be lost without
a word. Packing what was read must give exactly what was stored.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgpack
import pytest

from holdfast.adapters.session_memory.burst_page import BurstPage
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.output_ring import Ring, make_conduit
from holdfast.host import json_file
from holdfast.host.access import actor_book, admission
from holdfast.host.reach import own_relay, relay_list
from holdfast.host.session import handoff
from holdfast.host.session.parcel import SessionFds, StateBlob
from holdfast.host.session_store import Stored
from holdfast.model.record import Record

DEPOSITS = Path(__file__).parent / "deposits"
FILES: dict[str, type[Record]] = {
    "authority.json": actor_book._Book,
    "admission.json": admission._Kept,
    "relays.json": relay_list._Kept,
    "relay.json": own_relay._Kept,
    "seen.json": handoff._Points,
    "spec.json": Stored,
}

# Fields that the daemon before did not write, with what their absence means.
ADDED_TO_INFO: dict[str, object] = {
    "keeper_pid": 0,
    "pruned_at": None,
    "superposition": "pre-migration",
    "migration": None,
    "residency": None,
    "in_flight": None,
    "acknowledged_at": None,
    "acknowledged_by": "",
    "full_screen": False,
    "workspace": "",
    "shaped_by": [],
    "held": "",
    "ungated": "",
    "last_known": None,
    "state_since": None,
    "pinned": False,
}
ADDED_TO_SHELL: dict[str, object] = {
    "private": {},
    "bindings": [],
    "descriptors": {},
    "remembered": {},
    "references": {},
    "directories": {},
    "attributes": {},
    "builtins": [],
}
ADDED_TO_ENDING = {"cause": None, "successor": "", "checkpoint": "", "moved_to": ""}
ADDED_TO_ENVELOPE = {"seen_until": None}
ADDED_TO_BLOB: dict[str, object] = {
    "leaves": None,
    "provenance_to": 0,
    "since": None,
    "asleep_in": "",
    "waking": {"on_use": False, "with_host_for": ""},
    "came_as": {},
    "pinned": False,
    "used_at": None,
    "shells": [],
}
ADDED_TO_STATE: dict[str, dict[str, object]] = {
    "spec": {
        "created_by": "",
        "workspace": "",
        "exact_line_key": b"",
        "gate_keys": False,
        "checkpoint_every_s": 0.0,
        "capture": [],
    },
    "turn": {"holders": [], "held_until": 0.0, "command_of": None},
}


def stored(name: str) -> bytes:
    return (DEPOSITS / name).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_and_written_again_as_it_was(name: str, tmp_path: Path) -> None:
    found = json_file.read(str(DEPOSITS / name), FILES[name], without="")
    assert found is not None
    json_file.write(str(tmp_path / name), found)
    old = json.loads(stored(name))
    if name == "seen.json":
        looks = [look["before"] for look in old["looks"].values()]
        for point in (*old["held"].values(), *old["looked"].values(), *looks):
            point["shell"] |= ADDED_TO_SHELL
    for envelope in old.get("envelopes", ()):
        envelope |= ADDED_TO_ENVELOPE
    if name == "spec.json":
        old["info"] |= ADDED_TO_INFO
        old["info"]["ending"] |= ADDED_TO_ENDING
        old["boot_id"] = ""
        old |= {"wakes": False, "returns_for": "", "handed_to": None, "came_from": None}
        old["attested_epoch"] = 0
    assert json.loads((tmp_path / name).read_bytes()) == old


def test_a_state_blob_is_read_and_packed_again_as_it_was() -> None:
    blob = stored("state.msgpack")
    old = msgpack.unpackb(blob)
    for part, value in ADDED_TO_STATE.items():
        old[part] |= value
    old["lease"]["lease"] |= {"successor": "", "heir_of": 0}
    for record in (old["lease"]["lease"]["record"], old["lease"]["taken"]):
        record["successor"] = ""
    for waiting in old["turn"]["queue"]:
        waiting["hold_s"] = 0.0
    old["spec"]["place"] |= {"hidden": [], "kept": []}
    old |= ADDED_TO_BLOB
    for execution in old["executions"]:
        execution |= {"action": "", "measured": False}
    old["gate"] = None
    assert msgpack.unpackb(StateBlob.of_blob(blob).blob()) == old


def test_each_part_of_a_state_blob_is_where_the_daemon_looks_for_it() -> None:
    kept = StateBlob.of_blob(stored("state.msgpack"))
    assert (kept.spec.name, kept.spec.epoch, kept.spec.labels) == ("name-4", 11, ("labels-24",))
    assert (kept.spec.born_as, kept.spec.nonce) == ("born_as-25", "nonce-22")
    assert (kept.spec.place.pid, kept.spec.place.shell_pid) == (14, 15)
    assert (kept.size.cols, kept.size.rows, kept.layer_seq, kept.last_output_at) == (
        27,
        28,
        45,
        47.5,
    )
    [command] = kept.commands
    assert (command.text, command.status, command.authors) == ("text-32", 37, ("authors-44",))
    assert kept.turn is not None and kept.halt is not None and kept.lease is not None
    assert (kept.turn.since, kept.turn.last_active) == (53.5, 54.5)
    [waiting] = kept.turn.queue
    assert (waiting.message, waiting.explicit, waiting.away) == ("message-63", False, True)
    [stopped], standing = kept.halt.stopped, kept.halt.standing
    assert kept.halt.confirmed and standing is not None
    assert [one.pid for one in (stopped, *standing)] == [71, 76]
    assert (kept.lease.epoch, kept.lease.before) == (123, "before-124")
    assert kept.lease.taken is not None and kept.lease.taken.owner == "owner-128"
    lease = kept.lease.lease
    assert (lease.boot_id, lease.epoch, lease.revision) == ("boot_id-81", 94, 95)
    assert (lease.since, lease.sent, lease.deadline, lease.renew_at) == (107.5, 108.5, 110.5, 112.5)
    [execution] = kept.executions
    assert (execution.seq, execution.offset, execution.end_offset) == (141, 143, 155)
    assert (execution.command, execution.journal_seq, execution.parsed) == (146, 148, False)


def test_descriptors_are_deposited_under_the_same_names() -> None:
    named = json.loads(stored("descriptors.json"))
    assert SessionFds(3, 4, 5, 6, 7, 8).named() == named


@pytest.fixture
def ring() -> Iterator[Ring]:
    """The memory of a session, with the file position at which it was left."""
    memfd = os.memfd_create("deposit", os.MFD_CLOEXEC)
    os.write(memfd, zlib.decompress(stored("memory.zlib")))
    os.lseek(memfd, json.loads(stored("memory.json"))["position"], os.SEEK_SET)
    with closing(Ring(memfd, make_conduit())) as ring:
        yield ring


def test_a_sessions_memory_is_read_as_it_was_left(ring: Ring) -> None:
    found = json.loads(stored("memory.json"))
    assert (ring.capacity, ring.head) == (found["capacity"], found["head"])
    assert ring.copy(0, ring.head) == bytes.fromhex(found["output"])
    assert ring.copy(0, ring.head) == b"first line\r\nfirst line\r\nsecondthi"
    offset, screen = found["checkpoint"]
    assert ring.load_checkpoint() == (offset, bytes.fromhex(screen))
    with closing(InputLedger(ring, make_conduit())) as ledger:
        assert ledger.operators() == found["operators"]
    with closing(BurstPage(ring)) as burst:
        keys = burst.keys()
        assert keys is not None and keys.data == b"thi"
        assert {**keys.pack(), "data": keys.data.hex()} == found["burst"]
