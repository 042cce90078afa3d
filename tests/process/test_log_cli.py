"""`hold log`: what was done to a session and by whom, as people and programs read it."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator

import pytest

from holdfast.journal.chain import genesis
from holdfast.sdk.client import Host
from holdfast.wire.messages import journal as journal_messages
from process.commanding import Hold
from process.recorded import add_actor, journal_of, log, segments

FIELDS = {
    "seq", "at", "epoch", "actor", "actor_name", "actor_seq", "kind", "body", "hash", "parent",
    "originators", "trigger",
}  # fmt: skip


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    """A host where a second actor, bot, may write too."""
    with Hold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "bot")
        yield hold


def client(hold: Hold) -> Host:
    return Host(f"{hold.home}/run/hold.sock", "test")


@pytest.mark.requirement("A3", "M8")
def test_each_command_is_in_the_log_once_with_the_actor_who_ran_it(hold: Hold) -> None:
    session = hold.shell("two")
    hold.ok("exec", "two", "--", "echo by-the-user")
    hold.ok("--as", "bot", "exec", "two", "--", "echo by-the-bot; false || true")
    user = hold.json("actor", "show")["name"]
    began = log(hold, "two", "--kind", "command_began")
    assert [(each["actor_name"], each["body"]["text"]) for each in began] == [
        (user, "echo by-the-user"),
        ("bot", "echo by-the-bot; false || true"),
    ]
    text = hold.ok("log", session).splitlines()
    assert [line for line in text if f"{user} " in line and "began: echo by-the-user" in line]
    assert [line for line in text if " bot " in line and "began: echo by-the-bot" in line]
    only = log(hold, "two", "--actor", "bot")
    assert {each["actor_name"] for each in only} == {"bot"}
    assert log(hold, "two", "--actor", only[0]["actor"]) == only


def test_the_json_of_the_log_is_the_chain_itself(hold: Hold) -> None:
    session = hold.shell("chain")
    hold.ok("exec", "chain", "--", "true")
    entries = log(hold, "chain")
    assert all(set(each) == FIELDS for each in entries)
    assert [each["seq"] for each in entries] == list(range(1, len(entries) + 1))
    assert entries[0]["parent"] == genesis(session).hex()
    for before, after in itertools.pairwise(entries):
        assert after["parent"] == before["hash"]
    with client(hold) as host:
        shown = host.ask(journal_messages.GetJournal(0, session), journal_messages.JournalShown)
    hashes = [hashlib.sha256(record).hexdigest() for record in shown.records]
    assert hashes[: len(entries)] == [each["hash"] for each in entries]
    typed = next(each for each in entries if each["kind"] == "input")
    assert b"true" in bytes.fromhex(typed["body"]["data"])


def test_keys_typed_in_a_row_are_one_line_and_every_entry_in_json(hold: Hold) -> None:
    session = hold.shell("keys")
    with client(hold) as host:
        for piece in (b"ec", b"ho", b" hi"):
            host.type_bytes(session, piece)
            host.ask(
                journal_messages.GetJournal(0, session), journal_messages.JournalShown
            )  # ends the burst
        text = hold.ok("log", "keys")
        entries = list(log(hold, "keys", "--kind", "input"))
    typed = [each for each in entries if each["body"]["form"] == "keys"]
    assert [bytes.fromhex(each["body"]["data"]) for each in typed] == [b"ec", b"ho", b" hi"]
    lines = [line for line in text.splitlines() if " typed " in line]
    assert len(lines) == 1, lines
    assert lines[0].endswith('typed "echo hi"')
    assert lines[0].split()[0] == f"{typed[0]['seq']}-{typed[-1]['seq']}"


def test_what_was_typed_cannot_speak_to_the_readers_terminal(hold: Hold) -> None:
    session = hold.shell("evil")
    with client(hold) as host:
        host.type_bytes(session, b"\x1b]0;pwned\x07\x9b31m\xc2\x9b31m\x08\x7f\xe2\x80\xae#\r")
    hold.ok("wait", "evil", "--for", "prompt", "--timeout", "20")
    hold.ok("exec", "evil", "--", "echo '\u202e' > /dev/null")
    text = hold.ok("log", "evil")
    assert all(char.isprintable() for line in text.split("\n") for char in line), repr(text)
    assert "pwned" in text
    assert "began: echo" in text


def test_a_secret_is_counted_and_is_in_no_file_and_no_view(hold: Hold) -> None:
    session = hold.shell("secret")
    hold.ok("send", "secret", "--enter", "read -s word")
    hold.ok("wait", "secret", "--for", "secret", "--timeout", "20")
    hold.ok("send", "secret", "--enter", "correct-horse")
    hold.ok("wait", "secret", "--for", "prompt", "--timeout", "20")
    text = hold.ok("log", "secret")
    assert f"typed {len('correct-horse') + 1} secret bytes" in text
    assert "correct-horse" not in text
    assert b"correct-horse".hex() not in hold.ok("log", "secret", "--json")
    for path in segments(journal_of(hold, session)):
        assert b"correct-horse" not in path.read_bytes()


def test_the_log_begins_where_it_is_asked_to(hold: Hold) -> None:
    hold.shell("since")
    hold.ok("exec", "since", "--", "true")
    entries = log(hold, "since")
    assert log(hold, "since", "--since", "4") == entries[3:]
    assert log(hold, "since", "--since", "1d") == entries
    assert log(hold, "since", "--since", "0s") == []
    assert log(hold, "since", "--since", str(10**9)) == []


def test_a_long_journal_comes_whole_page_by_page_and_after_the_end_too(hold: Hold) -> None:
    session = hold.ok("run", "-d", "--name", "long", "--", "cat").strip()
    pieces = [(b"%05d " % number) * 8000 for number in range(16)]  # 0.75 MB: more than one answer
    with client(hold) as host:
        for piece in pieces:
            host.type_bytes(session, piece.replace(b" ", b"\n"))
    hold.ok("end", "long")
    entries = log(hold, session)
    assert [each["seq"] for each in entries] == list(range(1, len(entries) + 1))
    typed = b"".join(
        bytes.fromhex(each["body"]["data"]) for each in entries if each["kind"] == "input"
    )
    assert typed == b"".join(pieces).replace(b" ", b"\n")
    assert "ended" in {each["kind"] for each in entries}
    assert max(len(line) for line in hold.ok("log", session).splitlines()) < 500


def test_following_a_log_ends_with_the_session(hold: Hold) -> None:
    hold.shell("follow")
    process = hold.start("log", "-f", "follow", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["kind"] == "began"
    hold.ok("exec", "follow", "--", "echo while-following")
    hold.ok("end", "follow")
    rest, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, b"")
    kinds = [json.loads(line)["kind"] for line in rest.splitlines()]
    assert "command_began" in kinds
    assert "ended" in kinds


def test_who_may_not_observe_a_session_cannot_read_its_log(hold: Hold) -> None:
    session = hold.shell("private")
    hold.ok("actor", "add", "stranger")
    for verb in ("log", "verify", "status", "blame", "export"):
        hold.fails("no_such_session", "--as", "stranger", verb, session)
    hold.fails("no_such_session", "--as", "stranger", "proof", session, "1", "last")


def test_a_wrong_kind_or_age_is_an_error_that_says_what_there_is(hold: Hold) -> None:
    hold.shell("wrong")
    assert "command_began" in hold.fails("invalid_argument", "log", "wrong", "--kind", "commands")
    for age in ("10", "soon", "-1s", "5y", "nans", "s"):
        done = hold("log", "wrong", "--since", age)
        assert done.returncode == (0 if age == "10" else 64), (age, done)
