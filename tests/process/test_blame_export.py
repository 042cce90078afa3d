"""`hold blame` and `hold export`: whose output this is, line by line and byte by byte."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal.excerpt import records_of
from holdfast.journal.proof import SignedProof, check_signed
from holdfast.model.info import BlameLine
from holdfast.wire.ed25519 import check
from holdfast.wire.messages import turn as turn_messages
from process.commanding import Hold
from process.recorded import add_actor, log


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with Hold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "bot")
        yield hold


def printed(hold: Hold, session: str) -> bytes:
    """The output that is held, byte for byte."""
    process = hold.start("tail", session)
    out, _ = process.communicate(timeout=40)
    assert process.returncode == 0
    return out


class Exported:
    """A cast and the file beside it."""

    def __init__(self, hold: Hold, session: str, directory: Path, *words: str) -> None:
        self.path = directory / f"{session}.cast"
        self.records = directory / f"{session}.records"
        named = ("-o", str(self.path), "--records", str(self.records))
        self.said = hold.ok("export", session, *named, *words)
        header, *lines = self.path.read_text(encoding="utf-8").splitlines()
        self.header: dict[str, Any] = json.loads(header)
        self.comments = [line for line in lines if line.startswith("#")]
        self.events = [json.loads(line) for line in lines if not line.startswith("#")]
        self.beside = Path(f"{self.path}.provenance.json")
        self.provenance: dict[str, Any] = json.loads(self.beside.read_text())

    def of(self, code: str) -> list[Any]:
        return [data for _, kind, data in self.events if kind == code]

    def output(self) -> bytes:
        """What was printed, with the bytes that the format cannot carry put back."""
        text = "".join(self.of("o"))
        replaced = iter(self.provenance["output"]["replaced"])
        back = b""
        for piece in _parts(text, "\ufffd"):
            if piece != "\ufffd":
                back += piece.encode()
                continue
            at = self.provenance["output"]["from"] + len(back)
            known = next(replaced, None)
            if known is not None and known["offset"] == at:
                back += bytes.fromhex(known["hex"])
            else:  # it was really printed
                back += piece.encode()
                replaced = itertools.chain([known] if known else [], replaced)
        return back


def _parts(text: str, mark: str) -> Iterator[str]:
    for index, part in enumerate(text.split(mark)):
        if index:
            yield mark
        if part:
            yield part


# -- blame ------------------------------------------------------------------------------------


@pytest.mark.requirement("A3")
def test_every_line_is_traced_to_the_actor_whose_command_made_it(hold: Hold) -> None:
    session = hold.shell("blame")
    user = hold.json("actor", "show")["name"]
    hold.ok("exec", "blame", "--", "echo first; echo second")
    hold.ok("--as", "bot", "exec", "blame", "--", "seq 100 102")
    hold.ok("exec", "blame", "--", "echo third")

    def check_lines() -> None:
        lines = [json.loads(line) for line in hold.ok("blame", session, "--json").splitlines()]
        assert all(set(line) == set(BlameLine._fields) for line in lines)
        assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
        by_text = {line["text"]: (line["actor"], line["command"]) for line in lines}
        assert by_text["first"] == by_text["second"] == (user, 1)
        assert {by_text[text] for text in ("100", "101", "102")} == {("bot", 2)}
        assert by_text["third"] == (user, 3)
        assert by_text["$ seq 100 102"] == ("bot", 2)
        commands = {line["command"]: line["command_text"] for line in lines}
        assert commands[2] == "seq 100 102"

    check_lines()
    whole = hold.ok("blame", "blame").splitlines()
    row = next(line for line in whole if line.endswith(") 101"))
    assert row.split()[:2] == ["bot", "#2"]
    few = hold.ok("blame", "blame", "-L", "2,3").splitlines()
    assert [line.partition(") ")[2] for line in few] == ["first", "second"]
    assert _json(hold, "blame", "-L", "4,")[0]["number"] == 4
    assert [line["number"] for line in _json(hold, "blame", "-L", "3")] == [3]
    hold.ok("end", "blame")
    check_lines()


def _json(hold: Hold, session: str, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in hold.ok("blame", session, *words, "--json").splitlines()]


def test_a_wrong_range_of_lines_is_a_usage_error(hold: Hold) -> None:
    for text in ("0,3", "5,4", "x", ",", "1,2,3", "-1"):
        assert hold("blame", "any", f"-L{text}").returncode == 64, text


def test_more_lines_than_one_answer_holds_come_all(hold: Hold) -> None:
    hold.ok("run", "-d", "--name", "many", "--ring", str(4 << 20), "--", "bash", "--norc")
    hold.ok("wait", "many", "--for", "prompt", "--timeout", "20")
    hold.ok("exec", "many", "--", "seq 20000 | sed 's/$/ and some more words to fill the line/'")
    lines = _json(hold, "many")
    texts = [line["text"] for line in lines]
    first = texts.index("1 and some more words to fill the line")
    expected = [f"{n} and some more words to fill the line" for n in range(1, 20001)]
    assert texts[first : first + 20000] == expected
    assert {line["command"] for line in lines[first : first + 20000]} == {1}


def test_a_line_cannot_speak_to_the_readers_terminal(hold: Hold) -> None:
    hold.shell("loud")
    hold.ok("exec", "loud", "--", "printf 'a\\u202eb\\u0085c\\n'")
    text = hold.ok("blame", "loud")
    assert all(char.isprintable() for line in text.split("\n") for char in line), repr(text)


# -- export -----------------------------------------------------------------------------------


def test_an_exported_cast_is_the_output_with_its_resizes_commands_and_end(
    hold: Hold, tmp_path: Path
) -> None:
    session = hold.ok(
        "run", "-d", "--name", "cast", "--size", "90x20", "--", "bash", "--norc"
    ).strip()
    hold.ok("wait", "cast", "--for", "prompt", "--timeout", "20")
    user = hold.json("actor", "show")["name"]
    hold.ok("exec", "cast", "--", "printf '\\033[1mbold\\033[0m über ✓\\n'")
    hold.ok("resize", "cast", "100x30")
    hold.ok("--as", "bot", "exec", "cast", "--", "seq 3")
    hold.ok("send", "cast", "--enter", "exit 7")
    hold.ok("wait", "cast", "--for", "exit", "--timeout", "20")
    held = printed(hold, session)
    exported = Exported(hold, session, tmp_path)
    assert exported.header["version"] == 3
    assert exported.header["term"] == {"cols": 90, "rows": 20, "type": "xterm-256color"}
    assert "".join(exported.of("o")).encode() == held == exported.output()
    assert exported.of("r") == ["100x30"]
    assert exported.of("m")[:2] == [
        f"{user}: printf '\\033[1mbold\\033[0m über ✓\\n'",
        "bot: seq 3",
    ]
    assert exported.events[-1][1:] == ["x", "7"]
    assert exported.of("i") == []
    assert any("interpolated" in line for line in exported.comments)
    assert all(len(event) == 3 and event[0] >= 0 for event in exported.events)
    lasted = sum(event[0] for event in exported.events)
    info = hold.json("show", session)
    assert lasted <= info["ended_at"] - info["created_at"] + 1


def test_a_command_s_marker_stands_right_before_its_output_and_at_its_time(
    hold: Hold, tmp_path: Path
) -> None:
    hold.shell("marks")
    hold.ok("exec", "marks", "--", "echo one")
    hold.ok("--as", "bot", "exec", "marks", "--", "echo two")
    exported = Exported(hold, "marks", tmp_path)
    began = {each["body"]["text"]: each for each in log(hold, "marks", "--kind", "command_began")}
    start = log(hold, "marks")[0]["at"]
    at, offset = 0.0, 0
    for interval, code, data in exported.events:
        at += interval
        if code == "o":
            offset += len(data.encode())
        elif code == "m":
            entry = began[data.partition(": ")[2]]
            assert offset == entry["body"]["offset"]
            assert at == pytest.approx(entry["at"] - start, abs=0.001)


@pytest.mark.requirement("N7")
def test_the_provenance_names_the_actor_of_every_byte_and_its_proof_verifies(
    hold: Hold, tmp_path: Path
) -> None:
    session = hold.shell("origin")
    hold.ok("exec", "origin", "--", "echo mine")
    hold.ok("--as", "bot", "exec", "origin", "--", "echo the bots")
    exported = Exported(hold, "origin", tmp_path)
    held = printed(hold, session)
    told = exported.provenance
    names = told["actors"]
    assert told["session"] == session
    assert told["cast_sha256"] == hashlib.sha256(exported.path.read_bytes()).hexdigest()
    output = told["output"]
    assert output["sha256"] == hashlib.sha256(held[: output["to"]]).hexdigest()
    # The ranges are all of it, in order and without a gap.
    ranges = told["ranges"]
    assert (ranges[0]["from"], ranges[-1]["to"]) == (output["from"], output["to"])
    assert all(one["to"] == two["from"] for one, two in itertools.pairwise(ranges))
    of_bot = [each for each in ranges if names.get(each["actor"] or "") == "bot"]
    assert [b"the bots" in held[each["from"] : each["to"]] for each in of_bot] == [True]
    assert not any(b"mine" in held[each["from"] : each["to"]] for each in of_bot)
    # What is said of an entry is in the journal under that hash.
    known = {each["seq"]: each for each in log(hold, session)}
    for command in told["commands"]:
        assert known[command["began"]["seq"]]["hash"] == command["began"]["hash"]
        assert known[command["began"]["seq"]]["actor"] == command["actor"]
    for typed in told["inputs"]:
        assert known[typed["seq"]]["hash"] == typed["hash"]
    proof = SignedProof.of_text(json.dumps(told["proof"]))
    records = list(records_of(exported.records.read_bytes()))
    assert (proof.first, proof.last) == (1, told["entries"]["last"])
    assert check_signed(proof, check, records)
    given = ("--records", str(exported.records), "--session", session)
    assert hold.ok("proof", "check", str(exported.beside), *given).startswith("valid: ")
    told["proof"]["last"] += 1
    exported.beside.write_text(json.dumps(told))
    assert hold("proof", "check", str(exported.beside)).returncode == 1


def test_what_is_missing_from_an_export_is_said(hold: Hold, tmp_path: Path) -> None:
    session = hold.ok(
        "run", "-d", "--name", "gone", "--ring", str(64 << 10), "--", "bash", "--norc"
    ).strip()
    hold.ok("wait", "gone", "--for", "prompt", "--timeout", "20")
    hold.ok("exec", "gone", "--", "echo early")
    hold.ok("exec", "gone", "--", "seq 30000")
    hold.ok("send", "gone", "--enter", "read -s word")
    hold.ok("wait", "gone", "--for", "secret", "--timeout", "20")
    hold.ok("send", "gone", "--enter", "hush-hush")
    hold.ok("wait", "gone", "--for", "prompt", "--timeout", "20")
    exported = Exported(hold, session, tmp_path, "--input")
    missing = exported.provenance["missing"]
    assert missing["output_rolled_off"] == exported.provenance["output"]["from"] > 0
    assert missing["commands_rolled_off"] == [1]
    assert missing["secret_bytes"] == len("hush-hush") + 1
    assert missing["trouble"] == ""
    assert exported.output() == printed(hold, session)
    assert "echo early" not in "".join(exported.of("m"))
    assert any("read -s word" in typed for typed in exported.of("i"))
    for path in (exported.path, exported.beside, exported.records):
        assert b"hush-hush" not in path.read_bytes()
    assert "before them are no longer held" in exported.said


def test_bytes_that_are_no_utf8_can_be_put_back(hold: Hold, tmp_path: Path) -> None:
    hold.shell("bytes")
    hold.ok("send", "bytes", "--enter", r"printf '\377a\303\n\357\277\275\342\202x\n'")
    hold.ok("wait", "bytes", "--for", "text:a.*x", "--timeout", "20")
    exported = Exported(hold, "bytes", tmp_path)
    assert len(exported.provenance["output"]["replaced"]) == 3
    held = printed(hold, "bytes")
    assert b"\xffa\xc3\r\n\xef\xbf\xbd\xe2\x82x" in held
    assert exported.output() == held


def test_a_blind_turn_leaves_no_trace_of_what_was_typed_or_printed_in_it(
    hold: Hold, tmp_path: Path
) -> None:
    from holdfast.sdk.client import Host

    session = hold.shell("blind")
    with Host(f"{hold.home}/run/hold.sock", "test") as host:
        host.ask(turn_messages.SetBlind(0, session, True), turn_messages.TurnShown)
        host.send(session, "cat /proc/sys/kernel/ostype; : very-private; read x")
        hold.ok("wait", "blind", "--for", "input", "--timeout", "20")
        host.ask(turn_messages.SetBlind(0, session, False), turn_messages.TurnShown)
    exported = Exported(hold, session, tmp_path, "--input")
    assert [each["on"] for each in exported.provenance["missing"]["blind_turns"]] == [True, False]
    assert exported.provenance["missing"]["secret_bytes"] > 0
    for path in (exported.path, exported.beside, exported.records):
        assert b"very-private" not in path.read_bytes(), path
    assert "Linux" not in "".join(exported.of("o"))
