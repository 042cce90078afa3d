"""M2, N8: checkpoints are deleted by those who may, never the one a session sleeps in; and what was
restored can be certified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from privileged.checkpointing import (
    put_to_sleep,
    restored,
    skip_unless_possible,
    started,
)
from process.commanding import Hold
from process.waiting import until


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    skip_unless_possible()
    with Hold() as hold:
        (Path(hold.home) / "config.toml").write_text("retention_days = 0.0\nretention_bytes = 1\n")
        hold.ok("up", "-d")
        yield hold


def chunks(hold: Hold) -> set[Path]:
    return {path for path in (Path(hold.home) / "checkpoints").rglob("*") if path.is_file()}


@pytest.mark.requirement("M2")
def test_a_deleted_checkpoint_is_gone_with_its_room_and_another_stays(hold: Hold) -> None:
    started(hold, "kept")
    first = hold.json("checkpoint", "kept")["id"]
    before = chunks(hold)
    second = hold.json("checkpoint", "kept", "--note", "again")["id"]
    said = hold.ok("checkpoints", "rm", second)
    assert f"deleted {second} of kept" in said
    assert [each["id"] for each in hold.json("checkpoints", "kept")] == [first]
    assert chunks(hold) == before
    hold.fails("no_such_checkpoint", "checkpoints", "rm", second)
    hold.fails("invalid_argument", "checkpoints", "rm", "kept")
    hold.fails("invalid_argument", "checkpoints", "kept", "other")
    hold.ok("checkpoints", "rm", first)
    assert chunks(hold) == set()


@pytest.mark.requirement("M2")
def test_what_a_session_sleeps_in_is_not_deleted_until_it_is_awake(hold: Hold) -> None:
    started(hold, "sleeper")
    id = put_to_sleep(hold, "sleeper")["id"]
    assert "asleep" in hold.fails("invalid_argument", "checkpoints", "rm", id)
    restored(hold, "sleeper")
    hold.ok("checkpoints", "rm", id)
    assert hold.json("checkpoints", "sleeper") == []


@pytest.mark.requirement("A2")
def test_an_actor_without_the_right_deletes_none(hold: Hold) -> None:
    started(hold, "guarded")
    id = hold.json("checkpoint", "guarded")["id"]
    hold.ok("actor", "add", "helper")
    hold.ok("grant", "helper", "execute", "guarded")
    hold.fails("not_permitted", "--as", "helper", "checkpoints", "rm", id)
    hold.ok("actor", "add", "stranger")
    hold.fails("no_such_checkpoint", "--as", "stranger", "checkpoints", "rm", id)
    assert [each["id"] for each in hold.json("checkpoints", "guarded")] == [id]


@pytest.mark.requirement("N8")
def test_a_session_that_came_back_is_certified_with_its_costs(hold: Hold, tmp_path: Path) -> None:
    started(hold, "back")
    id = put_to_sleep(hold, "back")["id"]
    restored(hold, "back")
    file, records = tmp_path / "back.certificate", tmp_path / "back.records"
    page = hold.ok("certificate", "back", "-o", str(file), "--records", str(records))
    assert f"epoch 1 to 2 from {id}: memory" in page
    hold.ok("certificate", "check", str(file), "--records", str(records))
    made = json.loads(file.read_text())
    (came,) = made["returns"]
    assert (came["kind"], came["epoch"], came["inputs_lost"]) == ("memory", 2, 0)
    assert [each["epoch"] for each in made["epochs"]] == [1, 2]
    assert came["downtime_s"] >= 0 and came["bytes"] > 0 and made["checkpoints"] == 1


def test_checkpoints_go_with_the_session_that_is_pruned(hold: Hold) -> None:
    started(hold, "over")
    id = hold.json("checkpoint", "over")["id"]
    assert any(path.name == id for path in chunks(hold))
    hold.ok("end", "over")
    hold.ok("prune")
    until("it is still there", lambda: all(path.name != id for path in chunks(hold)))
