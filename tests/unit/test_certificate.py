"""N8: a continuity certificate says what the chain says, and nothing that was altered passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.signing import SigningKey, check
from holdfast.cli.text.certificate import certificate_lines
from holdfast.journal.certificate import Certificate, certify, fault_of, life_of
from holdfast.journal.entries import (
    Body,
    CarriedOn,
    CheckpointedEntry,
    EndedEntry,
    RestoredEntry,
    RevivedEntry,
)
from holdfast.journal.proof import prove
from holdfast.model.record import Malformed
from holdfast.model.restore import PeerReset, RestorePhase
from unit.journaling import HOST, Journal, began, session_id, typed

RESET = PeerReset("10.0.0.1:40", "10.0.0.2:80", 7, "node")


def restored(before: int = 1, kind: str = "memory") -> RestoredEntry:
    return RestoredEntry(
        "ck-0000000000000000", kind, before, 3, 2, (RestorePhase("processes", 30.0),), 4096,
        (RESET,), 1,
    )  # fmt: skip


def story(directory: Path, *more: tuple[float, int, Body]) -> Journal:
    """Two incarnations: the second from a checkpoint of the first, 60 s later."""
    journal = Journal(directory).type(3)
    journal.writer.record(1010.0, 1, "", CheckpointedEntry("ck-0000000000000000", 3, 4096, 12.0))
    journal.writer.record(1020.0, 1, "", CarriedOn(77))
    for at, epoch, body in ((1080.0, 2, restored()), (1090.0, 2, typed(9)), *more):
        journal.writer.record(at, epoch, "", body)
    journal.writer.seal(1200.0, more[-1][1] if more else 2)
    journal.writer.finish()
    return journal


def certified(journal: Journal, host: SigningKey = HOST) -> Certificate:
    last = journal.verdict().last_seq
    proof = prove(began(journal.name), 1, journal.reader.records(1, last), host.sign)
    return certify(life_of(journal.reader.entries(1, last)), proof, 2000.0, host.sign)


@pytest.mark.requirement("N8")
def test_it_says_what_became_of_the_session(tmp_path: Path) -> None:
    journal = story(tmp_path)
    made = certified(journal)
    assert (made.session, made.name, made.continuity) == (session_id(), "one", "memory")
    assert [each.epoch for each in made.epochs] == [1, 2]
    assert {each.host for each in made.epochs} == {HOST.public.hex()}
    (came,) = made.returns
    assert (came.epoch_before, came.epoch, came.downtime_s) == (1, 2, 60.0)
    assert (came.inputs_lost, came.resets, came.reset, came.bytes) == (2, 1, (RESET,), 4096)
    assert came.seq == made.epochs[1].first == made.epochs[0].last + 1
    assert (made.checkpoints, made.takeovers, made.closed_by) == (1, 1, "")
    page = "\n".join(certificate_lines(made))
    for said in (session_id(), "epoch 1 to 2", "10.0.0.1:40 to 10.0.0.2:80, of node (7)", "memory"):
        assert said in page


@pytest.mark.requirement("N8")
def test_it_is_valid_by_itself_and_with_the_records(tmp_path: Path) -> None:
    journal = story(tmp_path)
    made = Certificate.of_text(certified(journal).text())
    assert made == certified(journal)
    assert fault_of(made, check) == ""
    assert fault_of(made, check, journal.reader.records(1, made.last)) == ""


def test_what_never_came_back_is_unbroken_and_the_least_kind_counts(tmp_path: Path) -> None:
    plain = certified(Journal(tmp_path / "plain").type(2).sealed())
    assert (plain.continuity, plain.returns) == ("unbroken", ())
    cold = story(tmp_path / "cold", (1100.0, 3, restored(2, "cold")), (1110.0, 3, EndedEntry(0)))
    made = certified(cold)
    assert (made.continuity, made.closed_by, len(made.epochs)) == ("cold", "ended", 3)
    assert fault_of(made, check) == ""


def test_a_session_that_was_revived_is_a_cold_continuation(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "two", name="two")
    journal.writer.record(1001.0, 1, "", RevivedEntry(session_id(), "/", False))
    made = certified(journal.sealed())
    assert (made.continuity, made.revived, made.returns) == ("cold", True, ())
    assert fault_of(made, check) == ""


def _fields(made: Certificate) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(made.text())
    return fields


def _paths(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Every place in it that holds a plain value."""
    if isinstance(value, dict):
        return [path for key, item in value.items() for path in _paths(item, (*at, key))]
    if isinstance(value, list):
        return [path for key, item in enumerate(value) for path in _paths(item, (*at, key))]
    return [at]


