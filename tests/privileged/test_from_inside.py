"""A `hold` that runs inside a session has what the actors behind it have, and no more (A11)."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup
from process.acting import add_actor, key_file
from process.commanding import HOLD, Hold
from process.waiting import until

_SETSID = "import os, sys\nif os.fork(): os.waitpid(-1, 0); sys.exit()\nos.setsid()\n"
# Forks twice and leads a kernel session of its own; its first child has ended before it connects.
_DOUBLE_FORK = _SETSID + (
    "if os.fork(): sys.exit()\n"
    "while os.getppid() not in (1, int(sys.argv[1])): pass\n"
    "os.dup2(os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY), 2)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)


@pytest.fixture(autouse=True)
def _possible() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2: {why}")


@pytest.fixture(scope="module")
def hold() -> Iterator[Hold]:
    """A host with an agent, otto, that may execute in every session."""
    with Hold() as hold:
        hold.env["PATH"] = f"{Path(HOLD).parent}:{hold.env['PATH']}"
        hold.ok("up", "-d")
        hold("host", "--relay", "http://127.0.0.1:9")  # nobody is there; invites need one
        add_actor(hold, "otto", "execute", "--all")
        yield hold


def lab(hold: Hold, name: str, level: str = "contained", *options: str) -> str:
    """A shell session at this level; gives its name."""
    hold.ok("run", "-d", "--name", name, "--level", level, *options, "--", "bash", "--norc")
    hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    return name


def by(hold: Hold, actor: str, name: str, line: str) -> subprocess.CompletedProcess[str]:
    """A command line typed in the session by this actor; "" is the unix user's own."""
    return hold(*(("--as", actor) if actor else ()), "exec", name, "--", line)


def role(hold: Hold, actor: str) -> list[str]:
    """Of each of its envelopes; "" when it is none, or not a whole one."""
    return [each["role"] for each in hold.json("actor", "show", actor)["envelopes"]]


def written(path: Path) -> str:
    return until(f"{path.name} is written", lambda: path.read_text() if path.exists() else "")


SENSITIVE = (
    "hold grant otto admin {}",
    "hold grant otto admin --all",
    "hold revoke otto {}",
    "hold actor add mallory",
    "hold actor revoke otto",
    "hold invite --all --role admin",
    "hold seize {}",
    "hold end {}",
    "hold down --end-sessions",
    "hold daemon restart",
)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("level", ["contained", "plain"])
@pytest.mark.parametrize("line", SENSITIVE, ids=lambda line: line.partition(" {")[0])
def test_an_agent_cannot_give_itself_rights_by_a_command_in_its_session(
    hold: Hold, level: str, line: str
) -> None:
    name = lab(hold, f"deed-{level}-{SENSITIVE.index(line)}", level)
    done = by(hold, "otto", name, line.format(name))
    assert done.returncode != 0
    assert "(not_permitted); " in done.stdout, done  # the code, and what to do instead
    assert hold.json("show", name)["state"] != "ended"
    assert "admin" not in role(hold, "otto")
    if level == "plain":
        assert "from inside a session" in done.stdout and "run it in a terminal" in done.stdout


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("level", ["contained", "plain"])
def test_a_double_fork_in_a_session_of_its_own_leads_nowhere(
    hold: Hold, level: str, tmp_path: Path
) -> None:
    name = lab(hold, f"forks-{level}", level)
    program, said = tmp_path / "fork.py", tmp_path / "said"
    program.write_text(_DOUBLE_FORK)
    init = os.getppid() if level == "contained" else _init_of(hold, name)
    words = f"{sys.executable} {program} {init} {said} {HOLD} grant otto admin {name}"
    assert by(hold, "otto", name, f"env -u HOLDFAST_SESSION {words}").returncode == 0
    wait = by(hold, "", name, f"until grep -q not_permitted {said}; do sleep 0.05; done")
    assert wait.returncode == 0, said.read_text()
    assert "admin" not in role(hold, "otto")


