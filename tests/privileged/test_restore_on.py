"""A session that is asleep, or was lost, is restored on another host: the same identity in its next
epoch, and never two lives. Both hosts are real, each with a home of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.model.errors import NotPermitted
from holdfast.sdk.client import Host
from holdfast.sdk.reach.tickets import ticket_for
from holdfast.wire.messages.checkpoints import Restore, Restored
from privileged.checkpointing import (
    entries,
    put_to_sleep,
    said,
    skip_unless_possible,
    started,
)
from process.commanding import Hold
from process.recorded import add_actor, host_dies

DEAD = "--i-know-the-host-is-dead"


@pytest.fixture
def hosts() -> Iterator[tuple[Hold, Hold]]:
    skip_unless_possible()
    source, target = Hold(), Hold()
    try:
        source.ok("up", "-d")
        target.ok("up", "-d")
        yield source, target
    finally:
        source.close()
        target.close()


def socket_of(hold: Hold) -> str:
    return str(Path(hold.home, "run", "hold.sock"))


@pytest.mark.requirement("M2", "S2", "F1")
def test_a_session_goes_on_at_another_host_with_its_identity_and_its_memory(
    hosts: tuple[Hold, Hold],
) -> None:
    source, target = hosts
    session = started(source, "work")
    said(source, "work", "X=kept; f() { echo of f; }; cd /tmp")
    put_to_sleep(source, "work")
    done = source.json("restore", "work", "--on", socket_of(target))
    assert (done["id"], done["epoch"]) == (session, 2)
    shown = target.json("show", "work")
    assert (shown["id"], shown["epoch"]) == (session, 2)
    assert said(target, "work", "echo $X; f; pwd").split() == ["kept", "of", "f", "/tmp"]
    assert said(target, "work", "cat $HOLDFAST_TOKEN_FILE") == "2"
    target.ok("verify", "work")
    # Where it was it cannot be had, and says where it went.
    refused = source.fails("session_elsewhere", "restore", "work")
    assert socket_of(target) in refused
    assert "moved to" in source.ok("ls")
    source.fails("session_elsewhere", "exec", "work", "--", "true")
    (first, second) = entries(target, "work", "began")
    assert first["body"]["host_key"] != second["body"]["host_key"]


@pytest.mark.requirement("M2", "N8")
def test_it_comes_back_and_goes_again_with_one_record_of_all(hosts: tuple[Hold, Hold]) -> None:
    here, there = hosts
    session = started(here, "work")
    for number, (source, target) in enumerate([(here, there), (there, here), (here, there)], 1):
        said(source, "work", f"X={number}")
        put_to_sleep(source, "work")
        done = source.json("restore", "work", "--on", socket_of(target))
        assert (done["id"], done["epoch"]) == (session, number + 1)
        assert said(target, "work", "echo $X; cat $HOLDFAST_TOKEN_FILE").split() == [
            str(number),
            str(number + 1),
        ]
        target.ok("verify", "work")
        target.ok("daemon", "restart")  # which reads all of the record
        assert said(target, "work", "echo $X") == str(number)
    page = Path(there.home, "page")
    there.ok("certificate", "work", "-o", str(page))
    there.ok("certificate", "check", str(page))
    keys = [each["body"]["host_key"] for each in entries(there, "work", "began")]
    assert len(keys) == 4 and len(set(keys)) == 2


@pytest.mark.requirement("M2")
def test_a_lost_session_with_a_checkpoint_goes_too(hosts: tuple[Hold, Hold]) -> None:
    source, target = hosts
    started(source, "work")
    said(source, "work", "X=kept")
    made = source.json("checkpoint", "work")
    host_dies(source)
    source.ok("up", "-d")
    assert source.json("show", "work")["state"] == "lost"
    source.ok("restore", made["id"], "--on", socket_of(target))
    assert said(target, "work", "echo $X") == "kept"


@pytest.mark.requirement("F1")
def test_what_runs_is_not_given_away(hosts: tuple[Hold, Hold]) -> None:
    source, target = hosts
    started(source, "work")
    made = source.json("checkpoint", "work")
    for which in ("work", made["id"]):
        for word in ([], [DEAD]):
            source.fails("invalid_argument", "restore", which, "--on", socket_of(target), *word)
    assert target.json("ls", "--all") == []
    assert said(source, "work", "echo $$").isdecimal()


@pytest.mark.requirement("F1", "F3")
def test_only_a_word_that_is_recorded_takes_back_what_another_host_has(
    hosts: tuple[Hold, Hold],
) -> None:
    source, target = hosts
    session = started(source, "work")
    said(source, "work", "X=kept")
    put_to_sleep(source, "work")
    source.ok("restore", "work", "--on", socket_of(target))
    target.ok("down", "--end-sessions")
    source.fails("session_elsewhere", "restore", "work")
    source.ok("restore", "work", DEAD)
    shown = source.json("show", "work")
    assert (shown["id"], shown["epoch"]) == (session, 3), "after the one that the other had"
    assert said(source, "work", "echo $X") == "kept"
    (entry,) = entries(source, "work", "restored")
    assert entry["actor"] and entry["body"]["attested"] == "the host that had it is dead"
    source.ok("verify", "work")


@pytest.mark.requirement("M2")
def test_what_the_other_host_cannot_restore_stays_where_it_was(hosts: tuple[Hold, Hold]) -> None:
    source, target = hosts
    started(source, "work")
    said(source, "work", "X=kept")
    put_to_sleep(source, "work")
    started(target, "work")  # the name is taken there
    source.fails("name_taken", "restore", "work", "--on", socket_of(target))
    assert source.json("show", "work")["state"] == "asleep"
    assert len(target.json("ls", "--all")) == 1
    target.ok("end", "work")
    source.ok("restore", "work", "--on", socket_of(target))
    assert said(target, "work", "echo $X") == "kept"


def source_ticket(source: Hold, target: Hold) -> str:
    """Fetched by the person who is an admin of both."""
    with Host(socket_of(source)) as host:
        return ticket_for(host, "work", socket_of(target))


@contextlib.contextmanager
def acting(hold: Hold, name: str) -> Iterator[Host]:
    before = {key: os.environ.get(key) for key in ("HOLDFAST_AS", "HOLDFAST_HOME")}
    os.environ |= {"HOLDFAST_AS": name, "HOLDFAST_HOME": hold.home}
    try:
        with Host(socket_of(hold)) as host:
            yield host
    finally:
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value


@pytest.mark.requirement("R3")
def test_who_may_bring_it_is_decided_there_and_who_may_take_it_away_here(
    hosts: tuple[Hold, Hold],
) -> None:
    source, target = hosts
    started(source, "work")
    put_to_sleep(source, "work")
    add_actor(source, "worker", "execute", "checkpoint")  # whom the other host does not know
    where = socket_of(target)
    source.fails("no_such_actor", "--as", "worker", "restore", "work", "--on", where)
    ticket = source_ticket(source, target)
    with acting(source, "worker") as host, pytest.raises(NotPermitted, match="move"):
        host.ask(Restore(0, "work", ticket=ticket), Restored, once=True)
    assert source.json("show", "work")["state"] == "asleep"
    assert len(target.ok("host", "--key").strip()) == 64


@pytest.mark.requirement("R6")
def test_a_program_brings_it_there_and_asks_before(hosts: tuple[Hold, Hold]) -> None:
    source, target = hosts
    started(source, "work")

    async def scene() -> None:
        async with holdfast.connect(socket_of(source)) as hold:
            work = await hold.session("work")
            assert (await work.can_move(to=socket_of(target))).movable
            made = await work.checkpoint(end=True)
            there = await hold.restore(made, on=socket_of(target))
            assert there.restored is not None and there.restored.epoch == 2
            assert (await there.info()).epoch == 2

    asyncio.run(scene())
    assert said(target, "work", "echo $((6 * 7))") == "42"
    assert target.json("can-move", "work", "--to", socket_of(source))["movable"]
