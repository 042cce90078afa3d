"""`hold verify`, `hold status` and `hold proof` on the journals of real sessions: whole, spoilt,
torn, discontinued; with a host and without."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cli.journal.files import open_journal
from holdfast.journal.framing import FRAME_BYTES, HEADER_BYTES, SEAL_MARK, frame, length_at
from holdfast.journal.judging import judge
from holdfast.wire.ed25519 import check
from process.commanding import Hold
from process.recorded import add_actor, copied, host_dies, journal_of, log, segments, verified


class Ended(NamedTuple):
    """Two ended sessions of one host, and the first one's entries."""

    hold: Hold
    one: str
    other: str
    entries: int

    def copy(self, to: Path) -> Path:
        return copied(journal_of(self.hold, self.one), to)


@pytest.fixture(scope="module")
def ended() -> Iterator[Ended]:
    with Hold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "bot")
        sessions = []
        for name in ("one", "other"):
            sessions.append(hold.shell(name))
            hold.ok("exec", name, "--", "echo hello")
            hold.ok("--as", "bot", "exec", name, "--", "cd /tmp; pwd")
            hold.ok("end", name)
        yield Ended(hold, sessions[0], sessions[1], len(log(hold, sessions[0])))


def starts(data: bytes) -> list[int]:
    """Where each record of a segment begins."""
    found, at = [], HEADER_BYTES
    while at + FRAME_BYTES <= len(data) and (size := length_at(data, at)[0] & 0x7FFF_FFFF):
        found.append(at)
        at += FRAME_BYTES + size
    return found