def _init_of(hold: Hold, name: str) -> int:
    shell = hold.json("show", name)["pid"]
    return int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[1])


_STARTS = 8  # before this held, five of six connections came early enough
# Says who the connection that it was given acts as.
_WHO_AM_I = """
import socket, sys
from holdfast.sdk.connection import new_operator
from holdfast.wire.frames import Decoder, encode
from holdfast.wire.messages.access import ShowActor
from holdfast.wire.messages.session import PROTOCOL_VERSION, Hello

host, decoder, heard = socket.socket(fileno=7), Decoder(1 << 20), []
host.sendall(encode(Hello((PROTOCOL_VERSION,), new_operator())) + encode(ShowActor(1, "")))
while len(heard) < 2:
    heard += decoder.feed(host.recv(65536))
open(sys.argv[1], "w").write(heard[1].actor.name)
"""


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("level", ["contained", "plain"])
def test_a_connection_made_before_the_daemon_knows_its_session_is_from_inside(
    hold: Hold, level: str, tmp_path: Path
) -> None:
    program, source = tmp_path / "connect", Path(__file__).with_name("connect_at_once.c")
    subprocess.run(["cc", "-O1", "-static", str(source), "-o", str(program)], check=True)
    script, names = tmp_path / "who.py", []
    script.write_text(_WHO_AM_I)
    for number in range(_STARTS):
        said, name = tmp_path / f"said-{number}", f"quick-{level}-{number}"
        words = [program, f"{hold.home}/run/hold.sock", sys.executable, script, said]
        hold.ok(
            *("--as", "otto", "run", "-d", "--name", name, "--level", level),
            *("--", *map(str, words)),
        )
        names.append(written(said))
    assert names == ["otto"] * _STARTS


_ASKS_WHEN_TOLD = """
import os, time
from holdfast.sdk.client import Host
from holdfast.wire.messages.access import ShowActor

open("runs", "w").close()
while os.path.exists("wait"):
    time.sleep(0.05)
try:
    with Host(client="test") as host:
        said = host.connection.ask(ShowActor(host.connection.next_id(), "")).actor.name
except Exception as error:
    said = str(error)
print(said, flush=True)
"""


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("level", ["contained", "plain"])
def test_a_session_that_is_not_served_now_is_not_outside(
    hold: Hold, level: str, tmp_path: Path
) -> None:
    # Without its gate: that needs the keeper, so whoever connects would wait for it to go on.
    name = lab(
        hold, f"unserved-{level}", level, *(("--gate", "off") if level == "contained" else ())
    )
    script, said = tmp_path / "asks.py", tmp_path / "said"
    script.write_text(_ASKS_WHEN_TOLD)
    shown = hold.json("show", name)
    line = f"cd {tmp_path}; touch wait; {sys.executable} {script} >{said} &"
    assert by(hold, "otto", name, line).returncode == 0
    until("it runs", (tmp_path / "runs").exists)
    os.kill(shown["keeper_pid"], signal.SIGSTOP)
    try:
        hold.ok("daemon", "restart")
        assert name not in [each["name"] for each in hold.json("ls")]
        (tmp_path / "wait").unlink()
        written(said)
    finally:
        os.kill(shown["keeper_pid"], signal.SIGCONT)
    assert "the session that this runs in is not served" in said.read_text()
    until("it is served again", lambda: name in [each["name"] for each in hold.json("ls")])
    assert hold.json("show", name)["pid"] == shown["pid"]


