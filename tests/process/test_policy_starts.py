"""A session is judged before it is started: by the policies that would apply to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.gate.judged_entry import judged_entry
from holdfast.model.errors import GateRefused
from holdfast.model.gate import ALLOWED, EffectKind
from process.acting import add_actor, connected
from process.commanding import Hold
from process.sdking import reached, run
from unit.gating import effect, part

FLOOR = ("--floor",)
BY_LABEL = ("--label", "guarded")


@pytest.fixture(scope="module", autouse=True)
def actors(host_home: Hold) -> None:
    """An agent that may start sessions, and one that may also grant."""
    add_actor(host_home, "bot", "execute", "--all")
    add_actor(host_home, "boss", "admin", "--all")


@contextmanager
def policy(hold: Hold, source: str, *scope: str) -> Iterator[None]:
    hold.ok("policy", "set", source, *scope)
    try:
        yield
    finally:
        hold.ok("policy", "off", *scope)


def journal(hold: Hold, session: str) -> list[dict[str, Any]]:
    """What the session's journal says, without its seals."""
    found = [json.loads(line) for line in hold.ok("log", session, "--json").splitlines()]
    return [each for each in found if each["kind"] != "sealed"]


def not_started(hold: Hold, name: str) -> None:
    assert name not in {each["name"] for each in hold.json("ls")}


# -- refused ------------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("scope", [(), FLOOR, BY_LABEL], ids=["host", "floor", "label"])
def test_what_an_agent_may_not_enter_it_may_not_start_either(
    host_home: Hold, tmp_path: Path, scope: tuple[str, ...]
) -> None:
    (tmp_path / "kept").write_text("")
    destroys = ("--", "sh", "-c", f"rm -rf {tmp_path}/kept")
    label = scope if scope == BY_LABEL else ()
    with policy(host_home, "starter:hold-destructive", *scope):
        said = host_home.fails(
            "gate_refused", "--as", "bot", "run", "-d", "--name", "bad", *label, *destroys
        )
        assert "cannot wait for approval" in said and "an agent had a part in it" in said
        not_started(host_home, "bad")
        assert (tmp_path / "kept").exists()
        log = Path(host_home.home, "host.log").read_text()
        assert "did not get to start sh -c 'rm -rf" in log
        host_home.ok("run", "-d", "--name", "human", *label, *destroys)  # a person may


def test_what_a_shell_runs_by_itself_is_judged_as_well(host_home: Hold) -> None:
    with policy(host_home, "starter:hold-destructive"), connected(host_home, "bot") as host:
        for name, value in (("PROMPT_COMMAND", "rm -rf /x"), ("PS1", "$(rm -rf /x)$ ")):
            with pytest.raises(GateRefused):
                host.run(["bash", "--norc"], name="prompts", env={name: value})
        not_started(host_home, "prompts")


def test_a_refusal_names_the_rule_and_a_label_left_out_leaves_the_floor(host_home: Hold) -> None:
    with policy(host_home, "starter:agents-observe", *FLOOR):
        said = host_home.fails("gate_refused", "--as", "bot", "run", "-d", "--name", "seen")
        assert "agents may look here" in said
    with policy(host_home, "starter:agents-observe", *BY_LABEL):
        host_home.ok("--as", "bot", "run", "-d", "--name", "elsewhere", "--", "cat")
        host_home.fails(
            "gate_refused", "--as", "bot", "run", "-d", "--name", "here", *BY_LABEL, "--", "cat"
        )
    host_home.ok("end", "elsewhere")


def test_a_program_that_asks_is_refused_too(host_home: Hold) -> None:
    async def work() -> None:
        async with reached(host_home, "bot") as agent:
            with pytest.raises(GateRefused):
                await agent.run(["sh", "-c", "rm -rf /x"], name="asked")
            session = await agent.run(["bash", "--norc"], name="harmless")
            assert session.name == "harmless"

    with policy(host_home, "starter:hold-destructive"):
        run(work())
        not_started(host_home, "asked")
    host_home.ok("end", "harmless")


# -- allowed ------------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_what_may_start_has_the_decision_in_its_journal_before_anything_runs(
    host_home: Hold,
) -> None:
    with policy(host_home, "starter:hold-destructive"):
        host_home.ok("--as", "bot", "run", "-d", "--name", "good", "--", "sh", "-c", "sleep 1000")
        entries = journal(host_home, "good")
        assert [each["kind"] for each in entries][:3] == ["began", "gate_policy_set", "judged"]
        said = entries[2]["body"]
        assert (said["kind"], said["outcome"]) == ("exec", "allow")
        assert said["argv"] == ["sh", "-c", "sleep 1000"] and said["path"].startswith("/")
        assert [each["name"] for each in said["contributors"]] == ["bot"]
        assert [each["kind"] for each in entries].count("gate_policy_set") == 1
        seq = str(entries[2]["seq"])
        again = host_home.json("policy", "explain", "good", seq)
        assert (
            again["facts"]["commands"] == ["dash", "sh", "sleep"]
            or "sleep" in (again["facts"]["commands"])
        )
        assert (again["outcome"], again["recorded"]) == ("allow", "allow")
    host_home.ok("end", "good")


def test_without_a_policy_nothing_is_judged(host_home: Hold) -> None:
    host_home.ok("--as", "bot", "run", "-d", "--name", "free", "--gate", "off", "--", "cat")
    assert "judged" not in {each["kind"] for each in journal(host_home, "free")}
    host_home.ok("end", "free")


# -- out of a policy's reach --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [("--gate", "off"), ("--workspace", "/"), ("--workspace", "/etc")],
    ids=["no exec gate", "a wide workspace", "another workspace"],
)
def test_only_who_may_grant_there_starts_what_a_policy_does_not_reach(
    host_home: Hold, tmp_path: Path, words: tuple[str, ...]
) -> None:
    start = ("run", "-d", "--name", "out", "--cwd", str(tmp_path), *words, "--", "cat")
    with policy(host_home, "starter:agents-in-workspace"):
        assert "right to grant" in host_home.fails("not_permitted", "--as", "bot", *start)
        not_started(host_home, "out")
        host_home.ok("--as", "boss", *start)
    host_home.ok("end", "out")


def test_a_workspace_in_the_working_directory_is_anybodys(host_home: Hold, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("/")
    start = ("--as", "bot", "run", "-d", "--name", "sub", "--cwd", str(tmp_path), "--workspace")
    with policy(host_home, "starter:agents-in-workspace"):
        host_home.fails("not_permitted", *start, f"{tmp_path}/link", "--", "cat")
        host_home.ok(*start, f"{tmp_path}/sub", "--", "cat")
    host_home.ok("end", "sub")


def test_the_journal_keeps_the_first_arguments_of_a_program() -> None:
    proposed = effect("", part("bot")).replace(
        kind=EffectKind.EXEC, argv=("cc", "x" * 5000, "y"), path="/bin/cc", cwd="/tmp"
    )
    entry = judged_entry(proposed, ALLOWED)
    assert (entry.argv, entry.path, entry.cwd) == (("cc",), "/bin/cc", "/tmp")
    assert len(entry.text) == 500
