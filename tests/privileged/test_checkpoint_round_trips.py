"""Programs with a state that can be hashed: the hash that they had before a checkpoint they have
after the restore, and they go on from there. More programs are in test_checkpoint_programs.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from privileged.checkpointing import (
    program,
    put_to_sleep,
    restored,
    said,
    skip_unless_possible,
    started,
    there_and_back,
    until_screen,
)
from process.acting import add_actor
from process.commanding import Hold
from process.terminals import Terminal
from process.waiting import until

# What a shell holds that a person has put there, with the pids of its jobs.
BASH_STATE = (
    "{ declare -p kept list map; declare -f greet; alias; set +o; trap -p; umask; pwd; dirs; "
    "jobs -l; ulimit -a; env | sort; } 2>&1 | sha256sum"
)
ZSH_STATE = (
    "{ typeset -p kept list map; functions greet; alias; setopt; trap; umask; pwd; dirs; jobs -l; "
    "env -u PS1 | sort } 2>&1 | sha256sum"  # the shell integration numbers prompts there
)

NODE = """
const http = require('http'), crypto = require('crypto')
const heap = Buffer.alloc(8 << 20, 'seed'), known = new Map([['ten', 10]])
let asked = 0
const server = http.createServer((_, answer) => answer.end(`asked ${++asked}`))
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
const ask = () => new Promise((done) =>
  http.get({ port: server.address().port, host: '127.0.0.1', agent }, (answer) =>
    answer.on('data', (data) => done(`${data}, port ${answer.socket.localPort}`))))