@pytest.mark.requirement("A11")
def test_a_nested_hold_acts_as_the_actor_that_typed_it(hold: Hold) -> None:
    here, there = lab(hold, "here"), lab(hold, "there")
    own = hold.json("actor", "show")["name"]
    for actor in ("otto", ""):
        shown = by(hold, actor, here, "hold actor show | head -1")
        assert shown.stdout.split() == ["name", actor or own], shown
        listed = by(hold, actor, here, "hold ls")
        assert "here" in listed.stdout and "there" in listed.stdout
        ran = by(hold, actor, here, f"hold exec {there} -- echo ran by ${{HOLDFAST_NAME}}")
        assert "ran by here" in ran.stdout, ran
        started = by(hold, actor, here, f"hold run -d --name by-{actor or 'own'} -- cat")
        assert started.returncode == 0, started
    typed = hold.ok("log", there, "--actor", "otto")
    assert "ran by here" in typed, "what the agent did elsewhere is recorded as the agent's"


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("level", ["contained", "plain"])
def test_a_nested_attach_is_a_terminal_in_another_session(hold: Hold, level: str) -> None:
    here, there = lab(hold, f"nests-{level}", level), lab(hold, f"nested-{level}")
    hold.ok("--as", "otto", "send", here, "--enter", f"hold attach {there}")
    hold.ok("wait", here, "--for", f"text:attached to {there}", "--timeout", "20")
    hold.ok("--as", "otto", "send", here, "--enter", "echo typed-$((40+2))")
    hold.ok("wait", there, "--for", "text:typed-42", "--timeout", "20")
    hold.ok("wait", here, "--for", "text:typed-42", "--timeout", "20")
    if level == "contained":  # where the kernel says whose command the client is
        assert "typed-$((40+2))" in hold.ok("log", there, "--actor", "otto")
    hold.ok("--as", "otto", "keys", here, "C-\\", "d")
    hold.ok("wait", here, "--for", f"text:detached from {there}", "--timeout", "20")
    assert by(hold, "otto", here, "echo here again").stdout == "here again\n"
    assert hold.json("show", there)["state"] == "prompt"


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("inner", ["contained", "plain"])
def test_an_agent_gets_no_more_by_a_session_that_it_starts(hold: Hold, inner: str) -> None:
    here, kept = lab(hold, f"starts-{inner}"), lab(hold, f"kept-from-otto-{inner}")
    hold.ok("revoke", "otto", kept)
    tries = f"hold exec {kept} -- true; hold grant otto admin --all; hold ls; echo tried; sleep 60"
    by(hold, "otto", here, f"hold run -d --name inner-{inner} --level {inner} -- sh -c '{tries}'")
    hold.ok("wait", f"inner-{inner}", "--for", "text:(?m)^tried", "--timeout", "20")
    screen = hold.ok("screen", f"inner-{inner}", "--scrollback")
    assert "(access_revoked)" in screen and "(not_permitted)" in screen, screen
    assert f"\n{kept} " not in screen and f"\n{here} " in screen, screen
    assert "admin" not in role(hold, "otto")


@pytest.mark.requirement("A11")
def test_at_level_plain_everybody_that_wrote_in_the_session_is_behind_what_runs_there(
    hold: Hold,
) -> None:
    here, there = lab(hold, "both-plain", "plain"), lab(hold, "not-for-visitor")
    add_actor(hold, "visitor", "execute", here)
    ran = by(hold, "", here, f"hold exec {there} -- echo reached")
    assert "reached" in ran.stdout, ran
    assert by(hold, "visitor", here, "true").returncode == 0
    hold.ok("daemon", "restart")
    hold.ok("wait", here, "--for", "prompt", "--timeout", "20")
    for actor in ("", "visitor"):
        done = by(hold, actor, here, f"hold exec {there} -- echo reached")
        assert "(not_permitted)" in done.stdout and "visitor" in done.stdout, done


@pytest.mark.requirement("A11")
def test_the_host_user_alone_in_its_session_keeps_all_its_rights(hold: Hold) -> None:
    here, there = lab(hold, "alone"), lab(hold, "victim")
    add_actor(hold, "friend")
    for line in (
        f"hold grant friend read {there}",
        f"hold seize {there}",
        f"hold end {there}",
    ):
        done = by(hold, "", here, line)
        assert done.returncode == 0, done
    assert role(hold, "friend") == ["read"]


