"""A program's own state: given before a checkpoint, found after a restore, at level plain (M2)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from holdfast import blocking
from holdfast.sdk.connection import Connection, new_operator
from holdfast.sdk.events import Progressed
from holdfast.wire.messages import session as m
from holdfast.wire.messages.checkpoints import ProgressEvent
from process.commanding import Hold
from process.recorded import log
from process.terminals import Terminal
from process.waiting import until

COUNTER = str(Path(__file__).resolve().parents[2] / "examples" / "keep_a_counter.py")
# The same in a language without our SDK: two files and a signal.
IN_SHELL = """
n=0
[ -f "$HOLDFAST_SNAPSHOT_DIR/restore" ] && n=$(cat "$HOLDFAST_SNAPSHOT_DIR/restore")
echo "starts at $n"
cd "$HOLDFAST_SNAPSHOT_DIR"
trap 'echo $n > .new; mv .new state' $HOLDFAST_SNAPSHOT_SIGNAL
echo $$ > $HOLDFAST_SNAPSHOT_DIR/offer
while read line; do n=$line; echo "has $n"; done
"""


@pytest.fixture
def hold(fresh_home: Hold) -> Hold:
    Path(fresh_home.home, "config.toml").write_text('level = "plain"\n')
    fresh_home.ok("up", "-d")
    return fresh_home


def counted(hold: Hold) -> int:
    found = re.findall(r"count (\d+)", hold.ok("tail", "counter"))
    return int(found[-1]) if found else 0


@pytest.mark.requirement("M2")
def test_a_program_goes_on_with_its_own_state_without_root_or_criu(hold: Hold) -> None:
    words = ("run", "-d", "--name", "counter", "--label", "blue", "--")
    session = hold.ok(*words, sys.executable, COUNTER, "--serve").strip()
    until("it does not count", lambda: counted(hold) >= 5)
    before = hold.json("show", "counter")
    made = hold.json("checkpoint", "counter", "--end", "--note", "move")
    assert (made["kind"], made["session"]) == ("application", session)
    assert hold.json("show", "counter")["state"] == "asleep"
    reached = counted(hold)

    done = hold.json("restore", "counter")
    report, after = done["restore"], hold.json("show", "counter")
    assert (report["kind"], report["epoch_before"], report["epoch"]) == ("application", 1, 2)
    assert (after["id"], after["labels"], after["epoch"]) == (session, ["blue"], 2)
    assert after["pid"] != before["pid"], "other processes, the same session"
    hold.ok("wait", "counter", "--for", "text:goes on at", "--timeout", "20")
    (at,) = re.findall(r"goes on at (\d+)", hold.ok("screen", "counter", "--scrollback"))
    assert 5 <= int(at) <= reached, "not from the beginning"
    (entry,) = [each for each in log(hold, session) if each["kind"] == "restored"]
    assert entry["body"]["kind"] == "application" and entry["epoch"] == 2
    assert hold.json("verify", session)["verdict"] == "intact"
    assert after["output_offset"] > 0 and after["held_from"] == 0, "its output goes on"

    # And again, from where it is now, while it runs on.
    again = hold.json("checkpoint", "counter")
    assert again["kind"] == "application"
    assert hold.json("show", "counter")["state"] == "working"
    assert 'holdfast_restores_total{kind="application"} 1' in hold.ok("metrics")


@pytest.mark.requirement("M2")
def test_any_language_can_do_it_with_two_files_and_a_signal(hold: Hold, tmp_path: Path) -> None:
    script = tmp_path / "keeper.sh"
    script.write_text(IN_SHELL)
    hold.ok("run", "-d", "--name", "keeper", "--", "bash", str(script))
    hold.ok("wait", "keeper", "--for", "text:starts at 0", "--timeout", "20")
    hold.ok("send", "keeper", "--enter", "41")
    hold.ok("wait", "keeper", "--for", "text:has 41", "--timeout", "20")
    hold.ok("checkpoint", "keeper", "--end")
    hold.ok("restore", "keeper")
    hold.ok("wait", "keeper", "--for", "text:starts at 41", "--timeout", "20")
    hold.ok("send", "keeper", "--enter", "42")
    hold.ok("wait", "keeper", "--for", "text:has 42", "--timeout", "20")


@pytest.mark.requirement("M2")
def test_a_program_that_cannot_give_its_state_runs_on(hold: Hold, tmp_path: Path) -> None:
    script = tmp_path / "refuses.py"
    script.write_text(
        "import time\nfrom holdfast import snapshots\n"
        "def save():\n    raise ValueError('in the middle of a deal')\n"
        "print(snapshots.register(save, print), flush=True)\n"
        "while True: time.sleep(0.1)\n"
    )
    session = hold.ok("run", "-d", "--name", "deal", "--", sys.executable, str(script)).strip()
    hold.ok("wait", "deal", "--for", "text:True", "--timeout", "20")
    assert "in the middle of a deal" in hold.fails(
        "checkpoint_failed", "checkpoint", "deal", "--end"
    )
    assert hold.json("show", "deal")["state"] == "working"
    assert [each for each in log(hold, session) if each["kind"] == "checkpoint_failed"]


def test_a_session_that_offers_nothing_is_refused_at_level_plain(hold: Hold) -> None:
    hold.shell("shell")
    # What a program below a shell offers would not be there again when the shell is.
    hold.ok("exec", "shell", "--", "echo $$ > $HOLDFAST_SNAPSHOT_DIR/offer")
    hold.fails("level_unavailable", "checkpoint", "shell")


def test_only_a_process_of_the_session_is_asked(hold: Hold) -> None:
    """Whoever is user of the session may write any number there."""
    words = ("sh", "-c", "echo 1 > $HOLDFAST_SNAPSHOT_DIR/offer; echo ready; exec sleep 999")
    hold.ok("run", "-d", "--name", "liar", "--", *words)
    hold.ok("wait", "liar", "--for", "text:ready", "--timeout", "20")
    hold.fails("level_unavailable", "checkpoint", "liar")


def test_outside_of_a_session_nothing_is_registered() -> None:
    from holdfast import snapshots

    assert snapshots.register(lambda: b"", lambda _: None) is False


HESITATES = """
cd "$HOLDFAST_SNAPSHOT_DIR"
give() {{ while [ ! -e {go} ]; do sleep 0.02; done; echo 1 > .new; mv .new state; }}
trap give $HOLDFAST_SNAPSHOT_SIGNAL
echo $$ > offer
echo offered
while :; do sleep 0.05; done
"""


def test_what_takes_a_while_says_how_far_it_is(hold: Hold, tmp_path: Path) -> None:
    """On the terminal of whoever asked, to those who watch, and to nobody who may not know it."""
    go = tmp_path / "go"
    hold.ok("run", "-d", "--name", "slow", "--", "bash", "-c", HESITATES.format(go=go))
    hold.ok("wait", "slow", "--for", "text:offered", "--timeout", "20")
    asked = Terminal(hold, "checkpoint", "slow")
    older = Connection(f"{hold.home}/run/hold.sock", new_operator(), "older")
    try:
        older.ask(m.Watch(older.next_id(), ""))
        with blocking.connect(f"{hold.home}/run/hold.sock") as watcher:
            events = watcher.events("slow")
            asked.until(b"slow: checkpoint: asking its program for its state")
            told = next(each for each in events if isinstance(each, Progressed))
            assert (told.work, told.phase, told.over) == ("checkpoint", "ask", False)
            go.touch()
            assert asked.wait() == 0
            assert next(each for each in events if isinstance(each, Progressed) and each.over)
        line, _, rest = asked.seen.rpartition(b"\r\x1b[K")
        assert rest.startswith(b"ck-") and b"\n" not in line.strip()
        older.ask(m.GetHost(older.next_id()))
        while (message := older.take()) is not None:
            assert not isinstance(message, ProgressEvent)
        hold.json("checkpoint", "slow")  # which complains of nothing
    finally:
        asked.close()
        older.close()
