"""A session whose record or host is lost is said to be discontinued, never papered over (N9)."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from holdfast.adapters.journal_files.segments import JournalReader
from holdfast.adapters.signing import check
from holdfast.host.session.discontinuity import discontinue
from holdfast.host.session_store import SessionStore
from holdfast.journal import entries
from holdfast.model.discontinuity import DiscontinuityCause
from holdfast.model.ids import SessionId
from process.commanding import PATIENCE_S, Hold
from process.recorded import damage, host_dies
from process.terminals import Terminal
from unit.journaling import Journal, session_id


def _reader(hold: Hold, session: str) -> JournalReader:
    return JournalReader(str(Path(hold.home, "sessions", session)))


@pytest.mark.requirement("N9")
def test_a_damaged_journal_ends_the_identity_and_what_runs_goes_on_as_a_successor(
    fresh_home: Hold,
) -> None:
    fresh_home.ok("up", "-d")
    old = fresh_home.shell("work")
    pid = fresh_home.json("show", "work")["pid"]
    assert fresh_home.ok("exec", "work", "--", "echo before") == "before\n"
    damage(fresh_home, old, "corruption")
    fresh_home.ok("daemon", "restart")

    found = fresh_home.json("show", "work")
    new = found["id"]
    assert new != old
    assert found["pid"] == pid, "what ran must go on"
    assert fresh_home.ok("exec", "work", "--", "echo after") == "after\n"
    ended = fresh_home.json("show", old)
    assert ended["state"] == "lost"
    assert ended["ending"]["successor"] == new
    assert ended["ending"]["cause"]["kind"] == "corruption"

    statement = _reader(fresh_home, old).discontinuity()
    assert statement is not None
    assert statement.is_signed(check)
    began = next(_reader(fresh_home, new).entries(1, 1)).body
    assert isinstance(began, entries.Began)
    named = (began.predecessor, began.predecessor_seq, began.predecessor_hash)
    assert named == (old, statement.last_seq, statement.last_hash)

    fresh_home.ok("daemon", "restart")
    assert fresh_home.json("show", "work")["id"] == new, "and it stays the successor"
    assert fresh_home.json("show", "work")["pid"] == pid


@pytest.mark.requirement("N9", "A9")
@pytest.mark.parametrize("kind", ["corruption", "conflicting_chains"])
def test_whoever_is_attached_or_watches_learns_why_the_record_ended(
    fresh_home: Hold, kind: str
) -> None:
    """Also one that watches by the name, which the successor has now."""
    fresh_home.ok("up", "-d")
    old = fresh_home.shell("work")
    fresh_home.ok("exec", "work", "--", "true")
    terminal = Terminal(fresh_home, "attach", "work")
    watching = [fresh_home.start("watch", name, "--json") for name in ("work", old)]
    waiting = [
        fresh_home.start(*words)
        for words in (("wait", "work", "--for", "exit"), ("tail", "-f", "work"))
    ]
    try:
        terminal.until_shown("attached to")
        for each in watching:
            assert each.stdout is not None
            assert json.loads(each.stdout.readline())["session"] == old
        damage(fresh_home, old, kind)
        fresh_home.ok("daemon", "restart")
        new = fresh_home.json("show", "work")["id"]
        assert new != old
        terminal.until(f"; followed by {new}]".encode())
        assert terminal.wait() == 72
        for each in watching:
            said, _ = each.communicate(timeout=PATIENCE_S)
            told = [json.loads(line) for line in said.splitlines()]
            assert {line["session"] for line in told} == {old}
            ending = told[-1]["ending"]
            assert (told[-1]["state"], ending["cause"]["kind"]) == ("lost", kind)
            assert ending["successor"] == new and each.returncode == 0
        for each in waiting:
            _, said = each.communicate(timeout=PATIENCE_S)
            assert (each.returncode, b"(session_lost)" in said) == (72, True), said
        cause = fresh_home.json("show", old)["ending"]["cause"]
        assert bool(cause["a"] and cause["b"]) == (kind == "conflicting_chains")
    finally:
        terminal.close()
        for each in (*watching, *waiting):
            each.kill()
            each.communicate()


@pytest.mark.requirement("N9")
def test_two_histories_are_stated_with_the_hashes_of_both(tmp_path: Path) -> None:
    store = SessionStore(str(tmp_path))
    session = SessionId(session_id())
    one = Journal(Path(store.directory(session))).type(3).sealed()
    other = Journal(tmp_path / "other").type(3, actor="bob").sealed()
    shutil.copy(other.head, one.head)
    at = one.verdict().broken_seq
    discontinue(store, session, 1, "its journal cannot be trusted")
    statement = one.reader.discontinuity()
    assert statement is not None and statement.is_signed(check, store.host_key.public)
    a, b = (each.reader.hash_at(session, at).hex() for each in (one, other))
    assert a != b
    assert statement.cause == DiscontinuityCause("conflicting_chains", at=at, a=a, b=b)


@pytest.mark.requirement("N9", "A9")
@pytest.mark.parametrize("with_daemon", [False, True])
def test_a_session_that_died_with_its_host_is_discontinued_by_a_signed_entry(
    fresh_home: Hold, with_daemon: bool
) -> None:
    fresh_home.ok("up", "-d")
    old = fresh_home.shell("work")
    fresh_home.ok("exec", "work", "--", "true")
    if with_daemon:
        host_dies(fresh_home)
        fresh_home.ok("up", "-d")
    else:
        keeper = fresh_home.json("show", "work")["keeper_pid"]
        os.kill(keeper, signal.SIGKILL)
        fresh_home("wait", old, "--for", "exit", "--timeout", "20")
    assert fresh_home.json("show", old)["ending"]["lost"]
    verdict = _reader(fresh_home, old).verify(old, check)
    assert verdict.closed_by == "discontinued"
    assert verdict.outcome == "intact"
    fresh_home.ok("run", "-d", "--name", "again", "--after", old, "--", "bash", "--norc")
    new = fresh_home.json("show", "again")["id"]
    began = next(_reader(fresh_home, new).entries(1, 1)).body
    assert isinstance(began, entries.Began)
    assert began.predecessor == old


@pytest.mark.requirement("A9")
def test_a_keepers_death_ends_its_session_alone_whoever_is_attached(fresh_home: Hold) -> None:
    """What one terminal leaves falls to another, which goes in the same moment."""
    fresh_home.ok("up", "-d")
    fresh_home.shell("seen")
    fresh_home.shell("unseen")
    first, second = (Terminal(fresh_home, "attach", "seen") for _ in range(2))
    try:
        for terminal in (first, second):
            terminal.until_shown("attached to")
        first.type(b"echo typed-$((6*7))\r")
        first.until_shown("typed-42")
        second.signal(signal.SIGSTOP)
        first.type(b"echo typed-$((6*8))\r")
        first.until_shown("typed-48")
        daemon = fresh_home.json("doctor")["daemon_pid"]
        seen = fresh_home.json("show", "seen")
        os.kill(seen["keeper_pid"], signal.SIGKILL)
        fresh_home("wait", seen["id"], "--for", "exit", "--timeout", "20")
        assert "Traceback" not in Path(fresh_home.home, "host.log").read_text()
        assert fresh_home.json("show", seen["id"])["ending"]["lost"] == "its keeper died"
        states = {each["name"]: each["state"] for each in fresh_home.json("ls")}
        assert states.pop("seen") == "lost" and list(states) == ["unseen"]
        assert fresh_home.ok("exec", "unseen", "--", "echo here") == "here\n"
        assert fresh_home.json("doctor")["daemon_pid"] == daemon
    finally:
        for terminal in (first, second):
            terminal.close()