def spoil(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def forged(data: bytes, entry: int) -> bytes:
    """The same with a changed record in its place, as whole as any."""
    at = starts(data)[entry - 1]
    word = length_at(data, at)[0]
    end = at + FRAME_BYTES + (word & ~SEAL_MARK)
    record = data[at + FRAME_BYTES : end - 1] + bytes([data[end - 1] ^ 1])
    return data[:at] + frame(record, seal=word >= SEAL_MARK) + data[end:]


# -- whole ------------------------------------------------------------------------------------


@pytest.mark.requirement("N8")
def test_a_live_and_an_ended_session_are_intact_and_exit_with_0(ended: Ended) -> None:
    hold = ended.hold
    said = hold.ok("verify", ended.one)
    assert said.startswith(f"intact: all {ended.entries} entries are whole and linked; ")
    assert f"signed through entry {ended.entries}:" in said
    assert hold.ok("verify", ended.one, "--thorough") == said
    judged = hold.json("verify", ended.one)
    assert (judged["verdict"], judged["status"]) == ("intact", "continuous")
    assert (judged["closed_by"], judged["discontinued"]) == ("ended", False)
    live = hold.shell("live")
    assert hold.ok("verify", "live").startswith("intact: all ")
    assert hold.json("status", live)["closed_by"] == ""
    assert hold.ok("status", ended.one).splitlines() == [
        f"continuous: one unbroken history of {ended.entries} entries, in epoch 1",
        "ended: the session's own processes ended, and its journal is closed",
    ]


def test_without_a_host_the_same_is_found(ended: Ended, tmp_path: Path) -> None:
    copy = ended.copy(tmp_path / "copy")
    status, judged = verified(ended.hold, copy, ended.one)
    assert status == 0
    assert judged == ended.hold.json("verify", ended.one)
    assert verified(ended.hold, Path(ended.hold.home), ended.one)[1] == judged
    assert verified(ended.hold, copy, ended.one, "--thorough")[0] == 0


def test_the_files_of_one_session_are_not_anothers(ended: Ended, tmp_path: Path) -> None:
    copy = ended.copy(tmp_path / "copy")
    status, judged = verified(ended.hold, copy, ended.other)
    assert (status, judged["verdict"], judged["trustworthy_through"]) == (1, "damaged", 0)
    ended.hold.fails("invalid_argument", "verify", "--dir", str(copy), "--session", "one")
    ended.hold.fails("invalid_argument", "verify", "--dir", str(tmp_path), "--session", ended.one)
    ended.hold.fails("invalid_argument", "verify", "--dir", str(copy))
    ended.hold.fails("invalid_argument", "verify")


# -- spoilt -----------------------------------------------------------------------------------


@pytest.mark.requirement("N8")
def test_any_byte_changed_is_found_at_its_entry(ended: Ended, tmp_path: Path) -> None:
    """Every seventh byte and all of two entries, by the code; three of them by the command."""
    copy = ended.copy(tmp_path / "copy")
    path = segments(copy)[0]
    data = path.read_bytes()
    begins = starts(data)
    assert len(begins) == ended.entries
    places = {*range(0, len(data), 7), *range(begins[3], begins[5])}
    by_command = set(random.Random(7).sample(sorted(places), 3))
    for at in sorted(places):
        path.write_bytes(flipped(at)(data))
        judged = judge(open_journal(str(copy), ended.one), ended.one, check)
        entry = max(1, sum(begin <= at for begin in begins))
        assert (judged.verdict, judged.broken_at) == ("damaged", entry), (at, judged)
        assert judged.trustworthy_through < entry
        assert judged.status in ("unverifiable", "forked")
        if at in by_command:
            words = ("--dir", str(copy), "--session", ended.one)
            done = ended.hold("verify", *words)
            assert done.returncode == 1
            first = f"damaged: the first broken link is at entry {entry}"
            assert done.stdout.splitlines()[0] == first
            assert "can be trusted" in done.stdout.splitlines()[-1]
            assert verified(ended.hold, copy, ended.one)[1]["broken_at"] == entry


@pytest.mark.requirement("N8")
def test_a_host_says_where_an_ended_sessions_journal_is_broken(ended: Ended) -> None:
    hold, path = ended.hold, segments(journal_of(ended.hold, ended.one))[0]
    whole = path.read_bytes()
    at = starts(whole)[6]
    try:
        path.write_bytes(flipped(at + 20)(whole))
        done = hold("verify", ended.one)
        assert done.returncode == 1
        assert "damaged: the first broken link is at entry 7" in done.stdout
        assert "  altered: bytes are not the ones that were written" in done.stdout
        assert "nothing after entry 6 can be trusted" in done.stdout
        said = hold.ok("status", ended.one)
        assert said.startswith("unverifiable: the gap is entry 7 ("), said
        assert json.loads(hold("verify", ended.one, "--json").stdout)["gap_from"] == 7
        # What stands before the break can still be read, and then it is said to break.
        done = hold("log", ended.one, "--json")
        assert [json.loads(line)["seq"] for line in done.stdout.splitlines()] == list(range(1, 7))
        assert "(journal_damaged)" in done.stderr and done.returncode == 65
        hold.fails("journal_damaged", "proof", ended.one, "1", "8")
        assert hold.ok("proof", ended.one, "1", "6")
    finally:
        path.write_bytes(whole)
    assert hold.ok("verify", ended.one).startswith("intact")


@pytest.mark.parametrize("how", ["truncated", "missing", "reordered", "extended", "headless"])
def test_cutting_dropping_swapping_and_adding_entries_is_found(
    ended: Ended, tmp_path: Path, how: str
) -> None:
    copy = ended.copy(tmp_path / "copy")
    path = segments(copy)[0]
    data = path.read_bytes()
    begins = [*starts(data), len(data.rstrip(b"\0"))]
    third, fourth, fifth = (data[begins[n] : begins[n + 1]] for n in (2, 3, 4))
    spoilt = {
        "truncated": data[: begins[-2]],
        "missing": data.replace(fourth, b""),
        "reordered": data.replace(third + fourth, fourth + third),
        "extended": data[: begins[-1]] + fifth,
        "headless": data,
    }[how]
    path.write_bytes(spoilt)
    if how == "headless":
        (copy / "journal.head").unlink()
    status, judged = verified(ended.hold, copy, ended.one)
    assert (status, judged["verdict"]) == (1, "damaged")
    assert judged["status"] == "unverifiable"
    expected = {
        "truncated": ("truncated", ended.entries),
        "missing": ("missing", 4),
        "reordered": ("reordered", 3),
        "extended": ("reordered", ended.entries + 1),
        "headless": ("headless", ended.entries + 1),
    }[how]
    assert (judged["problem"], judged["broken_at"]) == expected
    assert judged["trustworthy_through"] == expected[1] - 1
    assert verified(ended.hold, copy, ended.one, "--thorough")[1] == judged


def test_swapping_the_segments_of_two_sessions_is_found_in_both(
    ended: Ended, tmp_path: Path
) -> None:
    one = ended.copy(tmp_path / "one")
    other = copied(journal_of(ended.hold, ended.other), tmp_path / "other")
    name = segments(one)[0].name
    kept = (one / name).read_bytes()
    shutil.copy(other / name, one / name)
    (other / name).write_bytes(kept)
    for directory, session in ((one, ended.one), (other, ended.other)):
        status, judged = verified(ended.hold, directory, session)
        assert (status, judged["problem"], judged["trustworthy_through"]) == (1, "foreign", 0)
        # Even with the foreign head beside it, for then it is all another's.
    shutil.copy(journal_of(ended.hold, ended.other) / "journal.head", one)
    assert verified(ended.hold, one, ended.one)[1]["problem"] == "foreign"


# -- torn, discontinued, followed -------------------------------------------------------------


@pytest.fixture
def lost(fresh_home: Hold) -> tuple[Hold, str]:
    """A session whose host has just died."""
    fresh_home.ok("up", "-d")
    session = fresh_home.shell("lost")
    fresh_home.ok("exec", "lost", "--", "echo before-the-end")
    log(fresh_home, "lost")
    host_dies(fresh_home)
    return fresh_home, session


@pytest.mark.requirement("N9")
def test_a_torn_tail_after_host_death_is_reported_cut_and_recorded(lost: tuple[Hold, str]) -> None:
    hold, session = lost
    path = segments(journal_of(hold, session))[0]
    end = len(path.read_bytes().rstrip(b"\0"))
    spoil(path, lambda data: data[:end] + b"\x00\x00\x00\x90torn" + data[end + 8 :])
    directory = journal_of(hold, session)
    status, judged = verified(hold, directory, session)
    assert (status, judged["verdict"], judged["torn_bytes"]) == (1, "torn_tail", 8)
    done = hold("verify", "--dir", str(directory), "--session", session)
    assert done.stdout.startswith(f"torn tail: after entry {judged['records']} there are 8 bytes")
    hold.ok("up", "-d")
    assert hold.ok("verify", session).startswith("intact")
    told = [each for each in log(hold, session) if each["kind"] == "tail_cut"]
    assert [each["body"] for each in told] == [{"size": 8}]
    assert hold.json("status", session)["discontinued_after"] == judged["records"]


@pytest.mark.requirement("N9", "A9")
def test_after_host_death_it_is_discontinued_and_its_successor_says_whom_it_follows(
    lost: tuple[Hold, str],
) -> None:
    hold, session = lost
    hold.ok("up", "-d")
    judged = hold.json("status", "lost")
    assert (judged["status"], judged["verdict"]) == ("continuous", "intact")
    assert (judged["discontinued"], judged["reason"]) == (True, "its keeper died")
    assert (judged["closed_by"], judged["statement"]) == ("discontinued", "entry")
    assert judged["signed_through"] == judged["records"]
    after = judged["discontinued_after"]
    assert judged["cause"]["kind"] == "keeper_lost"
    why = "its keeper died (keeper_lost)"
    said = f"discontinued: {why}; said by its last entry; trustworthy through entry {after}"
    assert said in hold.ok("status", "lost").splitlines()
    assert hold.json("show", session)["state"] == "lost"
    hold.fails("session_lost", "send", "lost", "x")
    next_one = hold.ok("run", "-d", "--after", "lost", "--name", "next", "--", "cat").strip()
    assert next_one != session
    told = hold.json("status", "next")
    assert (told["predecessor"], told["predecessor_seq"]) == (session, after)
    assert told["predecessor_agrees"] is True
    assert f"follows {session} after its entry {after} (its journal agrees)" in hold.ok(
        "status", "next"
    )
    body = log(hold, "next")[0]["body"]
    by_seq = {each["seq"]: each["hash"] for each in log(hold, session)}
    assert body["predecessor_hash"] == by_seq[after]
    # Another entry there, whole in itself.
    spoil(segments(journal_of(hold, session))[0], lambda data: forged(data, after))
    assert hold.json("status", "next")["predecessor_agrees"] is False
    assert "does NOT agree" in hold.ok("status", "next")


@pytest.mark.requirement("N9")
def test_a_damaged_journal_gets_its_signed_statement_beside_it(lost: tuple[Hold, str]) -> None:
    hold, session = lost
    directory = journal_of(hold, session)
    path = segments(directory)[0]
    spoil(path, flipped(starts(path.read_bytes())[2] + 15))
    spoilt = path.read_bytes()
    hold.ok("up", "-d")
    assert path.read_bytes() == spoilt  # nothing is mended or added
    judged = hold.json("status", "lost")
    assert (judged["status"], judged["broken_at"]) == ("unverifiable", 3)
    assert (judged["discontinued"], judged["statement"]) == (True, "beside")
    assert judged["discontinued_after"] == 2
    assert "its keeper died" in judged["reason"]
    said = hold.ok("status", "lost")
    assert "said by a signed statement beside it; trustworthy through entry 2" in said
    beside = directory / "journal.discontinued"
    spoil(beside, lambda text: text.replace(b"its keeper died", b"all is well    "))
    for judged in (hold.json("status", "lost"), verified(hold, directory, session)[1]):
        assert (judged["discontinued"], judged["statement"]) == (False, "invalid")
    beside.write_bytes(b"not even JSON")
    assert hold.json("status", "lost")["statement"] == "invalid"


# -- proofs -----------------------------------------------------------------------------------


@pytest.mark.requirement("N7")
def test_both_forms_of_a_proof_are_checked_with_the_host_down(
    fresh_home: Hold, tmp_path: Path
) -> None:
    hold = fresh_home
    hold.ok("up", "-d")
    session = hold.shell("proven")
    hold.ok("exec", "proven", "--", "echo evidence")
    proof, records = tmp_path / "proof", tmp_path / "records"
    words = ("proven", "2", "5", "-o", str(proof), "--records", str(records))
    witness = hold.ok("proof", *words).strip()
    assert len(bytes.fromhex(witness)) == 36
    printed = hold.ok("proof", "proven", "2", "5")
    assert printed.splitlines()[0] == witness
    assert json.loads(printed.partition("\n")[2]) == json.loads(proof.read_text())
    hold.ok("down", "--end-sessions")
    mine = ("--session", session)
    said = hold.ok("proof", "check", str(proof), *mine)
    assert said.startswith("valid: host ") and "entries 2 to 5" in said
    assert "what the entries say is not shown by it" in said
    said = hold.ok("proof", "check", str(proof), "--records", str(records))
    assert "the records given are those entries, unchanged" in said
    assert "compare the session's id" in said
    said = hold.ok("proof", "check", witness, "--records", str(records), *mine)
    assert said.startswith(f"valid: these 4 records are entries 2 to 5 of {session}")
    assert "bears no signature" in said
    hold.ok("proof", "check", witness, "--records", str(records), *mine, "--from", "2", "--to", "5")
    (tmp_path / "both").write_text(printed)
    hold.ok("proof", "check", str(tmp_path / "both"), *mine)
    (tmp_path / "witness").write_bytes(bytes.fromhex(witness))
    hold.ok("proof", "check", str(tmp_path / "witness"), "--records", str(records), *mine)
    hold.fails("invalid_argument", "proof", "check", witness, *mine)
    hold.fails("invalid_argument", "proof", "check", witness, "--records", str(records))


@pytest.mark.requirement("N7")
def test_a_proof_that_was_changed_or_is_of_something_else_is_invalid(
    ended: Ended, tmp_path: Path
) -> None:
    hold = ended.hold
    proof, records, others = tmp_path / "p", tmp_path / "r", tmp_path / "o"
    words = ("-o", str(proof), "--records", str(records))
    witness = hold.ok("proof", ended.one, "1", "last", *words).strip()
    hold.ok("proof", ended.other, "1", "last", "-o", str(tmp_path / "x"), "--records", str(others))
    assert json.loads(proof.read_text())["last"] == ended.entries

    def invalid(*words: str) -> str:
        done = hold("proof", "check", *words)
        assert (done.returncode, done.stderr) == (1, ""), done
        assert done.stdout.startswith("invalid: "), done
        return done.stdout

    invalid(str(proof), "--session", ended.other)
    invalid(str(proof), "--to", str(ended.entries - 1))
    assert "these records are not the ones" in invalid(str(proof), "--records", str(others))
    given = ("--records", str(records), "--session")
    invalid(witness, *given, ended.other)
    invalid(witness, *given, ended.one, "--from", "2")
    invalid(witness, "--records", str(others), "--session", ended.one)
    invalid(f"{int(witness[:2], 16) ^ 1:02x}{witness[2:]}", *given, ended.one)
    fields = json.loads(proof.read_text())
    for name, value in fields.items():
        if name == "holdfast":
            continue
        changed = value + 1 if isinstance(value, int) else value[:-1] + "01"[value[-1] == "0"]
        (tmp_path / "changed").write_text(json.dumps({**fields, name: changed}))
        invalid(str(tmp_path / "changed"))
    data = records.read_bytes()
    for cut in (data[:-1], data + b"x", b"HOLDEXC\x02" + data[8:], b""):
        records.write_bytes(cut)
        hold.fails("invalid_argument", "proof", "check", str(proof), "--records", str(records))
    hold.fails("invalid_argument", "proof", "check", str(segments(journal_of(hold, ended.one))[0]))


def test_a_proof_is_of_a_range_that_is_there(ended: Ended) -> None:
    hold = ended.hold
    for first, last in (("0", "2"), ("3", "2"), ("1", str(ended.entries + 1)), ("1", "x")):
        hold.fails("invalid_argument", "proof", ended.one, first, last)
    hold.fails("invalid_argument", "proof", ended.one)
    hold.fails("invalid_argument", "proof", "check")


@pytest.mark.requirement("N7")
def test_a_journal_put_back_to_an_older_state_is_given_away_by_a_later_proof(
    ended: Ended, tmp_path: Path
) -> None:
    """The one thing the files alone cannot show."""
    hold = ended.hold
    session = hold.shell("rolled")
    hold.ok("exec", "rolled", "--", "true")
    early, late = tmp_path / "early", tmp_path / "late"
    hold.ok("proof", session, "1", "last", "-o", str(early))
    old = copied(journal_of(hold, session), tmp_path / "old")
    hold.ok("exec", "rolled", "--", "echo to-be-forgotten")
    hold.ok("proof", session, "2", "last", "-o", str(late))
    status, judged = verified(hold, old, session)
    assert (status, judged["status"]) == (0, "continuous")
    assert verified(hold, old, session, "--proof", str(early))[0] == 0
    status, judged = verified(hold, old, session, "--proof", str(late))
    assert (status, judged["status"]) == (1, "unverifiable")
    assert judged["gap_to"] == json.loads(late.read_text())["last"]
    done = hold("verify", "--dir", str(old), "--session", session, "--proof", str(late))
    assert "but unverifiable: the proof knows of entry" in done.stdout
    assert hold.ok("verify", "rolled", "--proof", str(late)).startswith("intact")
    hold.fails("invalid_argument", "verify", ended.one, "--proof", str(late))
    spoil(late, lambda text: text.replace(b'"last": ', b'"last": 1'))
    hold.fails("invalid_argument", "verify", "rolled", "--proof", str(late))
