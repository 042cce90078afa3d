"""A re-homeable session is restored only with its lease (F1, F3): of a real host that died, and
whose record is its own, is gone, or was taken by another host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.coordination import SqliteCoordination
from holdfast.model.ids import SessionId
from holdfast.model.lease import LeaseRecord
from holdfast.wire.coordination import lease_key, pack_lease, unpack_lease
from privileged.checkpointing import entries, movable_host, restored, said
from process.acting import add_actor
from process.commanding import Hold
from process.recorded import host_dies

OTHER = (b"\1" * 32).hex()


@pytest.fixture
def hold() -> Iterator[Hold]:
    with movable_host() as hold:
        yield hold


def lost_with_its_host(hold: Hold) -> str:
    """A re-homeable session with a checkpoint; gives its id. Its host is up again."""
    done = hold.ok(
        *("run", "-d", "--name", "r", "--level", "movable", "--rehomeable", "--", "bash", "--norc")
    )
    hold.ok("wait", "r", "--for", "prompt", "--timeout", "20")
    said(hold, "r", "X=kept")
    hold.ok("checkpoint", "r")
    host_dies(hold)
    hold.ok("up", "-d")
    assert hold.json("show", "r")["state"] == "lost"
    return done.strip()


def rewritten(hold: Hold, session: str, record: LeaseRecord | None) -> LeaseRecord:
    """The record that stood there, after it was replaced, or removed with the whole store."""

    async def rewrite() -> LeaseRecord:
        store = SqliteCoordination(Path(hold.home, "registry.sqlite"))
        try:
            entry = await store.get(lease_key(session))
            before = unpack_lease(entry.value)
            assert before is not None
            if record is not None:
                await store.cas(lease_key(session), pack_lease(record), entry.revision)
        finally:
            await store.close()
        return before

    before = asyncio.run(rewrite())
    if record is None:
        for path in Path(hold.home).glob("registry.sqlite*"):
            path.unlink()
    return before


@pytest.mark.requirement("F1", "F3")
def test_a_host_that_died_has_its_own_lease_again_without_waiting_for_it(hold: Hold) -> None:
    session = lost_with_its_host(hold)
    back = restored(hold, "r")
    assert (back["id"], back["epoch"], back["lease"]["state"]) == (session, 2, "held")
    assert said(hold, "r", "echo $X; cat $HOLDFAST_TOKEN_FILE").split() == ["kept", "2"]
    (_, again) = entries(hold, "r", "leased")
    assert (again["epoch"], again["body"]["before"]) == (2, 1)
    hold.ok("verify", "r")


@pytest.mark.requirement("F1", "F3")
def test_what_another_host_took_comes_back_only_on_a_word_that_is_recorded(hold: Hold) -> None:
    session = lost_with_its_host(hold)
    theirs = LeaseRecord(SessionId(session), OTHER, "their incarnation", 7, 10.0)
    rewritten(hold, session, theirs)
    refused = hold.fails("fenced", "restore", "r")
    assert OTHER[:12] in refused and "--i-know-the-host-is-dead" in refused
    assert hold.json("show", "r")["state"] == "lost", "nothing was touched"
    hold.ok("restore", "r", "--i-know-the-host-is-dead")
    back = hold.json("show", "r")
    assert (back["id"], back["epoch"], back["lease"]["state"]) == (session, 8, "held")
    assert said(hold, "r", "echo $X") == "kept"
    (_, again) = entries(hold, "r", "leased")
    assert again["actor"], "whoever gave the word"
    assert again["body"]["reason"] == "the host that had it is dead"
    ours = rewritten(hold, session, None)
    assert (ours.epoch, ours.forced_by) == (8, again["actor"])
    hold.ok("verify", "r")


@pytest.mark.requirement("F1")
def test_a_store_that_lost_its_memory_gives_no_restore_away(hold: Hold) -> None:
    session = lost_with_its_host(hold)
    hold.ok("down")
    rewritten(hold, session, None)
    hold.ok("up", "-d")
    assert "no record" in hold.fails("fenced", "restore", "r")
    hold.ok("restore", "r", "--i-know-the-host-is-dead")
    assert hold.json("show", "r")["epoch"] == 2


def test_to_give_that_word_needs_the_right_to_grant(hold: Hold) -> None:
    lost_with_its_host(hold)
    add_actor(hold, "worker", "execute", "checkpoint", "--all")
    word = "--i-know-the-host-is-dead"
    hold.fails("not_permitted", "--as", "worker", "restore", "r", word)
    assert hold.json("show", "r")["state"] == "lost"
    hold.ok("--as", "worker", "restore", "r")
