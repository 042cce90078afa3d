"""Policies as people use them: `hold policy`, and `hold run --workspace`."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.gate_policy import Explanation, JudgedLine, PolicyInfo
from process.acting import add_actor
from process.commanding import Hold
from process.waiting import PATIENCE_S

REFUSES_RM = '[[rule]]\nname = "no-rm"\ncommands = "rm"\nthen = "refuse"\nreason = "no rm here"\n'


@pytest.fixture(scope="module", autouse=True)
def actors(host_home: Hold) -> None:
    """An agent that may write, and one that may also grant."""
    add_actor(host_home, "bot", "execute", "--all")
    add_actor(host_home, "boss", "admin", "--all")


def policies(hold: Hold, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hold.json("policy", "show", *words)["policies"]
    return found


def journal(hold: Hold, session: str, kind: str) -> list[dict[str, Any]]:
    """What entries of one kind say, with their numbers."""
    lines = hold.ok("log", session, "--json", "--kind", kind).splitlines()
    found = [json.loads(line) for line in lines]
    return [{"seq": each["seq"], **each["body"]} for each in found]


def file(hold: Hold, name: str, text: str) -> str:
    path = Path(hold.home, name)
    path.write_text(text)
    return str(path)


# -- setting and showing ------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_a_policy_is_set_shown_recorded_and_taken_out_of_force(host_home: Hold) -> None:
    session = host_home.ok("run", "-d", "--name", "set", "--label", "blue", "--", "cat").strip()
    assert host_home.ok("policy") == "no policy is in force\n"
    said = host_home.ok("policy", "set", "starter:hold-destructive", "--label", "blue")
    assert said == "in force for label blue: starter:hold-destructive\n"
    rules = file(host_home, "rules.toml", REFUSES_RM)
    host_home.ok("policy", "set", rules, "--session", "set")
    host_home.ok("policy", "set", "starter:agents-in-workspace", "--floor")
    shown = policies(host_home)
    assert [each["scope"] for each in shown] == ["host", "label:blue", f"session:{session}"]
    assert shown[0].keys() == {*PolicyInfo._fields, "set_by_name"}
    assert [each["floor"] for each in shown] == [True, False, False]
    assert shown[2]["source"] == "rules.toml" and shown[2]["text"] == REFUSES_RM
    counts = {each["scope"]: each["counts"] for each in policies(host_home, "set")}
    assert counts == {"host": True, "label:blue": False, f"session:{session}": True}
    text = host_home.ok("policy", "show", "set")
    assert "session set: rules.toml" in text and "a narrower policy counts" in text
    assert "floor of the host" in text and "no rm here" in text
    entries = journal(host_home, "set", "gate_policy_set")
    assert [each["scope"] for each in entries] == ["label:blue", f"session:{session}", "host"]
    assert all(len(each["digest"]) == 64 for each in entries)
    assert "set the gate's policy of the host's floor" in host_home.ok("log", "set")
    host_home.ok("run", "-d", "--name", "later", "--label", "blue", "--", "cat")
    began = journal(host_home, "later", "gate_policy_set")
    assert [each["scope"] for each in began] == ["label:blue", "host"], "those that apply to it"
    for words in (("--session", "set"), ("--label", "blue"), ("--floor",)):
        assert "no longer in force" in host_home.ok("policy", "off", *words)
        host_home.fails("invalid_argument", "policy", "off", *words)
    assert policies(host_home) == []
    assert [each["digest"] for each in journal(host_home, "set", "gate_policy_set")[3:]] == [""] * 3


def test_a_bad_policy_is_refused_with_its_line_and_the_old_one_stays(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "bad", "--", "cat")
    host_home.ok("policy", "set", "starter:agents-observe", "--session", "bad")
    before = policies(host_home, "bad")
    wrong = file(host_home, "wrong.cedar", "permit(principal, action, resource);\n\nforbid(x);\n")
    assert "line 3: " in host_home.fails(
        "policy_invalid", "policy", "set", wrong, "--session", "bad"
    )
    host_home.fails("policy_invalid", "policy", "check", wrong)
    host_home.fails("policy_invalid", "policy", "set", "starter:nothing", "--session", "bad")
    host_home.fails("invalid_argument", "policy", "set", "/nowhere/x.toml")
    host_home.fails("invalid_argument", "policy", "set", wrong, "terraform apply")
    host_home.fails("invalid_argument", "policy", "set", wrong, "--floor", "--session", "bad")
    host_home.fails(
        "no_such_session", "policy", "set", "starter:agents-observe", "--session", "x-x"
    )
    assert policies(host_home, "bad") == before
    host_home.ok("policy", "off", "--session", "bad")


@pytest.mark.parametrize(
    "words",
    [("starter:two-person", "sh x*"), ("starter:two-person sh x*",), ("starter:two-person:sh x*",)],
)
def test_a_starter_takes_its_pattern_as_a_word_of_its_own_too(
    host_home: Hold, words: tuple[str, ...]
) -> None:
    lines = ("policy", "check", *words, "--kind", "human", "--json")
    checked = json.loads(host_home.ok(*lines, stdin=b"sh x --now\nsh y\n"))
    assert (checked["held"], checked["judged"]) == (1, 2)


def test_only_who_may_grant_in_a_scope_sets_its_policy(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "whose", "--label", "green", "--", "cat")
    for words in (("--session", "whose"), ("--label", "green"), (), ("--floor",)):
        set_it = ("policy", "set", "starter:agents-observe", *words)
        host_home.fails("not_permitted", "--as", "bot", *set_it)
        host_home.ok("--as", "boss", *set_it)
        host_home.fails("not_permitted", "--as", "bot", "policy", "off", *words)
        host_home.ok("--as", "boss", "policy", "off", *words)


# -- trying -------------------------------------------------------------------------------------


def test_check_judges_the_past_of_a_session_and_lines_that_are_given(host_home: Hold) -> None:
    host_home.shell("past")
    host_home.ok("exec", "past", "--", "true")
    host_home.ok("--as", "bot", "exec", "past", "--", "rm -f nothing-here")
    host_home.ok("exec", "past", "--", "rm -f nothing-there")
    checked = host_home.json("policy", "check", "starter:hold-destructive", "--session", "past")
    assert (checked["judged"], checked["held"], checked["refused"]) == (3, 1, 0)
    (found,) = checked["findings"]
    assert found.keys() == set(JudgedLine._fields)
    assert (found["text"], found["outcome"], found["actors"]) == (
        "rm -f nothing-here", "hold", ["bot"],
    )  # fmt: skip
    assert found["policy"] == "hold-destructive"
    rules = file(host_home, "past.toml", REFUSES_RM)
    both = host_home.json("policy", "check", rules, "--session", "past")
    assert both["refused"] == 2 and all("no rm here" in each["reason"] for each in both["findings"])
    lines = b"ls\nrm -rf x\nbash -c 'rm y'\n$z\n"
    said = host_home.ok("policy", "check", "starter:hold-destructive", stdin=lines)
    assert "4 lines: 0 refused, 3 held, 1 allowed" in said
    human = ("policy", "check", "starter:hold-destructive", "--kind", "human", "--json")
    assert json.loads(host_home.ok(*human, stdin=lines))["held"] == 0
    assert policies(host_home) == [], "nothing was put in force"


def test_explain_says_who_had_a_part_which_facts_and_which_rule(host_home: Hold) -> None:
    host_home.shell("why")
    host_home.ok("--as", "bot", "exec", "why", "--", "rm -rf /nowhere/x")
    (began,) = journal(host_home, "why", "command_began")
    host_home.ok("policy", "set", "starter:agents-in-workspace", "--session", "why")
    found = host_home.json("policy", "explain", "why", str(began["seq"]))
    assert found.keys() == set(Explanation._fields)
    assert (found["outcome"], found["policy"]) == ("refuse", "session:agents-in-workspace")
    assert [(each["name"], each["part"]) for each in found["contributors"]] == [("bot", "trigger")]
    assert found["facts"]["destructive"] == ["rm-recursive"]
    assert found["facts"]["writes_outside"] == ["/nowhere/x"]
    sheet = host_home.ok("policy", "explain", "why", str(began["seq"]))
    assert "rm -rf /nowhere/x" in sheet and "bot, agent: trigger" in sheet
    host_home.fails("invalid_argument", "policy", "explain", "why", "1")
    host_home.fails("invalid_argument", "policy", "explain", "why", "99999")
    host_home.fails("invalid_argument", "policy", "explain", "why", "x")
    host_home("--as", "bot", "exec", "why", "--", "touch /nowhere/x")
    refused = journal(host_home, "why", "judged")[-1]
    again = host_home.json("policy", "explain", "why", str(refused["seq"]))
    assert (again["text"], again["recorded"]) == ("touch /nowhere/x", "refuse")
    assert again["recorded_policy"] == again["policy"] == "session:agents-in-workspace"
    assert {each["name"] for each in again["contributors"]} == {"bot"}
    host_home.ok("policy", "off", "--session", "why")


# -- the workspace ------------------------------------------------------------------------------


def test_a_session_has_a_workspace_the_directory_it_was_started_in_or_another(
    host_home: Hold, tmp_path: Path
) -> None:
    host_home.ok("run", "-d", "--name", "own", "--cwd", str(tmp_path), "--", "cat")
    assert host_home.json("show", "own")["workspace"] == str(tmp_path)
    host_home.ok("run", "-d", "--name", "given", "--workspace", f"{tmp_path}/../x", "--", "cat")
    assert host_home.json("show", "given")["workspace"] == str(tmp_path.parent / "x")
    assert f"workspace {tmp_path}" in host_home.ok("show", "own")


# -- disk and daemon ----------------------------------------------------------------------------


def killed(hold: Hold) -> None:
    """The daemon is killed, and the next one answers."""
    before = hold.json("doctor")["daemon_pid"]
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while hold.json("doctor")["daemon_pid"] == before:
        assert time.monotonic() < deadline, "no next daemon"


@pytest.mark.requirement("A8")
def test_a_policy_survives_a_killed_daemon_and_a_damaged_one_refuses(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    fresh_home.ok("run", "-d", "--name", "kept", "--", "cat")
    fresh_home.ok("policy", "set", "starter:agents-observe", "--session", "kept")
    kept = Path(fresh_home.home, "gate.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    before = policies(fresh_home)
    killed(fresh_home)
    assert policies(fresh_home) == before
    kept.write_text("{")
    assert policies(fresh_home) == before, "in force from memory"
    doctor = fresh_home("doctor").stdout
    assert "gate: " in doctor and "stay in force" in doctor
    killed(fresh_home)
    assert "everything gated is refused" in fresh_home.ok("policy")
    assert fresh_home.json("policy")["damaged"]
    assert "everything that a policy would be asked for is refused" in fresh_home("doctor").stdout
    observe = ("policy", "set", "starter:agents-observe")
    fresh_home.fails("storage_failed", *observe, "--session", "kept")
    fresh_home.ok(*observe)
    assert fresh_home.json("policy")["damaged"] == "" and kept.with_suffix(".json.damaged").exists()