@pytest.mark.requirement("A11")
def test_what_gives_rights_needs_everybody_that_wrote_in_the_session(hold: Hold) -> None:
    here = lab(hold, "shared")
    add_actor(hold, "guest")
    assert by(hold, "otto", here, "hold() { command hold grant otto admin --all; }").returncode == 0
    done = by(hold, "", here, "hold ls")  # what otto left there runs as the admin's command
    assert "(not_permitted)" in done.stdout and "admin" not in role(hold, "otto"), done


@pytest.mark.requirement("A11")
def test_another_actors_text_at_the_prompt_has_both_behind_it(hold: Hold) -> None:
    here, there = lab(hold, "finished"), lab(hold, "not-reached")
    add_actor(hold, "helper", "execute", here)
    hold.ok("--as", "helper", "send", here, f"hold exec {there} -- true || ")
    hold.ok("seize", here)
    hold.ok("send", here, f"echo refused: {here}", "--enter")
    hold.ok("wait", here, "--for", "text:(?m)^refused: ", "--timeout", "20")
    screen = hold.ok("screen", here)
    assert "helper" in screen and "(not_permitted)" in screen, screen
    ran = by(hold, "", here, f"hold exec {there} -- echo its own again")
    assert "its own again" in ran.stdout, ran


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("way", ["exec", "send", "run"])
def test_rights_are_not_given_by_way_of_another_session_either(hold: Hold, way: str) -> None:
    """What a person runs here may be what an agent planted here, also when it writes elsewhere."""
    here, there = lab(hold, f"from-{way}"), f"by-{way}"
    assert by(hold, "otto", here, "true").returncode == 0
    deed = "hold grant otto admin --all 2>&1; echo tried-$((40+2))"
    if way == "run":
        line = f"hold run -d --name {there} -- sh -c '{deed}; sleep 60'"
    else:
        lab(hold, there)
        assert "otto has" in by(hold, "", there, f"hold grant otto execute {there}").stdout
        line = f"hold {way} {there} {'--' if way == 'exec' else '--enter'} '{deed}'"
    assert by(hold, "", here, line).returncode == 0
    hold.ok("wait", there, "--for", "text:(?m)^tried-42", "--timeout", "20")
    screen = hold.ok("screen", there, "--scrollback")
    assert "an actor that wrote in" in screen and "(not_permitted)" in screen, screen
    assert "admin" not in role(hold, "otto")
    hold.ok("daemon", "restart")  # it is kept
    again = by(hold, "", there, "hold grant otto admin --all") if way != "run" else None
    assert again is None or "(not_permitted)" in again.stdout


@pytest.mark.requirement("A11")
def test_a_root_program_that_moves_itself_to_another_group_is_still_inside(
    hold: Hold, tmp_path: Path
) -> None:
    """As a session without a cgroup namespace of its own could do, or with help from outside."""
    name = lab(hold, "moved")
    said, go = tmp_path / "said", tmp_path / "go"
    os.mkfifo(go)
    line = f"(read _ < {go}; exec hold grant otto admin {name}) 2> {said} & echo pid=$!"
    done = by(hold, "otto", name, line)
    inner = int(done.stdout.split("pid=")[1].split()[0])
    pid = _outer(inner, name, hold)
    cgroup.enter(_top(), pid)
    go.write_text("\n")
    wait = by(hold, "", name, f"until [ -s {said} ]; do sleep 0.05; done; cat {said}")
    assert "(not_permitted)" in wait.stdout, wait
    assert "admin" not in role(hold, "otto")


def _top() -> str:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return line.split()[4]
    raise AssertionError("no cgroup2")


def _outer(inner: int, name: str, hold: Hold) -> int:
    """Our number of the session's process `inner`."""
    shell = hold.json("show", name)["pid"]
    namespace = os.readlink(f"/proc/{shell}/ns/pid")
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{entry}/ns/pid") != namespace:
                continue
            lines = Path(f"/proc/{entry}/status").read_text().splitlines()
        except OSError:
            continue
        if next(line for line in lines if line.startswith("NSpid")).split()[-1] == str(inner):
            return int(entry)
    raise AssertionError(f"no process {inner} in {name}")


