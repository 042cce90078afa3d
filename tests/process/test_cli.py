"""Each verb as people use it: the real command, a real host, real shells."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from holdfast.cli.dispatch import VERBS
from holdfast.model.info import HostInfo, SessionInfo
from holdfast.wire.messages import session as m
from process.commanding import HOLD, PATIENCE_S, Hold

READ_VERBS = (
    *("ls", "show", "screen", "tail", "wait", "watch", "graph", "send", "keys"),
    *("actor", "turn", "seize", "halt", "resume", "catchup"),
)


# -- the command itself -----------------------------------------------------------------------


def test_every_verb_has_help_with_examples() -> None:
    for verb in VERBS:
        done = subprocess.run([HOLD, verb, "--help"], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done
        assert f"usage: hold {verb}" in done.stdout
        assert "examples:" in done.stdout, verb


def test_the_overview_lists_every_verb() -> None:
    done = subprocess.run([HOLD, "--help"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    for verb in VERBS:
        assert f"  {verb} " in done.stdout


def test_an_unknown_verb_or_option_is_a_usage_error(fresh_home: Hold) -> None:
    for words in (("frobnicate",), ("ls", "--frobnicate"), ("show",), ("wait", "x")):
        done = fresh_home(*words)
        assert done.returncode == 64, done
        assert done.stderr.startswith("hold") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", READ_VERBS)
def test_a_verb_that_reads_starts_without_heavy_modules(verb: str) -> None:
    program = (
        "import sys; from holdfast.cli.dispatch import load; load(sys.argv[1]).parser();"
        "print(*sorted({'asyncio', 'msgspec', 'dataclasses', 'typing', 'inspect', 'subprocess'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, verb],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done


# -- sessions ---------------------------------------------------------------------------------


def test_a_session_is_listed_shown_and_ended_with_its_true_ending(host_home: Hold) -> None:
    session = host_home.shell("life")
    assert session[:8] in host_home.ok("ls")
    listed = [info for info in host_home.json("ls") if info["id"] == session]
    shown = host_home.json("show", "life")
    assert set(listed[0]) == set(shown) == set(SessionInfo._fields)
    assert (shown["name"], shown["state"], shown["shell"]) == ("life", "prompt", "bash")
    sheet = host_home.ok("show", session[:8])
    assert "nobody is attached" in sheet
    assert session in sheet and "prompt" in sheet
    said = host_home.ok("end", "life")
    assert said.startswith(f"life ({session[:8]}) ended: ")
    after = host_home.json("show", session)
    assert after["state"] == "ended" and after["ending"] is not None
    assert session not in host_home.ok("ls", "--json")
    assert session in host_home.ok("ls", "--all", "--json")
    host_home.fails("session_ended", "end", session)


def test_exec_prints_output_and_exits_with_the_status(host_home: Hold) -> None:
    host_home.shell("exec")
    assert host_home.ok("exec", "exec", "--", "echo one; echo two") == "one\ntwo\n"
    done = host_home("exec", "exec", "--", "sh", "-c", "echo 'a  b'; exit 7")
    assert (done.returncode, done.stdout) == (7, "a  b\n")
    host_home.ok("exec", "exec", "--", "cd /usr; kept=here")
    assert host_home.ok("exec", "exec", "--", "pwd; echo $kept") == "/usr\nhere\n"
    shown = host_home.json("show", "exec")
    assert shown["cwd"] == "/usr"
    assert shown["last_command"]["status"] == 0


def test_a_command_line_that_ends_its_shell_gives_the_output_and_the_true_status(
    host_home: Hold,
) -> None:
    host_home.shell("leaving")
    done = host_home("exec", "leaving", "--", "echo out; exit 3")
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, "out"), done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_exec_runs_exactly_the_line_it_was_given_or_refuses_it(host_home: Hold, shell: str) -> None:
    name = f"exactly-{shell}"
    host_home.shell(name, *(("bash", "--norc") if shell == "bash" else ("zsh", "-f")))
    assert host_home.ok("exec", name, "--", "echo first") == "first\n"
    assert host_home.ok("exec", name, "--", "echo !! !x\n\techo '!!'") == "!! !x\n!!\n"
    said = host_home.fails("invalid_argument", "exec", name, "--", "echo a\x03; echo b")
    assert "U+0003" in said
    assert host_home.ok("exec", name, "--", "echo fine") == "fine\n"


def test_a_tab_in_a_line_for_fish_is_kept(host_home: Hold) -> None:
    host_home.shell("tabbed", "fish")
    said = host_home.ok("exec", "tabbed", "--", "if true\n\techo 'a\tb'\nend")
    assert said == "a\tb\n"


def test_plugins_that_quote_a_pasted_address_leave_a_line_of_exec_alone(
    host_home: Hold, tmp_path: Path
) -> None:
    # As oh-my-zsh has them.
    tmp_path.joinpath(".zshrc").write_text(
        "autoload -Uz bracketed-paste-magic url-quote-magic\n"
        "zle -N bracketed-paste bracketed-paste-magic\n"
        "zle -N self-insert url-quote-magic\n"
    )
    host_home.ok("run", "-d", "--name", "magic", "--env", f"ZDOTDIR={tmp_path}", "--", "zsh")
    host_home.ok("wait", "magic", "--for", "prompt", "--timeout", "20")
    for _ in range(2):
        line = 'echo http://x/{1,2} "?a=1&b=2"; zle -lL bracketed-paste'
        said = host_home.ok("exec", "magic", "--", line).splitlines()
        assert said[0] == "http://x/1 http://x/2 ?a=1&b=2"
        assert said[1] == "zle -N bracketed-paste bracketed-paste-magic"  # the user's own again
    host_home.ok("send", "magic", "--enter", "echo http://x/{1,2}")
    host_home.ok("wait", "magic", "--for", r"text:^http://x/\{1,2\}$", "--timeout", "20")


def test_exec_leaves_the_command_running_after_its_timeout(host_home: Hold) -> None:
    host_home.shell("slow")
    line = host_home.fails(
        "timed_out", "exec", "slow", "--timeout", "1.5", "--", "read answer; echo got $answer"
    )
    assert "goes on in slow" in line
    host_home.fails("session_busy", "exec", "slow", "--", "true")
    host_home.ok("wait", "slow", "--for", "input", "--timeout", "20")
    host_home.ok("send", "slow", "--enter", "yes")
    host_home.ok("wait", "slow", "--for", "text:^got yes", "--timeout", "20")


def test_interrupting_exec_leaves_the_command_running(host_home: Hold) -> None:
    host_home.shell("sturdy")
    process = host_home.start("exec", "sturdy", "--", "echo begun; read answer")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"goes on in sturdy" in said
    host_home.ok("wait", "sturdy", "--for", "input", "--timeout", "20")


def test_exec_follows_its_command_across_a_new_daemon(host_home: Hold) -> None:
    host_home.shell("torn")
    process = host_home.start(
        "exec", "torn", "--", "echo begun; read answer; echo $answer; (exit 7)"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    host_home.ok("daemon", "restart")
    host_home.ok("wait", "torn", "--for", "input", "--timeout", "20")
    host_home.ok("send", "torn", "--enter", "carried on")
    printed, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (7, b"")
    assert printed.endswith(b"carried on\n") and b"begun" not in printed


def test_send_types_text_and_presses_enter_only_when_asked(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "typed", "--", "cat")
    host_home.ok("wait", "typed", "--for", "input", "--timeout", "20")
    host_home.ok("send", "typed", "half ")
    accepted = json.loads(host_home.ok("send", "typed", "--enter", "--json", "line"))
    assert set(accepted) == set(m.Accepted._fields) - {"id"}
    host_home.ok("wait", "typed", "--for", r"text:half line\nhalf line", "--timeout", "20")
    host_home.ok("send", "typed", "--enter", "-", stdin="von Stdin ü".encode())
    host_home.ok("wait", "typed", "--for", r"text:von Stdin ü\nvon Stdin ü", "--timeout", "20")
    host_home.ok("send", "typed", "--enter", "--", "--dash")
    host_home.ok("wait", "typed", "--for", r"text:--dash\n--dash", "--timeout", "20")
    host_home.ok("keys", "typed", "C-d")
    assert host_home.ok("wait", "typed", "--for", "exit", "--timeout", "20") == "exit 0\n"


def test_a_signal_reaches_the_foreground(host_home: Hold) -> None:
    host_home.shell("signal")
    process = host_home.start("exec", "signal", "--", "sh", "-c", "echo begun; exec sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"  # by the program that is in the foreground
    host_home.ok("signal", "signal", "INT")
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert host_home.json("show", "signal")["last_command"]["status"] == 130


def test_resize_sets_the_size_for_programs(host_home: Hold) -> None:
    host_home.shell("sized")
    host_home.ok("resize", "sized", "101x37")
    assert host_home.ok("exec", "sized", "--", "stty size") == "37 101\n"
    assert host_home.json("show", "sized")["size"] == {"cols": 101, "rows": 37}


# -- looking ----------------------------------------------------------------------------------


def test_screen_shows_text_and_with_scrollback_what_scrolled_off(host_home: Hold) -> None:
    host_home.shell("screen")
    host_home.ok("exec", "screen", "--", "seq 1 100")
    lines = host_home.ok("screen", "screen").split("\n")
    assert "100" in lines and "1" not in lines
    assert "1" in host_home.ok("screen", "screen", "--scrollback").split("\n")
    assert set(host_home.json("screen", "screen")) == set(m.ScreenShown._fields) - {"id"}


def test_tail_prints_what_is_held_from_an_offset_and_by_lines(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "tail", "--", "sh", "-c", "seq 1 50; exec cat")
    host_home.ok("wait", "tail", "--for", "text:^50$", "--timeout", "20")
    everything = host_home.ok("tail", "tail")
    assert everything == "".join(f"{n}\r\n" for n in range(1, 51))
    assert host_home.ok("tail", "tail", "--since", "3") == everything[3:]
    assert host_home.ok("tail", "tail", "-n", "2", "--plain") == "49\n50\n"
    host_home.fails("invalid_argument", "tail", "tail", "--since", "999999")


def test_plain_tail_prints_no_control_of_either_set(host_home: Hold, tmp_path: Path) -> None:
    """A terminal takes U+009B for the beginning of a sequence, as it does ESC and [."""
    printed = [*(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))), "\x1b[31m", "\x9b1m"]
    path = tmp_path / "printed"
    path.write_text("".join(f"<{each}>" for each in printed) + "\nall-printed\n", newline="")
    host_home.ok("run", "-d", "--name", "controls", "--", "sh", "-c", f"cat {path}; exec cat")
    host_home.ok("wait", "controls", "--for", "text:all-printed", "--timeout", "20")
    said = host_home.ok("tail", "controls", "--plain")
    assert "all-printed" in said and "<1m>" in said
    assert [char for char in said if unicodedata.category(char) == "Cc"] == [
        char for char in said if char in "\n\t"
    ]


def test_tail_tells_of_output_that_rolled_off(host_home: Hold) -> None:
    words = ("--ring", "65536", "--", "sh", "-c", "seq 1 30000; exec cat")
    host_home.ok("run", "-d", "--name", "rolled", *words)
    host_home.ok("wait", "rolled", "--for", "text:^30000$", "--timeout", "20")
    done = host_home("tail", "rolled", "-n", "1")
    assert (done.returncode, done.stdout) == (0, "30000\r\n")
    assert "are no longer held" in done.stderr and done.stderr.count("\n") == 1


def test_tail_follows_across_a_daemon_restart_until_the_end(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "follow", "--", "sh", "-c", "read a; read b; exit 5")
    follower = host_home.start("tail", "-f", "follow")
    host_home.attached("follow")
    host_home.ok("send", "follow", "--enter", "before")
    host_home.ok("wait", "follow", "--for", "text:before", "--timeout", "20")
    host_home.ok("daemon", "restart")
    host_home.ok("send", "follow", "--enter", "after")
    out, said = follower.communicate(timeout=30)
    assert (follower.returncode, out, said) == (0, b"before\r\nafter\r\n", b"")
    # The ended session still tells what it printed.
    assert host_home.ok("tail", "follow") == "before\r\nafter\r\n"
    assert host_home.ok("tail", "-f", "follow", "-n", "1") == "after\r\n"


def test_wait_tells_states_apart_and_the_end_with_its_status(host_home: Hold) -> None:
    host_home.shell("wait")
    host_home.ok("send", "wait", "--enter", "read -s word; read word; sh -c 'kill -9 $PPID'")
    host_home.ok("wait", "wait", "--for", "secret", "--timeout", "20")
    host_home.ok("send", "wait", "--enter", "hush")
    host_home.ok("wait", "wait", "--for", "input", "--timeout", "20")
    host_home.fails("timed_out", "wait", "wait", "--for", "prompt", "--timeout", "0.2")
    assert host_home("wait", "wait", "--for", "exit", "--timeout", "0.1").returncode == 124
    host_home.ok("send", "wait", "--enter", "die")
    done = host_home("wait", "wait", "--for", "exit", "--status", "--timeout", "20")
    assert (done.returncode, done.stdout) == (128 + 9, "signal SIGKILL\n")
    host_home.fails("session_ended", "wait", "wait", "--for", "prompt")
    host_home.fails("session_ended", "wait", "wait", "--for", "text:hush")
    assert host_home.ok("wait", "wait", "--for", "exit") == "signal SIGKILL\n"


def test_wait_goes_on_after_a_daemon_restart(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "patient", "--", "sh", "-c", "read a; exit 4")
    for_exit = host_home.start("wait", "patient", "--for", "exit", "--status", "--timeout", "30")
    for_text = host_home.start("wait", "patient", "--for", "text:now", "--timeout", "30")
    host_home.attached("patient")
    host_home.ok("daemon", "restart")
    assert for_exit.poll() is None and for_text.poll() is None
    host_home.attached("patient")
    host_home.ok("send", "patient", "--enter", "now")
    assert for_text.wait(20) == 0
    assert for_exit.wait(20) == 4
    for process in (for_exit, for_text):
        process.communicate()


def test_wait_for_text_sees_output_that_scrolls_by_and_screens(host_home: Hold) -> None:
    host_home.shell("text")
    waiter = host_home.start("wait", "text", "--for", "text:^num 7$", "--timeout", "30")
    host_home.attached("text")
    host_home.ok(
        "exec", "text", "--", r"i=0; while [ $i -lt 5000 ]; do echo num $i; i=$((i+1)); done"
    )
    assert waiter.wait(20) == 0
    waiter.communicate()
    # Drawn out of order, as full-screen programs do: never in the output as one text.
    host_home.ok("exec", "text", "--", r"printf '\033[2J\033[5;3Hbc\033[5;2Ha\033[8;1H'")
    host_home.ok("wait", "text", "--for", "text:^ abc$", "--timeout", "20")


def test_watch_prints_states_until_the_end(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "watched", "--", "sh", "-c", "read a; exit 2")
    host_home.ok("wait", "watched", "--for", "input", "--timeout", "20")
    watcher = host_home.start("watch", "watched", "--json")
    assert watcher.stdout is not None
    first = json.loads(watcher.stdout.readline())
    assert set(first) == set(m.StateEvent._fields)
    assert (first["name"], first["state"]) == ("watched", "input")
    host_home.ok("send", "watched", "--enter", "x")
    rest, _ = watcher.communicate(timeout=20)
    last = json.loads(rest.splitlines()[-1])
    assert (last["state"], last["ending"]["code"]) == ("ended", 2)
    assert ": exit 2" in host_home.ok("watch", "watched")


def test_graph_shows_the_processes_of_now(host_home: Hold) -> None:
    host_home.shell("graph")
    host_home.ok("exec", "graph", "--", "sleep 4321 & true")
    assert "sleep 4321" in host_home.ok("graph", "graph")
    graph = host_home.json("graph", "graph")
    assert ["sleep", "4321"] in [process["argv"] for process in graph["processes"]]
    assert graph["terminal"]["size"] == {"cols": 80, "rows": 24}


# -- the host ---------------------------------------------------------------------------------


def test_daemon_restart_replaces_the_daemon_and_nothing_else(host_home: Hold) -> None:
    host_home.shell("upgrade")
    pid = host_home.json("show", "upgrade")["pid"]
    before = host_home.json("daemon", "status")
    assert set(before) == set(HostInfo._fields)
    restarted = host_home.json("daemon", "restart")
    after = host_home.json("daemon", "status")
    assert (restarted["old_pid"], restarted["new_pid"]) == (
        before["daemon_pid"],
        after["daemon_pid"],
    )
    assert after["daemon_pid"] != before["daemon_pid"]
    assert after["supervisor_pid"] == before["supervisor_pid"]
    assert after["restarts"] == before["restarts"] + 1
    assert host_home.json("show", "upgrade")["pid"] == pid
    assert host_home.ok("exec", "upgrade", "--", "echo $$").strip()


def test_doctor_reports_with_and_without_a_host(host_home: Hold, fresh_home: Hold) -> None:
    assert "ok  state: " in host_home.ok("doctor")
    report = host_home.json("doctor")
    assert report["up"] is True
    assert {"name", "ok", "detail", "remedy"} == set(report["findings"][0])
    done = fresh_home("doctor")
    assert done.returncode == 1
    assert "!!  host: no host is running here" in done.stdout
    without = json.loads(fresh_home("doctor", "--json").stdout)
    assert without["up"] is False and without["findings"]
    pids = [without[name] for name in ("daemon_pid", "supervisor_pid", "relay_pid")]
    assert pids == [None, None, None]


def test_down_leaves_sessions_running_and_with_end_sessions_nothing(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    fresh_home.fails("already_up", "up", "-d")
    fresh_home.ok("run", "-d", "--name", "work", "--", "sleep", "1000")
    before = fresh_home.json("show", "work")
    assert fresh_home.ok("down") == "the host is down\nstill running: work\n"
    assert not os.path.exists(f"{fresh_home.home}/run/hold.sock")
    after = fresh_home.json("show", "work")  # which starts the host again
    assert (after["pid"], after["keeper_pid"]) == (before["pid"], before["keeper_pid"])
    supervisor = fresh_home.json("daemon", "status")["supervisor_pid"]
    assert fresh_home.ok("down", "--end-sessions") == "the host is down\n"
    for pid in (supervisor, before["keeper_pid"], before["pid"]):
        assert not os.path.exists(f"/proc/{pid}/cwd")
    assert not os.path.exists(f"{fresh_home.home}/run/hold.sock")
    fresh_home.fails("host_down", "ls")
    fresh_home.fails("host_down", "down")


def test_a_follower_is_told_at_once_when_the_host_is_stopped(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    watcher = fresh_home.start("watch", "--json")
    fresh_home.ok("run", "-d", "--name", "x", "--", "sh", "-c", "echo; read a")
    assert watcher.stdout is not None and watcher.stdout.readline()
    fresh_home.ok("down", "--end-sessions")
    _, said = watcher.communicate(timeout=20)
    assert watcher.returncode == 69
    assert b"(host_lost)" in said and said.count(b"\n") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_parse_and_know_every_verb_and_option(shell: str) -> None:
    import shutil

    from holdfast.cli.dispatch import load

    done = subprocess.run([HOLD, "completion", shell], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    for verb in VERBS:
        assert verb in done.stdout
        for action in load(verb).parser()._actions:
            for flag in action.option_strings:
                assert flag.lstrip("-") in done.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    parsed = subprocess.run(
        [shell, "-n"], input=done.stdout, capture_output=True, text=True, timeout=30
    )
    assert (parsed.returncode, parsed.stderr) == (0, "")


def test_bash_completes_verbs_options_and_session_names(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "findme", "--", "cat")
    script = subprocess.run([HOLD, "completion", "bash"], capture_output=True, timeout=30).stdout
    ask = (
        b'\ncomplete_it() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hold; '
        b'echo "${COMPREPLY[*]}"; }\n'
        b"complete_it hold scr\ncomplete_it hold screen --scr\ncomplete_it hold screen find\n"
        b"complete_it hold wait x --for pro\ncomplete_it hold daemon re\n"
    )
    env = {**host_home.env, "PATH": os.path.dirname(HOLD) + ":" + host_home.env["PATH"]}
    done = subprocess.run(
        ["bash", "--norc"], input=script + ask, env=env, capture_output=True, timeout=30
    )
    assert done.stdout.decode().split("\n")[:5] == [
        "screen",
        "--scrollback",
        "findme",
        "prompt",
        "restart",
    ], done


def test_exec_says_when_the_command_line_is_not_complete(host_home: Hold) -> None:
    host_home.shell("incomplete")
    assert "not complete" in host_home.fails(
        "invalid_argument", "exec", "incomplete", "--", "echo 'unclosed"
    )
    assert host_home.ok("exec", "incomplete", "--", "echo fine") == "fine\n"


def test_exec_whose_output_was_lost_fails_and_says_where_to_read_on(host_home: Hold) -> None:
    ring = 1 << 16
    session = host_home.ok("run", "-d", "--ring", str(ring), "--", "bash", "--norc").strip()
    host_home.ok("wait", session, "--for", "prompt", "--timeout", "20")
    process = host_home.start("exec", session, "--", "seq 200000; (exit 3)")
    host_home.ok("wait", session, "--for", "text:^200000", "--timeout", "20")  # nobody reads yet
    printed, errors = process.communicate(timeout=PATIENCE_S)
    out, said = printed.decode(), errors.decode()
    assert process.returncode == 79
    assert "output_gap" in said and "ended with status 3" in said
    found = re.search(r"--since (\d+)", said)
    assert found is not None
    # Not `ok`: the prompt that came since may have pushed the first of it out.
    rest = host_home("tail", session, "--plain", "--since", found[1]).stdout.splitlines()
    assert "200000" in rest and out.splitlines()[-1] == "200000"


def test_exec_says_that_its_standard_input_is_not_used(host_home: Hold) -> None:
    host_home.shell("unread")
    done = host_home("exec", "unread", "--", "echo fine", stdin=b"lost\n")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    assert "standard input is not used" in done.stderr
    assert host_home.ok("exec", "unread", "--", "echo quiet") == "quiet\n"


def test_exec_names_the_program_that_reads_the_terminal(host_home: Hold) -> None:
    host_home.shell("nested")
    host_home.ok("send", "nested", "--enter", "PS1='inner-$((6*7)) ' sh")
    host_home.ok("wait", "nested", "--for", "text:inner-42", "--timeout", "20")
    host_home.ok("wait", "nested", "--for", "input", "--timeout", "20")
    said = host_home.fails("terminal_in_use", "exec", "nested", "--", "true")
    assert "(sh, pid " in said and "hold keys nested C-d" in said
    host_home.ok("keys", "nested", "C-d")
    host_home.ok("wait", "nested", "--for", "prompt", "--timeout", "20")
    assert host_home.ok("exec", "nested", "--", "echo back") == "back\n"


def test_a_line_that_fish_refuses_is_cleared_every_time(host_home: Hold) -> None:
    host_home.shell("refusing", "fish")
    for number in range(5):
        assert host_home("exec", "refusing", "--", "echo $)").returncode == 2
        assert host_home.ok("exec", "refusing", "--", f"echo ok-{number}") == f"ok-{number}\n"


def test_hold_version_prints_the_version(fresh_home: Hold) -> None:
    assert fresh_home.ok("version") == fresh_home.ok("--version")


def test_fish_completes_values_of_options_and_no_files_with_them(host_home: Hold) -> None:
    import shutil

    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    script = subprocess.run([HOLD, "completion", "fish"], capture_output=True, timeout=30).stdout
    ask = b"complete -C 'hold wait x --for '\necho ==\ncomplete -C 'hold run --level '\n"
    done = subprocess.run(
        ["fish", "--no-config"], input=script + ask, env=host_home.env, cwd="/",
        capture_output=True, timeout=30,
    )  # fmt: skip
    states, levels = (
        {line.split("\t")[0] for line in part.splitlines()}
        for part in done.stdout.decode().split("==\n")
    )
    assert states == {"prompt", "input", "secret", "stopped", "exit", "text:"}
    assert levels == {"plain", "contained", "movable"}


def test_export_to_standard_output_is_the_cast_alone(host_home: Hold, tmp_path: Path) -> None:
    host_home.ok("run", "-d", "--name", "piped", "--", "sh", "-c", "echo cast; exec cat")
    host_home.ok("wait", "piped", "--for", "text:cast", "--timeout", "30")
    done = subprocess.run(
        [HOLD, "export", "piped", "-o", "-"], cwd=tmp_path, env=host_home.env,
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done
    assert json.loads(done.stdout.splitlines()[0])["version"] == 3
    assert "cast" in done.stdout and list(tmp_path.iterdir()) == []


def test_a_hung_daemon_is_named_by_doctor_and_replaced_by_restart(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    fresh_home.shell("through")
    shell = fresh_home.json("show", "through")["pid"]
    hung = fresh_home.json("daemon", "status")["daemon_pid"]
    os.kill(hung, signal.SIGSTOP)
    seen = fresh_home("doctor")
    assert seen.returncode == 1
    assert f"daemon {hung} hangs" in seen.stdout and "host.log" in seen.stdout
    done = fresh_home("daemon", "restart", "--json")
    assert "does not answer" in done.stderr
    restarted = json.loads(done.stdout)
    assert restarted["old_pid"] == hung != restarted["new_pid"]
    assert fresh_home.json("show", "through")["pid"] == shell
    assert fresh_home.ok("exec", "through", "--", "echo here").strip() == "here"


@pytest.mark.parametrize("daemon_too", [True, False])
def test_a_supervisor_that_was_stopped_is_replaced_by_restart(
    fresh_home: Hold, daemon_too: bool
) -> None:
    fresh_home.ok("up", "-d")
    fresh_home.shell("through")
    shell = fresh_home.json("show", "through")["pid"]
    before = fresh_home.json("daemon", "status")
    os.kill(before["supervisor_pid"], signal.SIGSTOP)
    if daemon_too:
        os.kill(before["daemon_pid"], signal.SIGKILL)
        seen = fresh_home("doctor")
        assert seen.returncode == 1
        assert f"supervisor {before['supervisor_pid']} starts no daemon" in seen.stdout
    done = fresh_home("daemon", "restart")
    assert done.returncode == 0 and "sessions carried on" in done.stdout, done
    assert "the supervisor" in done.stderr and "replaced" in done.stderr
    after = fresh_home.json("daemon", "status")
    assert after["supervisor_pid"] != before["supervisor_pid"]
    assert after["daemon_pid"] != before["daemon_pid"]
    assert not os.path.exists(f"/proc/{before['supervisor_pid']}/exe")
    assert fresh_home.json("show", "through")["pid"] == shell
    assert fresh_home.ok("exec", "through", "--", "echo here").strip() == "here"


def test_daemon_restart_says_that_the_configuration_is_wrong(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    with open(f"{fresh_home.home}/config.toml", "w") as config:
        config.write("rign_bytes = 3\n")
    done = fresh_home("daemon", "restart")
    assert done.returncode == 78
    assert "unknown setting 'rign_bytes'" in done.stderr


def test_a_daemon_that_loops_is_replaced_too(fresh_home: Hold, tmp_path: Path) -> None:
    tmp_path.joinpath("sitecustomize.py").write_text(
        "import signal\n"
        "def loop(*_):\n"
        "    while True:\n"
        "        pass\n"
        "signal.signal(signal.SIGUSR2, loop)\n"
    )
    fresh_home.env["PYTHONPATH"] = str(tmp_path)
    fresh_home.ok("up", "-d")
    fresh_home.shell("through")
    looping = fresh_home.json("daemon", "status")["daemon_pid"]
    os.kill(looping, signal.SIGUSR2)
    done = fresh_home("daemon", "restart", "--json")
    assert "the daemon does not answer" in done.stderr
    restarted = json.loads(done.stdout)
    assert restarted["old_pid"] == looping != restarted["new_pid"]
    assert fresh_home.ok("exec", "through", "--", "echo here").strip() == "here"


def test_a_daemon_that_greets_and_then_hangs_is_replaced_too(
    fresh_home: Hold, tmp_path: Path
) -> None:
    hangs = tmp_path / "hangs"
    tmp_path.joinpath("sitecustomize.py").write_text(
        "import os, sys, time\n"
        "def hang(*_):\n"
        f"    while os.path.exists({str(hangs)!r}):\n"
        "        time.sleep(0.1)\n"
        'if sys.orig_argv[-1] == "holdfast.host":\n'
        "    from holdfast.host.connection.host_requests import HostRequests\n"
        "    HostRequests.restart_daemon = hang\n"
    )
    hangs.touch()
    fresh_home.env["PYTHONPATH"] = str(tmp_path)
    fresh_home.ok("up", "-d")
    hung = fresh_home.json("daemon", "status")["daemon_pid"]
    done = fresh_home("daemon", "restart", "--json")
    hangs.unlink()
    assert "the daemon does not answer" in done.stderr
    restarted = json.loads(done.stdout)
    assert restarted["old_pid"] == hung != restarted["new_pid"]