def _changed(value: object) -> object:
    if isinstance(value, str):
        last = value[-1:]
        return value[:-1] + ("0" if last != "0" else "1")
    assert isinstance(value, int | float)
    return value + 1


@pytest.mark.requirement("N8")
def test_no_field_can_be_changed(tmp_path: Path) -> None:
    whole = _fields(certified(story(tmp_path)))
    paths = _paths(whole)
    assert len(paths) > 40
    for path in paths:
        fields: Any = json.loads(json.dumps(whole))
        within = fields
        for key in path[:-1]:
            within = within[key]
        within[path[-1]] = _changed(within[path[-1]])
        try:
            altered = Certificate.of_text(json.dumps(fields))
        except Malformed:
            continue
        assert fault_of(altered, check), f"{path} was changed and nobody noticed"


def test_another_hosts_word_is_not_taken(tmp_path: Path) -> None:
    other = SigningKey(b"x" * 32)
    assert fault_of(certified(story(tmp_path), other), check)


LIES: dict[str, dict[str, Any]] = {
    "fewer resets": {"returns": ()},
    "more checkpoints": {"checkpoints": 9},
    "another name": {"name": "two"},
    "it ended": {"closed_by": "ended"},
    "it was revived": {"revived": True},
}


@pytest.mark.requirement("N8")
@pytest.mark.parametrize("lie", LIES)
def test_a_host_that_certifies_what_its_records_do_not_say_is_found_out(
    tmp_path: Path, lie: str
) -> None:
    journal = story(tmp_path)
    life = life_of(journal.reader.entries(1, 100)).replace(**LIES[lie])
    last = journal.verdict().last_seq
    proof = prove(began(), 1, journal.reader.records(1, last), HOST.sign)
    made = certify(life, proof, 2000.0, HOST.sign)
    assert fault_of(made, check) == ""
    assert "the records say something else" in fault_of(
        made, check, journal.reader.records(1, last)
    )
    assert "not the ones" in fault_of(made, check, journal.reader.records(1, last - 1))


def test_a_host_that_contradicts_itself_is_found_out_without_the_records(tmp_path: Path) -> None:
    journal = story(tmp_path)
    last = journal.verdict().last_seq
    life = life_of(journal.reader.entries(1, last))
    proof = prove(began(), 1, journal.reader.records(1, last), HOST.sign)
    one, two = life.epochs
    for epochs in (
        (),
        (one,),
        (two, one),
        (one, two.replace(first=two.first + 1)),
        (one, two.replace(epoch=1)),
        (one, two.replace(host="00" * 32)),
        (one, two.replace(last=two.last + 1)),
    ):
        made = certify(life.replace(epochs=epochs), proof, 2000.0, HOST.sign)
        assert fault_of(made, check), epochs
    part = prove(began(), 1, journal.reader.records(2, last), HOST.sign)
    assert fault_of(certify(life, part, 2000.0, HOST.sign), check)


def test_records_that_do_not_begin_at_the_beginning_are_nobodys_life(tmp_path: Path) -> None:
    journal = story(tmp_path)
    for first in (2, 1000):
        with pytest.raises(Malformed):
            life_of(journal.reader.entries(first, 1000))
