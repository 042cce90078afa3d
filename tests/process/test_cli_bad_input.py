"""What people and scripts get wrong: one clear line with a code, nothing lost, nothing left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from process.commanding import HOLD, Hold, supervisors_end

NAMED = {
    "attach": (),
    "show": (),
    "end": (),
    "exec": ("--", "true"),
    "send": ("text",),
    "keys": ("Enter",),
    "signal": ("INT",),
    "resize": ("80x24",),
    "screen": (),
    "tail": (),
    "wait": ("--for", "exit"),
    "watch": (),
    "graph": (),
}


@pytest.mark.parametrize("verb", sorted(set(NAMED) - {"attach"}))
def test_an_unknown_name(host_home: Hold, verb: str) -> None:
    host_home.fails("no_such_session", verb, "nobody", *NAMED[verb])


@pytest.mark.parametrize("verb", sorted(NAMED))
def test_a_name_that_is_not_utf8(host_home: Hold, verb: str) -> None:
    host_home.fails("usage", verb, b"\xff\xfe", *NAMED[verb])


def test_a_name_already_taken_and_names_that_are_none(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "taken", "--", "cat")
    host_home.fails("name_taken", "run", "-d", "--name", "taken", "--", "cat")
    host_home.fails("invalid_argument", "run", "-d", "--name", "a b", "--", "cat")
    host_home.fails("invalid_argument", "run", "-d", "--name", "x" * 65, "--", "cat")


def test_a_command_that_does_not_exist_is_no_session(host_home: Hold) -> None:
    before = host_home.json("ls", "--all")
    host_home.fails("command_not_found", "run", "-d", "--", "/no/such/program")
    host_home.fails("command_not_found", "run", "-d", "--", "no-such-program-anywhere")
    assert len(host_home.json("ls", "--all")) == len(before)


def test_sizes_signals_and_durations_out_of_range(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "ranges", "--", "cat")
    for size in ("0x0", "80", "axb", "100000x1", "80x-1"):
        host_home.fails("usage", "resize", "ranges", size)
        host_home.fails("usage", "run", "-d", "--size", size, "--", "cat")
    for number in ("0", "65", "SIGNOPE", "-9"):
        assert host_home("signal", "ranges", number).returncode == 64
    for duration in ("soon", "-1", "nan", "1e400", ""):
        done = host_home("wait", "ranges", "--for", "exit", f"--timeout={duration}")
        assert done.returncode == 64, done


def test_what_cannot_be_waited_for(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "hopeless", "--", "cat")
    line = host_home.fails("invalid_argument", "wait", "hopeless", "--for", "text:(")
    assert "not a regular expression" in line
    host_home.fails("invalid_argument", "wait", "hopeless", "--for", "godot")


def test_input_that_is_too_long_or_not_text(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "flood", "--", "cat")
    host_home.fails("invalid_argument", "send", "flood", "-", stdin=b"x" * 70_000)
    host_home.fails("invalid_argument", "send", "flood", "-", stdin=b"\xff\xfe")
    host_home.fails("usage", "send", "flood", b"\xff")
    host_home.fails("invalid_argument", "keys", "flood", "C-Hyper")
    host_home.fails("no_shell_integration", "exec", "flood", "--", "true")


def test_exec_needs_a_command(host_home: Hold) -> None:
    host_home.shell("bare")
    host_home.fails("usage", "exec", "bare")
    host_home.fails("usage", "exec", "bare", "--")
    host_home.fails("invalid_argument", "exec", "bare", "--", " ")
    host_home.fails("usage", "exec", "bare", "--", b"\xff")


def test_a_reader_that_closes_early_gets_no_traceback(host_home: Hold) -> None:
    host_home.ok("run", "-d", "--name", "pipe", "--", "sh", "-c", "seq 1 100000; exec cat")
    host_home.ok("wait", "pipe", "--for", "text:^100000$", "--timeout", "30")
    for command in ("ls", "tail pipe", "screen pipe", "ls --json"):
        done = subprocess.run(
            ["sh", "-c", f"{HOLD} {command} | head -1"],
            env=host_home.env,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0
        said = [line for line in done.stderr.splitlines() if "no longer held" not in line]
        assert said == [], command
        assert done.stdout.count("\n") == 1


def test_a_stale_socket_is_no_host_and_does_not_hinder_one(fresh_home: Hold) -> None:
    run = Path(fresh_home.home, "run")
    run.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(run / "hold.sock"))
    fresh_home.fails("host_down", "ls")
    assert "left by a host that died" in fresh_home("doctor").stdout
    fresh_home.ok("up", "-d")
    assert fresh_home.json("ls") == []


def test_a_state_directory_that_cannot_be_made(fresh_home: Hold) -> None:
    blocker = Path(fresh_home.made, "file")
    blocker.write_text("in the way")
    fresh_home.env["HOLDFAST_HOME"] = f"{blocker}/home"
    line = fresh_home.fails("storage_failed", "up", "-d")
    assert "HOLDFAST_HOME" in line
    fresh_home.fails("host_down", "ls")
    assert fresh_home("doctor").returncode == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_state_directory_that_is_not_ours(fresh_home: Hold) -> None:
    os.chmod(fresh_home.made, 0o755)
    # Loaded as root, because another user may not be able to read this installation.
    program = (
        "import os, sys; from holdfast.cli.dispatch import load, main; load('up').parser();"
        "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534);"
        "sys.exit(main(['up', '-d']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=fresh_home.env,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 74, done
    assert done.stderr.startswith("hold: cannot make ") and "(storage_failed)" in done.stderr
    assert os.listdir(fresh_home.made) == []


def test_a_home_too_long_or_relative(fresh_home: Hold) -> None:
    for home in (f"{fresh_home.made}/{'x' * 100}", "relative/home"):
        fresh_home.env["HOLDFAST_HOME"] = home
        for words in (("up", "-d"), ("ls",), ("run", "-d", "--", "true")):
            line = fresh_home.fails("invalid_argument", *words)
            assert "HOLDFAST_HOME" in line
    assert os.listdir(fresh_home.made) == []


def test_a_mistake_in_the_configuration_is_told(fresh_home: Hold) -> None:
    Path(fresh_home.home, "config.toml").write_text("ring_bites = 7\n")
    assert "ring_bites" in fresh_home.fails("host_down", "up", "-d")
    assert supervisors_end(fresh_home.home), "a host that could not start is still there"
    fresh_home.fails("host_down", "ls")


def test_a_number_that_no_message_can_carry_is_a_usage_error(host_home: Hold) -> None:
    huge = "9" * 30
    for words in (
        ("run", "-d", "--ring", huge, "--", "cat"),
        ("tail", "x", "--since", huge),
        ("grant", "ann", "observe", "--inputs-per-s", "nan"),
        ("proof", "check", "x", "--from", huge),
        ("invite", "--bytes-per-s", "1e400"),
    ):
        host_home.fails("usage", *words)
    assert "out of range" in host_home.fails("usage", "tail", "x", "--since", huge)


def test_an_empty_name_is_not_taken_for_none(host_home: Hold) -> None:
    assert "leave --name out" in host_home.fails("usage", "run", "-d", "--name", "", "--", "cat")


def test_run_in_a_deleted_directory_says_so(host_home: Hold, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && exec {HOLD} run -d -- cat"],
        cwd=tmp_path,
        env=host_home.env,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 64
    assert done.stderr.startswith("hold: this directory was deleted (invalid_argument); cd ")


@pytest.mark.parametrize(
    ("word", "hint"),
    [("kill", "hold end"), ("new", "hold run"), ("list", "hold ls"), ("logs", "hold tail")],
)
def test_the_words_of_other_tools_lead_to_ours(host_home: Hold, word: str, hint: str) -> None:
    assert hint in host_home.fails("usage", word, "build")


def test_an_option_of_the_command_is_told_from_a_mistake(host_home: Hold) -> None:
    assert "put `--` before the command" in host_home.fails("usage", "run", "ls", "-la")
    assert "put `--` before the command" in host_home.fails("usage", "exec", "x", "ls", "-la")
    assert "put `--`" not in host_home.fails("usage", "ls", "--frobnicate")


def test_up_says_that_the_port_of_its_relay_is_in_use(fresh_home: Hold) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        line = fresh_home.fails("relay_unreachable", "up", "-d", "--listen", f"127.0.0.1:{port}")
    assert "Address already in use" in line
    assert fresh_home.json("ls") == [], "the host itself is up"


def test_daemon_restart_says_that_the_port_of_its_relay_is_in_use(fresh_home: Hold) -> None:
    del fresh_home.env["HOLDFAST_RELAY"]
    fresh_home.ok("up", "-d")
    with socket.create_server(("127.0.0.1", 0)) as other:
        config = Path(fresh_home.home, "config.toml")
        config.write_text(f'relay = "127.0.0.1:{other.getsockname()[1]}"\n')
        line = fresh_home.fails("relay_unreachable", "daemon", "restart")
    assert "Address already in use" in line


def test_up_and_daemon_restart_say_that_there_is_no_compiler(
    fresh_home: Hold, tmp_path: Path
) -> None:
    """Neither the machine's nor that of the wheel; and nothing was built before."""
    tmp_path.joinpath("sitecustomize.py").write_text(
        f"import sys\nsys.prefix = {str(tmp_path / 'installed')!r}\nsys.modules['ziglang'] = None\n"
    )
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    fresh_home.env |= {**cache, "PATH": str(tmp_path)}
    line = fresh_home.fails("launch_failed", "up", "-d")
    assert "no C compiler" in line and "ziglang" in line
    assert fresh_home.json("ls") == [], "the host itself is up"
    done = fresh_home("daemon", "restart")
    assert done.returncode == 71 and "no C compiler" in done.stderr
    assert "was replaced by" in done.stdout