@pytest.mark.requirement("A11")
def test_keys_and_the_hosts_state_are_not_visible_in_a_contained_session(hold: Hold) -> None:
    name = lab(hold, "blindfolded")
    boss(hold)
    assert os.listdir(f"{hold.home}/run/keepers")
    seen = by(hold, "otto", name, f"find {hold.home} -type f -o -type s; ls -A {hold.home}")
    words = seen.stdout.split()
    assert words[-1] == "run" and not [each for each in words if each.endswith(".key")], seen
    assert [each for each in words if each.endswith(".sock")] == [f"{hold.home}/run/hold.sock"]
    done = by(hold, "otto", name, "hold --as boss grant otto admin --all")
    assert "(no_such_actor)" in done.stdout and "--with-keys" in done.stdout, done
    done = by(hold, "otto", name, f"touch {hold.home}/x")
    assert "Read-only" in done.stdout
    done = by(hold, "otto", name, "test -r $HOLDFAST_TOKEN_FILE && hold ls")
    assert done.returncode == 0, done
    assert "admin" not in role(hold, "otto")


@pytest.mark.requirement("A11")
def test_a_session_sees_keys_only_if_an_admin_outside_says_so(hold: Hold) -> None:
    boss(hold)
    words = ("--level", "contained", "--with-keys", "--", "bash", "--norc")
    hold.fails("not_permitted", "--as", "otto", "run", "-d", *words)
    hold.ok("run", "-d", "--name", "trusting", *words)
    hold.ok("wait", "trusting", "--for", "prompt", "--timeout", "20")
    own = by(hold, "", "trusting", "hold --as boss actor show | head -1")
    assert own.stdout.split() == ["name", "boss"], own
    nested = by(hold, "", "trusting", f"hold run -d {' '.join(words)}")
    assert "(not_permitted)" in nested.stdout, nested


@pytest.mark.requirement("A11")
def test_the_keys_of_a_users_own_directory_are_hidden_from_its_sessions(hold: Hold) -> None:
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as directory:
        keys = Path(directory, "cfg", "holdfast", "actor-keys")
        keys.mkdir(parents=True)
        (keys / "x.key").write_text("secret")
        other = Path(directory, "mine")
        other.write_text("mine")
        entry = pwd.getpwnam("nobody")
        for path in (Path(directory), *Path(directory).rglob("*")):
            os.chown(path, entry.pw_uid, entry.pw_gid)
        env = ("--env", f"XDG_CONFIG_HOME={directory}/cfg", "--env", "HOLDFAST_HOME=")
        words = ("--user", "nobody", "--level", "contained", *env, "--cwd", "/", "--", "sh", "-c")
        session = hold.ok("run", "-d", *words, f"cat {keys}/x.key; cat {other}; sleep 60").strip()
        hold.ok("wait", session, "--for", "text:mine", "--timeout", "20")
        screen = hold.ok("screen", session)
        assert "No such file" in screen and "secret" not in screen, screen


@pytest.mark.requirement("A11")
def test_keys_that_are_made_while_a_session_runs_are_hidden_from_it(hold: Hold) -> None:
    entry = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as directory:
        os.chown(directory, entry.pw_uid, entry.pw_gid)
        env = ("--env", f"XDG_CONFIG_HOME={directory}/cfg", "--env", "HOLDFAST_HOME=")
        words = ("--user", "nobody", "--level", "contained", *env, "--cwd", "/", "--", "bash")
        session = hold.ok("run", "-d", *words, "--norc").strip()
        hold.ok("wait", session, "--for", "prompt", "--timeout", "20")
        made = os.stat(f"{directory}/cfg/holdfast")
        assert (made.st_uid, made.st_mode & 0o777) == (entry.pw_uid, 0o700)
        keys = Path(directory, "cfg", "holdfast", "actor-keys")
        keys.mkdir()
        (keys / "x.key").write_text("secret")
        for path in (keys, keys / "x.key"):
            os.chown(path, entry.pw_uid, entry.pw_gid)
        done = hold("exec", session, "--", f"cat {keys}/x.key")
        assert done.returncode == 1 and "No such file" in done.stdout, done


