"""The keeper's dead man's handle: a tree is frozen when its moment comes, unless the daemon said
something in time (F2). The control group is a directory here; tests/privileged has real ones."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.keeper import boottime, channel
from holdfast.keeper.__main__ import Keeper
from holdfast.keeper.deadlines import Deadlines, freeze

PATIENCE_S = 10.0


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(str(tmp_path), 0o600, None)
    yield keeper
    keeper.listener.close()
    keeper.alarm.close()


@pytest.fixture
def daemon(keeper: Keeper) -> Iterator[socket.socket]:
    ours, theirs = channel.pair()
    ours.setblocking(False)
    keeper.channel = ours
    yield theirs
    for end in (ours, theirs):
        end.close()


def group(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir()
    (made / "cgroup.freeze").write_text("0")
    return made


def frozen(made: Path) -> bool:
    return (made / "cgroup.freeze").read_text() == "1"


def rings(keeper: Keeper) -> bool:
    return bool(select.select([keeper.alarm], [], [], PATIENCE_S)[0])


def lease(session: str, made: Path, until: float | None) -> dict[str, object]:
    return {"do": "lease", "session": session, "group": str(made), "until": until}


@pytest.mark.requirement("F2")
def test_a_tree_is_frozen_when_the_daemon_says_nothing(
    keeper: Keeper, daemon: socket.socket, tmp_path: Path
) -> None:
    mine, other = group(tmp_path, "mine"), group(tmp_path, "other")
    now = boottime.now()
    channel.send(daemon, lease("s1", mine, now + 0.05))
    channel.send(daemon, lease("s2", other, now + 1000.0))
    keeper.on_daemon()
    keeper.on_daemon()
    assert not frozen(mine)
    assert rings(keeper)
    assert boottime.now() >= now + 0.05
    keeper.on_deadline()
    assert frozen(mine) and not frozen(other)
    told = channel.receive(daemon)
    assert told is not None and told.head == {"news": "froze", "session": "s1"}
    assert keeper.deadlines.next() == now + 1000.0


@pytest.mark.requirement("F2")
def test_word_that_is_under_way_counts(
    keeper: Keeper, daemon: socket.socket, tmp_path: Path
) -> None:
    mine, ended = group(tmp_path, "mine"), group(tmp_path, "ended")
    now = boottime.now()
    for session, made in (("s1", mine), ("s2", ended)):
        channel.send(daemon, lease(session, made, now))
        keeper.on_daemon()
    assert rings(keeper)
    channel.send(daemon, lease("s1", mine, now + 1000.0))
    channel.send(daemon, {"do": "release", "session": "s2"})
    keeper.on_deadline()
    assert not frozen(mine) and not frozen(ended)


def test_a_daemon_that_is_gone_changes_nothing(keeper: Keeper, tmp_path: Path) -> None:
    mine = group(tmp_path, "mine")
    keeper.deadlines.set("s1", str(mine), boottime.now())
    keeper.on_deadline()
    assert frozen(mine)


def test_a_group_that_is_gone_is_no_death(keeper: Keeper, tmp_path: Path) -> None:
    keeper.deadlines.set("s1", str(tmp_path / "gone"), 0.0)
    keeper.on_deadline()
    assert keeper.deadlines.next() is None
    assert "No such file" in freeze(str(tmp_path / "gone"))


def test_a_deadline_is_put_off_dropped_and_told_once(tmp_path: Path) -> None:
    deadlines = Deadlines()
    deadlines.set("s1", "/one", 10.0)
    deadlines.set("s2", "/two", 20.0)
    deadlines.set("s1", "/one", 30.0)
    assert deadlines.next() == 20.0
    assert deadlines.passed(19.9) == []
    assert deadlines.passed(20.0) == [("s2", "/two")]
    assert deadlines.passed(20.0) == []
    deadlines.set("s1", "/one", None)
    assert deadlines.next() is None


def test_an_alarm_rings_for_what_has_passed_and_not_when_it_is_not_set() -> None:
    alarm = boottime.Alarm()
    alarm.set(0.0)
    assert select.select([alarm], [], [], PATIENCE_S)[0]
    alarm.heard()
    assert not select.select([alarm], [], [], 0)[0]
    alarm.set(boottime.now() + 0.02)
    alarm.set(None)
    assert not select.select([alarm], [], [], 0.1)[0]
    alarm.close()
