"""Sessions for any ssh client: the real gateway, and OpenSSH before it."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.model.size import Size
from process.acting import add_actor
from process.commanding import PATIENCE_S, Hold
from process.sshing import SSH, GatewayProcess, ends, make_key, needs_ssh
from process.terminals import Terminal
from process.waiting import until

pytestmark = needs_ssh

DETACH = b"\x1cd"


@pytest.fixture(scope="module")
def key(host_home: Hold) -> Path:
    """An ssh key that acts as `bot`, who may write in sessions labelled `ssh`."""
    add_actor(host_home, "bot", "execute", "--label", "ssh")
    made = make_key(host_home, "bot")
    host_home.ok("sshd", "authorize", f"{made}.pub", "--as", "bot")
    return made


@pytest.fixture(scope="module")
def gateway(host_home: Hold, key: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(host_home) as made:
        yield made


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    """Terminals to close at the end."""
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()


def shell(hold: Hold, name: str) -> int:
    """A bash in which `bot` may write; gives its pid."""
    hold.ok("run", "-d", "--name", name, "--label", "ssh", "--", "bash", "--norc")
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    pid: int = hold.json("show", name)["pid"]
    return pid


def runs(hold: Hold, name: str, program: str) -> None:
    hold.ok("run", "-d", "--name", name, "--label", "ssh", "--", "bash", "-c", program)


# -- at a terminal ------------------------------------------------------------------------------


def test_what_is_typed_runs_in_the_session_and_detaching_leaves_it(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    pid = shell(host_home, "typed")
    opened.append(terminal := gateway.terminal("typed", key))
    terminal.until(b"end-to-end encryption ends here")
    terminal.until_shown("$")
    terminal.type(b"echo one-$((40+2))\r")
    terminal.until(b"one-42")
    terminal.type(DETACH)
    assert terminal.wait() == 0
    assert b"detached from typed" in terminal.seen
    assert host_home.json("show", "typed")["pid"] == pid


def test_an_interrupt_reaches_the_program_and_not_the_client(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    shell(host_home, "interrupted")
    opened.append(terminal := gateway.terminal("interrupted", key))
    terminal.until_shown("$")
    terminal.type(b"sleep 1000\r")
    host_home.ok("wait", "interrupted", "--for", "text:sleep 1000", "--timeout", "20")
    while host_home.json("show", "interrupted")["state"] != "working":
        pass  # each look is a command of its own
    terminal.type(b"\x03")
    terminal.type(b"echo ended-$?\r")
    terminal.until(b"ended-130")


def test_the_sessions_size_follows_the_clients_window(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    shell(host_home, "sized")
    opened.append(terminal := gateway.terminal("sized", key, size=Size(91, 31)))
    terminal.until_shown("$")
    terminal.type(b"stty size\r")
    terminal.until(b"31 91")
    terminal.resize(Size(77, 22))  # which `ssh` may tell behind the keys that follow it
    resized = {"cols": 77, "rows": 22}
    until("it is resized", lambda: host_home.json("show", "sized")["size"] == resized)
    terminal.type(b"stty size\r")
    terminal.until(b"22 77")


def test_a_full_screen_editor_works(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal], tmp_path: Path
) -> None:
    written = tmp_path / "written"  # a session does not see its host's own directory
    shell(host_home, "edited")
    opened.append(terminal := gateway.terminal("edited", key))
    terminal.until_shown("$")
    terminal.type(f"vim -u NONE -i NONE -N {written}\r".encode())
    terminal.until_true(lambda _: terminal.screen.mode(1049))
    terminal.type(b"iover ssh\x1b:wq\r")
    terminal.until_true(lambda _: not terminal.screen.mode(1049))
    terminal.type(b"echo wrote-$?\r")
    terminal.until(b"wrote-0")
    assert written.read_text() == "over ssh\n"


def test_a_long_paste_arrives_whole(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    runs(host_home, "paste", "stty raw -echo; echo ready; head -c 300000 | sha256sum; read x")
    opened.append(terminal := gateway.terminal("paste", key))
    terminal.until(b"ready")
    host_home.attached("paste")
    # No ~ at the beginning of a line: that is ssh's own.
    text = (bytes(range(32, 126)) * 3200)[:300_000]
    terminal.type(text)
    terminal.until(hashlib.sha256(text).hexdigest().encode())


def test_the_sessions_end_is_the_clients_exit_status(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    shell(host_home, "ending")
    opened.append(terminal := gateway.terminal("ending", key))
    terminal.until_shown("$")
    terminal.type(b"exit 3\r")
    assert terminal.wait() == 3


# -- leaving ------------------------------------------------------------------------------------


def test_leaving_with_the_clients_own_escape_ends_only_its_child(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    pid = shell(host_home, "escaped")
    gateway.clients_are(0)
    opened.append(terminal := gateway.terminal("escaped", key))
    terminal.until_shown("$")
    host_home.attached("escaped")
    gateway.clients_are(1)
    terminal.type(b"\r")
    terminal.type(b"~.")
    assert terminal.wait() == 255  # ssh's own word for a connection that was cut
    gateway.clients_are(0)
    shown = host_home.json("show", "escaped")
    assert (shown["pid"], shown["state"], shown["operators"]) == (pid, "prompt", 0)


def test_a_gateway_that_is_killed_takes_its_clients_and_no_session_with_it(
    host_home: Hold, key: Path, opened: list[Terminal]
) -> None:
    pid = shell(host_home, "orphaned")
    with GatewayProcess(host_home) as doomed:
        opened.append(terminal := doomed.terminal("orphaned", key))
        terminal.until_shown("$")
        terminal.type(b"kept=here; echo set-$kept\r")
        terminal.until(b"set-here")
        doomed.clients_are(1)
        (client,) = doomed.clients()
        assert doomed.end(signal.SIGKILL) == -signal.SIGKILL
        assert ends(client)
        assert terminal.wait() == 255
    with GatewayProcess(host_home, doomed.port) as next_one:
        # The same key: OpenSSH would refuse another one at that port.
        assert next_one.fingerprint == doomed.fingerprint
        done = next_one.ssh("orphaned", key, "echo $kept")
    assert (done.returncode, done.stdout) == (0, "here\n"), done
    assert host_home.json("show", "orphaned")["pid"] == pid


def test_a_command_whose_gateway_is_killed_goes_on_but_nobody_waits_for_it(
    host_home: Hold, key: Path
) -> None:
    shell(host_home, "unwaited")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup would start it
    try:
        doomed = GatewayProcess(host_home)
    finally:
        signal.signal(signal.SIGHUP, before)
    with doomed:
        waiting = subprocess.Popen(
            [SSH, *doomed.words("unwaited", key), "127.0.0.1", "read line; echo got-$line"],
            env=host_home.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        host_home.ok("wait", "unwaited", "--for", "input", "--timeout", "20")
        (child,) = doomed.clients()
        doomed.end(signal.SIGKILL)
        assert ends(child)
        assert waiting.wait(40) == 255
    host_home.ok("send", "unwaited", "--enter", "on")
    host_home.ok("wait", "unwaited", "--for", "text:got-on", "--timeout", "20")


def test_a_gateway_that_is_told_to_end_says_so_and_leaves_nothing_behind(
    host_home: Hold, key: Path, opened: list[Terminal]
) -> None:
    shell(host_home, "closing")
    with GatewayProcess(host_home) as ending:
        opened.append(terminal := ending.terminal("closing", key))
        terminal.until_shown("$")
        (client,) = ending.clients()
        assert ending.end() == 0
        assert ends(client)
        assert terminal.wait() == 69
        assert terminal.settings() == terminal.settings_before
        assert b"the gateway is stopping; the session continues" in terminal.seen
    assert host_home.json("show", "closing")["state"] == "prompt"


# -- commands -----------------------------------------------------------------------------------


def test_a_command_runs_in_the_sessions_shell_with_its_output_and_status(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    shell(host_home, "commanded")
    assert gateway.ssh("commanded", key, "cd /usr; here=set").returncode == 0
    done = gateway.ssh("commanded", key, "echo", "$here in $PWD", "&&", "(exit 7)")
    assert (done.returncode, done.stdout) == (7, "set in /usr\n"), done
    assert "hold:" not in done.stderr


def test_everything_done_is_recorded_as_the_actor_of_the_key(
    host_home: Hold, gateway: GatewayProcess, key: Path, opened: list[Terminal]
) -> None:
    shell(host_home, "recorded")
    gateway.ssh("recorded", key, "echo by-command")
    opened.append(terminal := gateway.terminal("recorded", key))
    terminal.until_shown("$")
    terminal.type(b"echo by-$((1))-key\r")
    terminal.until(b"by-1-key")
    lines = host_home.ok("log", "recorded").splitlines()
    did = [line.split()[3] for line in lines if " ran by exec" in line or " typed " in line]
    assert len(did) >= 2 and set(did) == {"bot"}, lines


# -- who is let in ------------------------------------------------------------------------------


def test_a_key_that_was_not_let_in_is_refused_and_no_password_is_asked_for(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    shell(host_home, "closed")
    stranger = make_key(host_home, "stranger")
    done = gateway.ssh("closed", stranger, "echo in")
    assert (done.returncode, done.stdout) == (255, "")
    assert "Permission denied (publickey)" in done.stderr
    assert "in" not in host_home.ok("tail", "closed").split()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_session_that_is_not_there_or_not_permitted_gives_one_sentence(
    host_home: Hold, gateway: GatewayProcess, key: Path, terminal: bool, opened: list[Terminal]
) -> None:
    name = "private-t" if terminal else "private"
    host_home.shell(name)  # without the label: nothing of it is bot's
    for session in ("nowhere", name):
        if terminal:
            opened.append(window := gateway.terminal(session, key))
            assert window.wait() in (66, 77)
            said = window.seen.decode()
        else:
            done = gateway.ssh(session, key, "echo in")
            assert done.returncode in (66, 77), done
            said = done.stderr
        complaints = [line for line in said.splitlines() if line.startswith("hold: ")]
        assert len(complaints) == 1 and session in complaints[0], said
        assert "Traceback" not in said


def test_without_a_terminal_and_a_command_it_is_said_what_to_do(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    done = gateway.ssh("any", key)
    assert done.returncode == 64
    assert "attaching needs a terminal (usage); `ssh -t`" in done.stderr


def test_a_key_that_is_removed_is_out_at_once_also_where_it_is_connected(
    host_home: Hold, gateway: GatewayProcess, opened: list[Terminal]
) -> None:
    pid = shell(host_home, "shown-out")
    add_actor(host_home, "guest", "execute", "shown-out")
    guest = make_key(host_home, "guest")
    host_home.ok("sshd", "authorize", f"{guest}.pub", "--as", "guest")
    opened.append(terminal := gateway.terminal("shown-out", guest))
    terminal.until_shown("$")
    host_home.ok("sshd", "remove", f"{guest}.pub")
    assert terminal.wait() == 69
    assert b"this key is no longer authorized" in terminal.seen
    assert gateway.ssh("shown-out", guest, "echo in").returncode == 255
    assert host_home.json("show", "shown-out")["pid"] == pid


def test_a_revoked_actors_ssh_key_can_do_nothing(host_home: Hold, gateway: GatewayProcess) -> None:
    shell(host_home, "revoking")
    add_actor(host_home, "former", "execute", "revoking")
    former = make_key(host_home, "former")
    host_home.ok("sshd", "authorize", f"{former}.pub", "--as", "former")
    assert gateway.ssh("revoking", former, "true").returncode == 0
    host_home.ok("actor", "revoke", "former")
    done = gateway.ssh("revoking", former, "true")
    assert done.returncode == 77 and "revoked" in done.stderr, done


def test_a_name_that_came_to_stand_for_another_actor_does_not_take_the_key_along(
    host_home: Hold, gateway: GatewayProcess
) -> None:
    shell(host_home, "renamed")
    add_actor(host_home, "worker", "execute", "renamed")
    worker = make_key(host_home, "worker")
    host_home.ok("sshd", "authorize", f"{worker}.pub", "--as", "worker")
    host_home.ok("actor", "revoke", "worker")
    add_actor(host_home, "worker", "execute", "renamed")  # another one, by a new key
    assert host_home("--as", "worker", "exec", "renamed", "--", "true").returncode == 0
    done = gateway.ssh("renamed", worker, "true")
    assert done.returncode == 77 and "another actor" in done.stderr, done


@pytest.mark.requirement("A8")
def test_a_line_from_an_ssh_client_is_judged_by_the_policy(
    host_home: Hold, gateway: GatewayProcess, key: Path, tmp_path: Path
) -> None:
    shell(host_home, "judged")
    policy = 'default = "hold"\n[[rule]]\nwho = ["human"]\nthen = "allow"\n'
    host_home.ok("policy", "set", "-", "--session", "judged", stdin=policy.encode())
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(gateway.ssh, "judged", key, f"touch {tmp_path}/out; (exit 3)")
        asked = until("it is held", lambda: host_home.json("approvals", "judged"))
        assert asked[0]["actor"] == "bot" and not (tmp_path / "out").exists()
        host_home.ok("approve", asked[0]["id"])
        assert waiting.result(PATIENCE_S).returncode == 3 and (tmp_path / "out").exists()
    refuse = policy.replace('"hold"', '"refuse"')
    host_home.ok("policy", "set", "-", "--session", "judged", stdin=refuse.encode())
    done = gateway.ssh("judged", key, f"rm {tmp_path}/out")
    assert done.returncode == 77 and "gate_refused" in done.stderr, done
    assert (tmp_path / "out").exists()


# -- what there is not --------------------------------------------------------------------------


def test_nothing_is_forwarded_and_no_files_are_transferred(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    shell(host_home, "only")
    reached = gateway.ssh("only", key, options=("-W", f"127.0.0.1:{gateway.port}"))
    assert reached.returncode != 0 and "SSH-2.0" not in reached.stdout
    assert "administratively prohibited" in reached.stderr or "open failed" in reached.stderr
    back = ("-R", "0:127.0.0.1:1", "-o", "ExitOnForwardFailure=yes")
    assert gateway.ssh("only", key, "true", options=back).returncode == 255
    files = gateway.ssh("only", key, "sftp", options=("-s",))
    assert files.returncode != 0 and "subsystem request failed" in files.stderr


def test_nothing_the_client_wants_set_reaches_the_child(
    host_home: Hold, gateway: GatewayProcess, key: Path
) -> None:
    """HOLDFAST_AS above all: whose hand it is, is not for the client to say."""
    shell(host_home, "unset")
    wanted = ("-o", "SetEnv=HOLDFAST_AS=nobody HOLDFAST_HOME=/nowhere PYTHONPATH=/nowhere")
    done = gateway.ssh("unset", key, "echo in", options=wanted)
    assert (done.returncode, done.stdout) == (0, "in\n"), done


def test_the_gateways_key_and_list_are_its_owners_alone(
    host_home: Hold, gateway: GatewayProcess
) -> None:
    for name in ("ssh_host_key", "ssh_authorized"):
        mode = os.stat(Path(host_home.home, name)).st_mode
        assert stat.S_IMODE(mode) == 0o600, name
    assert gateway.fingerprint.startswith("SHA256:")
