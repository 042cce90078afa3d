"""M9: what ended long ago is removed from disk, and what is left of it can still be proven."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from holdfast.adapters.signing import check
from holdfast.core.retention import EndedSession, PruneReason, choose
from holdfast.journal.pruned import PrunedJournal
from holdfast.model.ids import SessionId
from process.waiting import until

DAY = 86400.0
IDS = [SessionId(digit * 26) for digit in "abcd"]


def ended(number: int, days_ago: float, size: int = 100, lost: bool = False) -> EndedSession:
    return EndedSession(IDS[number], 1000 * DAY - days_ago * DAY, size, lost)


@pytest.mark.requirement("M9")
def test_the_old_go_first_then_the_oldest_until_the_rest_is_small_enough() -> None:
    found = [ended(0, 1), ended(1, 40), ended(2, 20), ended(3, 10)]
    chosen = choose(found, 1000 * DAY, 30 * DAY, 250)
    assert [(each.id, why) for each, why in chosen] == [
        (IDS[1], PruneReason.AGE),
        (IDS[2], PruneReason.SIZE),
    ]
    assert choose(found, 1000 * DAY, 0, 0) == []


@pytest.mark.requirement("M9")
def test_a_lost_session_is_kept_however_old_and_large() -> None:
    assert choose([ended(0, 400, 1 << 40, lost=True)], 1000 * DAY, DAY, 1) == []


@pytest.fixture
def host() -> Iterator[FaultHost]:
    with FaultHost() as host:
        (host.home / "config.toml").write_text("retention_days = 2\n")
        yield host.up()


def output(host: FaultHost, *words: str, status: int = 0) -> str:
    done = host.hold(*words)
    assert done.returncode == status, (words, done)
    return done.stdout


def end_long_ago(
    host: FaultHost, name: str, days: float = 10, command: Sequence[str] = ("true",)
) -> Path:
    """A session that ended, and whose tombstone says that this was days ago."""
    id = output(host, "run", "-d", "--name", name, "--", *command).split()[0]
    (directory,) = (host.home / "sessions").glob(f"{id}*")
    path = directory / "tombstone.json"
    until("it has ended", lambda: path.exists() or None)
    stored = json.loads(path.read_text())
    stored["info"]["ended_at"] = time.time() - days * DAY
    path.write_text(json.dumps(stored))
    return directory


@pytest.mark.requirement("M9")
@pytest.mark.timeout(60)
def test_a_pruned_session_leaves_a_signed_tombstone_and_frees_the_rest(host: FaultHost) -> None:
    output(host, "run", "-d", "--name", "living", "--", "cat")
    recent = output(host, "run", "-d", "--name", "recent", "--", "true").split()[0]
    directory = end_long_ago(host, "old")
    old = directory.name

    would = json.loads(output(host, "prune", "--dry-run", "--json"))
    assert [(each["id"], each["why"]) for each in would["sessions"]] == [(old, "age")]
    assert would["bytes"] == sum(each.stat().st_blocks * 512 for each in directory.iterdir()) > 0
    assert (directory / "session.key").exists(), "a dry run removes nothing"

    gone = json.loads(output(host, "prune", "--json"))
    assert gone["sessions"] == would["sessions"] and gone["bytes"] == would["bytes"]
    assert sorted(os.listdir(directory)) == ["pruned.json", "tombstone.json"]
    assert json.loads(output(host, "prune", "--json"))["sessions"] == []

    def look() -> None:
        shown = json.loads(output(host, "show", old, "--json"))
        assert shown["pruned_at"] and shown["ending"]["code"] == 0
        judged = json.loads(output(host, "verify", old, "--json", status=1))
        assert judged["verdict"] == "pruned" and judged["signed_through"] > 1
        assert judged["closed_by"] == "ended"
        assert "session_pruned" in host.hold("log", old).stderr
        assert output(host, "verify", recent).startswith("intact")

    look()
    statement = PrunedJournal.of_text((directory / "pruned.json").read_text())
    assert statement.is_valid(old, check) and statement.name == "old"
    assert not statement.replace(last_seq=1).is_valid(old, check)
    host.wait_new_daemon(host.kill_daemon())
    look()
    assert "pruned" in output(host, "show", "old")
    assert json.loads(output(host, "show", "living", "--json"))["ending"] is None


@pytest.mark.requirement("M9")
@pytest.mark.timeout(60)
def test_a_removal_that_was_cut_off_is_finished_by_what_was_signed_before_it(
    host: FaultHost,
) -> None:
    directory = end_long_ago(host, "cut")
    saved = {each.name: each.read_bytes() for each in directory.iterdir()}
    output(host, "prune")
    signed = (directory / "pruned.json").read_bytes()
    for name, data in saved.items():
        if not name.startswith("journal"):
            (directory / name).write_bytes(data)
    gone = json.loads(output(host, "prune", "--json"))
    assert [each["name"] for each in gone["sessions"]] == ["cut"]
    assert sorted(os.listdir(directory)) == ["pruned.json", "tombstone.json"]
    assert (directory / "pruned.json").read_bytes() == signed


@pytest.mark.requirement("M9")
@pytest.mark.timeout(60)
def test_what_ended_uses_together_no_more_disk_than_the_setting_says() -> None:
    host, kept = FaultHost(), 500_000
    (host.home / "config.toml").write_text(f"retention_bytes = {kept}\nretention_days = 0\n")
    large = ("sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x")
    try:
        host.up()
        output(host, "run", "-d", "--name", "living", "--", "sh", "-c", f"{large[2]}; cat")
        ended = [end_long_ago(host, f"old-{days}", days, large) for days in (30, 20, 10)]
        would = json.loads(output(host, "prune", "--dry-run", "--json"))["sessions"]
        assert [(each["name"], each["why"]) for each in would] == [("old-30", "size")]
        output(host, "prune")
        left = [
            sum(each.stat().st_blocks * 512 for each in directory.iterdir()) for directory in ended
        ]
        assert left[0] < 50_000 < min(left[1:]) and sum(left[1:]) <= kept
        assert json.loads(output(host, "prune", "--json"))["sessions"] == []
        assert json.loads(output(host, "show", "living", "--json"))["ending"] is None
    finally:
        host.down()


@pytest.mark.requirement("M9")
@pytest.mark.timeout(60)
def test_the_host_prunes_by_itself() -> None:
    often = "from holdfast.model import limits\nlimits.PRUNE_FIRST_S = limits.PRUNE_EVERY_S = 0.2\n"
    with customized_host(often) as host:
        host.up()
        output(host, "run", "-d", "--name", "living", "--", "cat")
        directory = end_long_ago(host, "old", days=31)
        until("it is pruned", lambda: not (directory / "session.key").exists() or None)
        until(
            "that is said",
            lambda: json.loads(output(host, "show", directory.name, "--json"))["pruned_at"],
        )
        assert json.loads(output(host, "show", "living", "--json"))["ending"] is None