def test_up_beside_a_daemon_that_hangs_names_it(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    hung = fresh_home.json("daemon", "status")["daemon_pid"]
    os.kill(hung, signal.SIGSTOP)
    try:
        line = fresh_home.fails("host_down", "up", "-d")
    finally:
        os.kill(hung, signal.SIGCONT)
    assert f"daemon {hung} does not answer" in line and "host.log" in line
    assert "hold daemon restart" in line
    fresh_home.fails("already_up", "up", "-d")


def test_up_says_which_setting_is_wrong(fresh_home: Hold) -> None:
    Path(fresh_home.home).mkdir(parents=True, exist_ok=True)
    Path(fresh_home.home, "config.toml").write_text("rign_bytes = 3\n")
    assert "unknown setting 'rign_bytes'" in fresh_home.fails("host_down", "up", "-d")


@pytest.mark.parametrize("command", ["--help", "version", "completion bash"])
def test_output_that_nobody_takes_is_no_traceback(fresh_home: Hold, command: str) -> None:
    for line, said in (
        (f"{HOLD} {command} | true", ""),
        (f"{HOLD} run --help | true", ""),
        (f"{HOLD} {command} > /dev/full", "hold: the output cannot be written: no space left"),
    ):
        done = subprocess.run(
            ["sh", "-c", line], env=fresh_home.env, capture_output=True, text=True, timeout=30
        )
        assert done.stderr.startswith(said) and done.stderr.count("\n") == bool(said), done