const hash = () => crypto.createHash('sha256').update(heap).update(JSON.stringify([...known]))
server.listen(0, '127.0.0.1', async () => console.log('ready', await ask()))
setInterval(() => known.set('ticks', 1), 20)
process.stdin.on('data', async () => console.log(hash().digest('hex').slice(0, 16), await ask()))
"""


@pytest.fixture(scope="module", autouse=True)
def _possible() -> None:
    skip_unless_possible()


@pytest.fixture(scope="module")
def hold(_possible: None) -> Iterator[Hold]:
    hold = Hold()
    try:
        hold.ok("up", "-d")
        yield hold
    finally:
        hold.close()


@pytest.mark.requirement("M2")
def test_a_shell_has_the_same_state_through_twenty_generations(hold: Hold) -> None:
    """With a person attached throughout, who sees pauses and no end."""
    session = started(hold, "generations")
    said(hold, "generations", "kept=42; list=(1 'two 3'); declare -A map=([a]=b); cd /var/tmp")
    said(hold, "generations", 'greet() { echo "hello $1"; }; alias ll="ls -l"; set -o noclobber')
    said(hold, "generations", "trap 'echo caught' USR1; umask 027; sleep 3000 & sleep 3001 &")
    said(hold, "generations", "kill -STOP %1")
    before = said(hold, "generations", BASH_STATE)
    terminal = Terminal(hold, "attach", "generations")
    try:
        terminal.until_shown("attached to")
        terminal.type(b"echo hal")
        terminal.until_shown("echo hal")
        for generation in range(1, 21):
            back = there_and_back(hold, "generations")
            assert (back["id"], back["epoch"]) == (session, generation + 1)
        hold.attached("generations")
        terminal.type(b"f-way\r")
        terminal.until_true(lambda text: re.search(r"(?m)^half-way *$", text) is not None)
    finally:
        terminal.close()
    assert said(hold, "generations", BASH_STATE) == before
    assert "caught" in said(hold, "generations", "kill -USR1 $$; greet you")
    assert hold.json("verify", session)["verdict"] == "intact"


def test_zsh(hold: Hold) -> None:
    started(hold, "zsh", program("zsh"), "-f")
    said(hold, "zsh", "kept=42; list=(1 'two 3'); typeset -A map=(a b); cd /var/tmp")
    said(hold, "zsh", 'greet() { echo "hello $1"; }; alias ll="ls -l"; setopt noclobber')
    said(hold, "zsh", "umask 027; sleep 3000 & sleep 3001 &")
    before = said(hold, "zsh", ZSH_STATE)
    hold.ok("keys", "zsh", *"echo ha")
    shown = until_screen(hold, "zsh", r"echo ha$")
    there_and_back(hold, "zsh")
    assert hold.ok("screen", "zsh") == shown
    hold.ok("keys", "zsh", "l", "f", "Enter")
    until_screen(hold, "zsh", r"(?m)^half$")
    assert said(hold, "zsh", ZSH_STATE) == before
    assert said(hold, "zsh", "greet you; echo $list[2]") == "hello you\ntwo 3"


@pytest.mark.requirement("M3")
def test_a_server_in_node_and_its_client(hold: Hold) -> None:
    """The connection between them is the same one: its port is."""
    started(hold, "node", program("node"), "-e", NODE, prompt=False)
    until_screen(hold, "node", "ready asked 1")
    hold.ok("keys", "node", "Enter")
    first = re.search(r"([0-9a-f]{16}) asked 2, (port \d+)", until_screen(hold, "node", "asked 2"))
    assert first is not None
    for number in (3, 4):
        assert there_and_back(hold, "node")["restore"]["reset"] == []
        hold.ok("keys", "node", "Enter")
        until_screen(hold, "node", f"{first[1]} asked {number}, {first[2]}")


def test_a_multiplexer_inside(hold: Hold, tmp_path: Path) -> None:
    """Two panes, of which each has a terminal and a shell with a state of its own."""
    tmux = f"{program('tmux')} -S {tmp_path}/socket -f /dev/null"
    started(hold, "tmux", "sh", "-c", f"exec {tmux} new 'bash --norc'", prompt=False)
    until_screen(hold, "tmux", r"(?m)^bash\S*[#$]")
    hold.ok("keys", "tmux", *"x=upper; sleep 3000 &", "Enter")
    until_screen(hold, "tmux", r"\[1\] \d+")
    hold.ok("keys", "tmux", "C-b", '"')  # another pane, below
    until_screen(hold, "tmux", r"(?s)\[1\].*─.*[#$]")
    hold.ok("keys", "tmux", *"exec bash --norc", "Enter", *"x=lower; echo $x-$x", "Enter")
    until_screen(hold, "tmux", "lower-lower")
    before = hold.ok("screen", "tmux")
    for _ in range(2):
        there_and_back(hold, "tmux")
        assert unclocked(hold.ok("screen", "tmux")) == unclocked(before)
    hold.ok("keys", "tmux", *"echo $x-again", "Enter")
    until_screen(hold, "tmux", "lower-again")
    hold.ok("keys", "tmux", "C-b", "o", *"echo $x-too; jobs; sleep 2000", "Enter")
    until_screen(hold, "tmux", r"(?s)upper-too.*Running +sleep 3000")
    hold.ok("keys", "tmux", "C-c", *"echo inter''rupted", "Enter")
    until_screen(hold, "tmux", "interrupted")


def unclocked(screen: str) -> str:
    """Without the line in which tmux has a clock."""
    return screen.rstrip().rpartition("\n")[0]


@pytest.mark.requirement("A8", "A3")
def test_a_line_that_waits_for_approval_while_the_session_sleeps(
    hold: Hold, tmp_path: Path
) -> None:
    """An agent's line is held; the session sleeps and comes back; then a person approves it, and it
    runs, once."""
    doomed, log = tmp_path / "doomed", tmp_path / "log"
    doomed.mkdir()
    started(hold, "gated")
    bot = add_actor(hold, "bot", "execute", "gated")
    hold.ok("policy", "set", "starter:hold-destructive", "--session", "gated")
    line = f"rm -r {doomed} && echo removed >>{log}"
    hold("--as", "bot", "send", "--enter", "gated", line)
    (before,) = waiting(hold)
    assert (before["actor"], before["text"]) == ("bot", line)
    put_to_sleep(hold, "gated")
    restored(hold, "gated")
    assert doomed.exists()
    (after,) = waiting(hold)
    kept = ("id", "text", "actor", "contributors", "asked_at", "expires_at", "quorum")
    assert [after[each] for each in kept] == [before[each] for each in kept]
    hold.fails("not_permitted", "--as", "bot", "approve", after["id"])
    hold.ok("approve", after["id"])
    until("what was approved does not run", log.exists)
    until("it is not removed", lambda: not doomed.exists())
    assert said(hold, "gated", f"cat {log}") == "removed"
    blamed = hold.ok("blame", "gated")
    assert "bot" in blamed and bot
    hold.ok("verify", "gated")


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_what_was_decided_after_the_checkpoint_is_not_asked_for_again(
    hold: Hold, tmp_path: Path, decision: str
) -> None:
    """Nor does it happen: what was approved has happened in a life that is not part of this one."""
    doomed, name = tmp_path / "doomed", f"decided-{decision}"
    doomed.mkdir()
    started(hold, name)
    add_actor(hold, f"bot-{decision}", "execute", name)
    hold.ok("policy", "set", "starter:hold-destructive", "--session", name)
    hold("--as", f"bot-{decision}", "send", "--enter", name, f"rm -r {doomed}")
    (held,) = waiting(hold)
    older = hold.json("checkpoint", name)
    hold.ok(decision, held["id"])
    until("it is not decided", lambda: not waiting(hold))
    if decision == "approve":
        until("what was approved does not run", lambda: not doomed.exists())
        doomed.mkdir()
    put_to_sleep(hold, name)
    restored(hold, older["id"])
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    assert waiting(hold) == []
    assert said(hold, name, "echo empty") == "empty", "the line is gone from the prompt"
    assert doomed.exists()
    hold.ok("verify", name)


def waiting(hold: Hold) -> list[dict[str, Any]]:
    return [each for each in hold.json("approvals") if each["status"] == "pending"]
