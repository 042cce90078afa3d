"""`hold why` and `hold adopt`: who is behind what a shell holds, runs and printed, with two actors,
in each shell, and through the death of the daemon. At level plain, as any user."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from holdfast import blocking, connect
from process.commanding import HOLD, PATIENCE_S, Hold
from process.recorded import add_actor, log

SHELLS = ("bash", "zsh", "fish")
START = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish",)}


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    with Hold() as hold:
        hold.ok("up", "-d")
        add_actor(hold, "bot")
        yield hold


def lab(hold: Hold, name: str, kind: str = "bash") -> str:
    """A shell at its prompt; gives its name."""
    hold.ok("run", "-d", "--name", name, "--level", "plain", "--", *START[kind])
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    return name


def _own(hold: Hold) -> str:
    return str(next(each["name"] for each in hold.json("actor", "ls") if each["local"]))


def by(hold: Hold, actor: str, session: str, line: str) -> str:
    """What a command line printed that this actor ran."""
    return hold(*(("--as", actor) if actor else ()), "exec", session, "--", line).stdout


def why(hold: Hold, session: str, target: str) -> dict[str, Any]:
    found: dict[str, Any] = hold.json("why", session, target)
    return found


def kill_daemon(hold: Hold) -> None:
    """And the next one serves."""
    before = hold.json("doctor")["daemon_pid"]
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while hold.json("doctor")["daemon_pid"] == before:
        assert time.monotonic() < deadline


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("kind", SHELLS)
def test_every_piece_of_a_shells_state_has_the_actor_that_set_it(hold: Hold, kind: str) -> None:
    session, own, fish = lab(hold, f"all-{kind}", kind), _own(hold), kind == "fish"
    by(hold, "bot", session, "set PLAIN bot" if fish else "PLAIN=bot")
    by(hold, "bot", session, "set -gx SHARED bot" if fish else "export SHARED=bot")
    by(hold, "", session, "function greet; echo x; end" if fish else "greet() { echo x; }")
    by(hold, "bot", session, "alias ll='ls -l'")
    by(hold, "", session, "cd /usr")
    path = "set -gx PATH /opt/theirs $PATH" if fish else "export PATH=/opt/theirs:$PATH"
    by(hold, "bot", session, path)
    expected = {
        "var:PLAIN": ("bot", 1),
        "var:SHARED": ("bot", 2),
        "func:greet": (own, 3),
        "func:ll" if fish else "alias:ll": ("bot", 4),
        "cwd": (own, 5),
        "var:PATH": ("bot", 6),
        "path:/opt/theirs": ("bot", 6),
    }
    for target, (actor, number) in expected.items():
        found = why(hold, session, target)
        assert (found["originators"], found["trigger"]) == ([actor], actor), found
        assert [link["number"] for link in found["chain"]] == [number], found
        assert found["chain"][0]["what"] == f"set {target}" and found["known"]
        assert found["chain"][0]["authors"] == [actor]
    untouched = why(hold, session, "var:HOME")
    assert untouched["known"] and untouched["originators"] == [] and untouched["chain"] == []
    assert "as the session began" in untouched["note"]
    hold.ok("end", session)


def test_options_traps_hash_entries_and_jobs_too(hold: Hold) -> None:
    session = lab(hold, "rest")
    by(hold, "bot", session, "trap 'echo trapped' USR1")
    by(hold, "", session, "set -o noclobber")
    by(hold, "bot", session, "hash -p /usr/bin/id uname")
    by(hold, "bot", session, "umask 027")
    by(hold, "bot", session, "sleep 300 &")
    job = by(hold, "", session, "jobs -p").strip().split()[-1]
    for target in ("trap:USR1", "hash:uname", "umask", f"job:{job}"):
        assert why(hold, session, target)["originators"][0] == "bot", target
    noclobber = why(hold, session, "option:noclobber")
    assert noclobber["originators"] == [_own(hold), "bot"]  # whose trap might have run there
    hold.ok("end", session)


def test_a_program_remembered_where_path_finds_it_is_paths_and_not_whose_first_ran_it(
    hold: Hold,
) -> None:
    session = lab(hold, "inherited")
    by(hold, "bot", session, "uname >/dev/null")
    assert why(hold, session, "hash:uname")["originators"] == []
    hold.ok("end", session)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("kind", SHELLS)
def test_what_a_command_used_makes_others_originators_too(hold: Hold, kind: str) -> None:
    session, own = lab(hold, f"chain-{kind}", kind), _own(hold)
    by(hold, "bot", session, "set DIR /usr/lib" if kind == "fish" else "DIR=/usr/lib")
    by(hold, "", session, "cd $DIR")
    found = why(hold, session, "cwd")
    assert found["originators"] == [own, "bot"] and found["trigger"] == own
    assert [(link["number"], link["what"]) for link in found["chain"]] == [
        (2, "set cwd"),
        (1, "set var:DIR, which command 2 used"),
    ]
    command = why(hold, session, "command:2")
    assert command["originators"] == [own, "bot"]
    text = hold.ok("why", session, "cwd")
    assert text.startswith(f"cwd: {own}, bot\n") and "#2" in text and "#1" in text
    hold.ok("end", session)


def test_a_state_that_is_what_it_was_at_the_start_is_nobodys(hold: Hold) -> None:
    session = lab(hold, "undone")
    by(hold, "bot", session, "alias df='echo no'; HOME_WAS=$HOME; HOME=/tmp")
    assert why(hold, session, "alias:df")["originators"] == ["bot"]
    by(hold, "bot", session, "unalias df; HOME=$HOME_WAS")
    assert why(hold, session, "alias:df")["originators"] == []
    assert why(hold, session, "var:HOME")["originators"] == []
    by(hold, "bot", session, "unset USER")
    gone = why(hold, session, "var:USER")
    assert gone["originators"] == ["bot"]
    hold.ok("end", session)


def test_a_line_of_the_scrollback_leads_to_its_command_and_so_does_blame(hold: Hold) -> None:
    session, own = lab(hold, "lines"), _own(hold)
    by(hold, "bot", session, "WORD=hello")
    by(hold, "", session, "echo $WORD")
    lines = [json.loads(line) for line in hold.ok("blame", session, "--json").splitlines()]
    printed = next(line for line in lines if line["text"] == "hello")
    assert (printed["trigger"], printed["originators"]) == (own, [own, "bot"])
    found = why(hold, session, f"line:{printed['number']}")
    assert found["originators"] == [own, "bot"]
    assert found["chain"][0]["what"] == f"printed line {printed['number']}"
    hold.ok("end", session)


def test_a_process_and_a_port_lead_to_their_command_by_the_process_tree(hold: Hold) -> None:
    session, own = lab(hold, "served"), _own(hold)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    by(hold, "", session, "true")
    serve = f"import socket,time; s=socket.create_server(('127.0.0.1',{port})); time.sleep(300)"
    by(hold, "bot", session, f'python3 -c "{serve}" &')
    deadline = time.monotonic() + PATIENCE_S
    while hold("why", session, f"port:{port}").returncode:  # nothing listens there yet
        assert time.monotonic() < deadline
    by(hold, "", session, "sleep 299 &")
    found = why(hold, session, f"port:{port}")
    assert (found["originators"], found["chain"][0]["number"]) == (["bot"], 2), found
    assert "level plain" in found["note"]
    processes = hold.json("graph", session)["processes"]
    server = next(each for each in processes if each["name"].startswith("python"))
    sleeper = next(each for each in processes if each["argv"] == ["sleep", "299"])
    assert (server["originators"], server["trigger"], server["command"]) == (["bot"], "bot", 2)
    assert (sleeper["originators"], sleeper["command"]) == ([own], 3)
    assert why(hold, session, f"pid:{server['pid']}")["originators"] == ["bot"]
    assert why(hold, session, f"pid:{sleeper['pid']}")["originators"] == [own]
    assert "#2 bot" in hold.ok("graph", session)
    shell = next(each for each in processes if each["name"] == "bash")
    assert why(hold, session, f"pid:{shell['pid']}")["originators"] == []
    hold.ok("end", session)


def test_whoever_types_into_a_running_program_is_behind_what_it_leaves(hold: Hold) -> None:
    session, own = lab(hold, "typed-into"), _own(hold)
    hold.ok("send", "--enter", session, "read -r ANSWER")
    hold.ok("wait", session, "--for", "input", "--timeout", "20")
    hold.ok("--as", "bot", "send", "--enter", session, "from bot")
    hold.ok("wait", session, "--for", "prompt", "--timeout", "20")
    assert why(hold, session, "var:ANSWER")["originators"] == [own, "bot"]
    hold.ok("end", session)


def test_a_file_at_level_plain_is_not_known_and_says_so(hold: Hold, tmp_path: Path) -> None:
    session = lab(hold, "files")
    written = tmp_path / "written"
    by(hold, "bot", session, f"echo x > {written}")
    found = why(hold, session, f"file:{written}")
    assert not found["known"] and found["originators"] == []
    assert "level plain" in found["note"]
    hold.fails("invalid_argument", "why", session, f"file:{tmp_path}/none")
    hold.ok("end", session)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize("kind", SHELLS)
def test_a_killed_daemon_forgets_nobody(hold: Hold, kind: str) -> None:
    session, own = lab(hold, f"killed-{kind}", kind), _own(hold)
    by(hold, "bot", session, "set DIR /usr" if kind == "fish" else "DIR=/usr")
    kill_daemon(hold)
    by(hold, "", session, "cd $DIR")
    kill_daemon(hold)
    assert why(hold, session, "cwd")["originators"] == [own, "bot"]
    assert [link["number"] for link in why(hold, session, "cwd")["chain"]] == [2, 1]
    assert why(hold, session, "var:DIR")["originators"] == ["bot"]
    assert why(hold, session, "var:HOME")["known"]
    hold.ok("end", session)


def test_what_a_command_changes_while_no_daemon_runs_is_its_actors(hold: Hold) -> None:
    session = lab(hold, "meanwhile")
    hold.ok("--as", "bot", "send", "--enter", session, "read -r GO; LATE=1")
    hold.ok("wait", session, "--for", "input", "--timeout", "20")
    kill_daemon(hold)
    hold.ok("--as", "bot", "send", "--enter", session, "go")
    hold.ok("wait", session, "--for", "prompt", "--timeout", "20")
    found = why(hold, session, "var:LATE")
    assert (found["known"], found["originators"]) == (True, ["bot"]), found
    hold.ok("end", session)


def test_a_book_that_is_gone_counts_as_shaped_by_everybody_that_wrote(hold: Hold) -> None:
    session, own = lab(hold, "bookless"), _own(hold)
    by(hold, "bot", session, "DIR=/usr")
    by(hold, "", session, "true")
    (book,) = Path(hold.home, "sessions").glob(f"{hold.json('show', session)['id']}/provenance")
    book.unlink()
    kill_daemon(hold)
    found = why(hold, session, "var:DIR")
    assert not found["known"] and set(found["originators"]) == {own, "bot"}
    by(hold, "", session, "true")
    by(hold, "", session, "NEW=1")
    new = why(hold, session, "var:NEW")  # the line that set it may have used what nobody saw
    assert (new["known"], new["originators"]) == (True, [own, "bot"])
    hold.ok("end", session)


def test_a_shell_whose_hooks_are_gone_counts_as_shaped_by_its_last_writers(hold: Hold) -> None:
    session = lab(hold, "unhooked")
    assert hold.json("show", session)["shaped_by"] == []
    hold.ok("--as", "bot", "send", "--enter", session, "PROMPT_COMMAND=()")
    deadline = time.monotonic() + PATIENCE_S
    while not (shaped := hold.json("show", session)["shaped_by"]):
        assert time.monotonic() < deadline
    assert shaped == ["bot"]
    assert "counts as shaped by bot" in hold.ok("show", session)
    found = why(hold, session, "var:HOME")
    assert not found["known"] and found["originators"] == ["bot"]
    hold.ok("end", session)


def test_one_that_hides_its_change_from_the_hooks_is_behind_it_when_they_are_back(
    hold: Hold,
) -> None:
    session = lab(hold, "hidden")
    by(hold, "bot", session, 'KEPT=("${PROMPT_COMMAND[@]}")')
    hold.ok("--as", "bot", "send", "--enter", session, "PROMPT_COMMAND=()")
    hold.ok("--as", "bot", "send", "--enter", session, "HIDDEN=1")
    hold.ok("seize", session)
    hold.ok("send", "--enter", session, 'PROMPT_COMMAND=("${KEPT[@]}")')
    deadline = time.monotonic() + PATIENCE_S
    # Nobody, while the line runs that puts them back: the shell has told nothing of it yet.
    while not (found := why(hold, session, "var:HIDDEN"))["originators"]:
        assert time.monotonic() < deadline, found
    assert "bot" in found["originators"] and found["known"]
    hold.ok("end", session)


def test_adopting_makes_the_asker_the_originator_and_is_recorded(hold: Hold) -> None:
    session, own = lab(hold, "adopted"), _own(hold)
    by(hold, "bot", session, "DIR=/usr; alias ll='ls -l'")
    by(hold, "bot", session, "sleep 298 &")
    found = hold.json("adopt", session, "var:DIR")
    assert (found["originators"], found["adopted"]) == ([own], True)
    assert why(hold, session, "alias:ll")["originators"] == ["bot"]
    by(hold, "", session, "cd $DIR")
    assert why(hold, session, "cwd")["originators"] == [own]
    pid = next(
        each["pid"]
        for each in hold.json("graph", session)["processes"]
        if each["argv"] == ["sleep", "298"]
    )
    assert why(hold, session, f"pid:{pid}")["originators"] == ["bot"]
    hold.ok("adopt", session, f"pid:{pid}")
    assert why(hold, session, f"pid:{pid}")["originators"] == [own]
    entries = log(hold, session, "--kind", "adopted")
    assert [each["body"]["target"] for each in entries] == ["var:DIR", "command:2"]
    assert [each["actor_name"] for each in entries] == [own, own]
    kill_daemon(hold)
    assert why(hold, session, "var:DIR")["originators"] == [own]
    assert why(hold, session, f"pid:{pid}")["originators"] == [own]
    hold.ok("end", session)


def test_adopting_needs_the_right_to_write_there(hold: Hold) -> None:
    session = lab(hold, "refused")
    by(hold, "bot", session, "DIR=/usr")
    hold.ok("actor", "add", "looker")
    hold.ok("grant", "looker", "observe", session)
    hold.fails("not_permitted", "--as", "looker", "adopt", session, "var:DIR")
    assert hold("--as", "looker", "why", session, "var:DIR").returncode == 0
    assert why(hold, session, "var:DIR")["originators"] == ["bot"]
    hold.ok("end", session)


@pytest.mark.requirement("A7")
def test_the_journal_tells_trigger_and_originators_of_every_command_and_change(hold: Hold) -> None:
    session, own = lab(hold, "logged"), _own(hold)
    by(hold, "bot", session, "DIR=/usr")
    by(hold, "", session, "cd $DIR")
    began = log(hold, session, "--kind", "command_began")
    assert [(each["trigger"], each["originators"]) for each in began] == [
        ("bot", ["bot"]),
        (own, [own, "bot"]),
    ]
    assert began[1]["body"]["uses"] == ["var:DIR@1"]
    shaped = log(hold, session, "--kind", "shaped")
    assert [(each["body"]["number"], each["body"]["keys"]) for each in shaped] == [
        (1, ["var:DIR"]),
        (2, ["cwd", "var:OLDPWD"]),
    ]
    assert shaped[1]["originators"] == [own, "bot"]
    assert "command 2 changed cwd, var:OLDPWD  [behind it:" in hold.ok("log", session)
    hold.ok("end", session)


@pytest.mark.parametrize("kind", ["bash", "zsh"])
def test_a_descriptor_that_the_shell_opens_for_itself_is_no_change(hold: Hold, kind: str) -> None:
    """While it makes its prompt it reads from a pipe, and has reported that prompt already."""
    session = lab(hold, f"passing-{kind}", kind)
    by(hold, "bot", session, "setopt promptsubst" if kind == "zsh" else "true")
    by(hold, "bot", session, "PS1='$(sleep 0.4)> '")
    by(hold, "bot", session, "DIR=/usr")
    by(hold, "bot", session, "exec 5</dev/null")
    by(hold, "bot", session, "true")
    shaped = log(hold, session, "--kind", "shaped")
    assert [each["body"]["keys"] for each in shaped][-3:] == [["var:PS1"], ["var:DIR"], ["fd:5"]]
    assert why(hold, session, "var:DIR")["originators"] == ["bot"]
    hold.ok("end", session)


def test_programs_ask_and_adopt_too(hold: Hold) -> None:
    session, own = lab(hold, "sdk"), _own(hold)
    by(hold, "bot", session, "DIR=/usr")
    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}), blocking.connect() as host:
        handle = host.session(session)
        found = handle.why("var:DIR")
        assert (found.originators, found.chain[0].text) == (("bot",), "DIR=/usr")
        assert handle.adopt("var:DIR").originators == (own,)

    async def asked() -> tuple[str, ...]:
        async with connect() as host:
            return (await (await host.session(session)).why("var:DIR")).originators

    with mock.patch.dict(os.environ, {"HOLDFAST_HOME": hold.home}):
        assert asyncio.run(asked()) == (own,)
    hold.ok("end", session)


def test_a_program_inside_a_plain_session_adopts_nothing_for_anybody(hold: Hold) -> None:
    session = lab(hold, "inside")
    by(hold, "bot", session, "DIR=/usr")
    said = by(hold, "bot", session, f"{HOLD} adopt {session} var:DIR 2>&1")
    assert "not_permitted" in said and why(hold, session, "var:DIR")["originators"] == ["bot"]
    hold.ok("end", session)


@pytest.mark.parametrize("target", ("", "var", "var:", "pid:x", "line:-1", "nothing:1", "pid:"))
def test_what_is_no_target_is_refused(hold: Hold, target: str) -> None:
    session = "targets"
    if hold("show", session).returncode != 0:
        lab(hold, session)
    hold.fails("invalid_argument", "why", session, target)


@pytest.mark.parametrize("target", ("pid:1", "port:1", "line:99999", "command:99"))
def test_what_is_not_in_the_session_is_refused(hold: Hold, target: str) -> None:
    session = "targets"
    if hold("show", session).returncode != 0:
        lab(hold, session)
    hold.fails("invalid_argument", "why", session, target)


def test_a_session_without_a_reporting_shell_has_no_state_to_ask_about(hold: Hold) -> None:
    hold.ok("run", "-d", "--name", "bare", "--level", "plain", "--", "sleep", "300")
    hold.fails("invalid_argument", "why", "bare", "var:HOME")
    hold.ok("end", "bare")