@pytest.mark.requirement("A11", "S1")
@pytest.mark.parametrize("level", ["contained", "plain"])
def test_a_host_is_not_started_from_inside_its_own_session(level: str, tmp_path: Path) -> None:
    """It would end with the session, and every other session would be without it."""
    said, go = tmp_path / "said", tmp_path / "go"
    os.mkfifo(go)
    said.touch()
    with Hold() as hold:
        hold.env["PATH"] = f"{Path(HOLD).parent}:{hold.env['PATH']}"
        hold.ok("up", "-d")
        name = lab(hold, "starter", level)
        tries = "read _; hold up -d; hold ls; hold run -d -- cat; echo tried"
        by(hold, "", name, f"sh -c '{tries}' < {go} > {said} 2>&1 &")
        hold.ok("down")
        go.write_text("\n")
        deadline = time.monotonic() + 20
        while not said.read_text().endswith("tried\n"):
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.02)
        lines = said.read_text().splitlines()[:-1]
        assert len(lines) == 3 and all("in a terminal that is not in" in each for each in lines)
        hold.ok("up", "-d")
        assert by(hold, "", name, "echo still here").stdout.strip() == "still here"


def test_a_link_of_a_user_hides_no_directory_of_others(hold: Hold) -> None:
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as directory:
        os.symlink("/etc", f"{directory}/holdfast")
        os.chmod(directory, 0o755)
        env = ("--env", f"XDG_CONFIG_HOME={directory}", "--env", "HOLDFAST_HOME=")
        words = ("--user", "nobody", "--level", "contained", *env, "--cwd", "/", "--", "sh", "-c")
        session = hold.ok("run", "-d", *words, "cat /etc/passwd; echo done; sleep 60").strip()
        hold.ok("wait", session, "--for", "text:done", "--timeout", "20")
        assert "nobody" in hold.ok("screen", session)


def boss(hold: Hold) -> Path:
    """The key file of an admin."""
    if not key_file(hold, "boss").exists():
        add_actor(hold, "boss", "admin", "--all")
    return key_file(hold, "boss")


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("level", ["contained", "plain"])
def test_the_key_of_an_admin_does_not_help_inside(hold: Hold, level: str, tmp_path: Path) -> None:
    """A copy of the key, at a place that the session sees."""
    name = lab(hold, f"copied-{level}", level)
    copy = tmp_path / "boss.key"
    copy.write_bytes(boss(hold).read_bytes())
    done = by(hold, "otto", name, f"hold --as {copy} grant otto admin --all")
    assert "(not_permitted)" in done.stdout, done
    assert "admin" not in role(hold, "otto")
    if level == "contained":
        done = by(hold, "otto", name, f"hold --as {copy} ls; hold --as {copy} halt {name}-x")
        assert name in done.stdout


@pytest.mark.requirement("A11", "A2")
def test_a_connection_ends_when_an_actor_behind_it_loses_rights(hold: Hold, tmp_path: Path) -> None:
    here, there = lab(hold, "reads-on"), lab(hold, "is-read")
    copy, said = tmp_path / "boss.key", tmp_path / "said"
    copy.write_bytes(boss(hold).read_bytes())
    reads = f"hold --as {copy} tail -f {there} > {said} 2>&1"
    assert by(hold, "otto", here, f"({reads}; echo over >> {said}) &").returncode == 0
    hold.ok("exec", there, "--", "echo to be read")
    wait = "until grep -q '{}' {}; do sleep 0.05; done"
    assert by(hold, "", here, wait.format("to be read", said)).returncode == 0
    hold.ok("revoke", "otto", there)
    assert by(hold, "", here, wait.format("^over", said)).returncode == 0
    assert "(not_permitted)" in said.read_text(), said.read_text()
    hold.ok("exec", there, "--", "echo not to be read")
    assert "not to be" not in said.read_text()
