"""The exec gate of a contained session: what its processes execute and open for writing is judged
before it happens, whoever dies meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters.halt import cgroup, freeze
from holdfast.adapters.seccomp import filter as seccomp
from holdfast.adapters.seccomp.gate_page import GatePage
from holdfast.model.gate import ALLOWED, EffectKind, Outcome, Part, ProposedEffect, Verdict
from holdfast.model.state import Level
from process import gated
from process.gated import ANN, BOB, Gated, RulePolicy, refusing
from process.launching import Running, Sessions

NOBODY = 65534
LOOP = 2000  # execs while everything is killed

Scene = Callable[[Gated], Awaitable[None]]


@pytest.fixture
def sessions() -> Iterator[Sessions]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    why = cgroup.unavailable() or seccomp.unavailable()
    if why:
        pytest.skip(f"needs cgroup v2 and seccomp: {why}")
    with Sessions(Level.CONTAINED) as running:
        yield running


def play(running: Running, scene: Scene, *, policy_in_force: bool = True) -> None:
    """One scene, with the gate of a daemon around it."""
    run = gated.run_directory()

    async def whole() -> None:
        policy = RulePolicy()
        policy.on = policy_in_force
        gate = Gated(running, policy, run)
        try:
            gate.writes(ANN)
            await scene(gate)
        finally:
            gate.end()

    try:
        asyncio.run(whole())
    finally:
        shutil.rmtree(run)


def shell(sessions: Sessions, uid: int = 0, cwd: str = "/") -> Running:
    return sessions.launch("sh", gate=True, uid=uid, gid=uid, cwd=cwd)


def held(*names: str) -> Callable[[ProposedEffect], Verdict]:
    """These programs need somebody's approval."""

    def rule(effect: ProposedEffect) -> Verdict:
        if effect.path.rsplit("/", 1)[-1] in names and not effect.approved_by:
            return Verdict(Outcome.HOLD, "the test asks", "session")
        return ALLOWED

    return rule


def inside(directory: str) -> Callable[[ProposedEffect], Verdict]:
    """Files are written in that directory only."""

    def rule(effect: ProposedEffect) -> Verdict:
        if effect.kind is not EffectKind.WRITE_OPEN or effect.path.startswith(f"{directory}/"):
            return ALLOWED
        return Verdict(Outcome.REFUSE, f"outside of {directory}", "session")

    return rule


def refusing_all(effect: ProposedEffect) -> Verdict:
    return Verdict(Outcome.REFUSE, "the test says no", "session")


# -- when it is judged ----------------------------------------------------------------------------


def test_without_a_policy_no_answerer_is_started_and_without_a_rule_none_is_asked(
    sessions: Sessions,
) -> None:
    async def scene(gate: Gated) -> None:
        gate.writes(BOB)
        line = "/bin/echo one; echo two > /tmp/hf-two; rm /tmp/hf-two"
        assert await gate.ask(line) == "one"
        assert gate.link.pid is None
        gate.policy.on = True
        gate.gate.changed()
        assert await gate.ask(line) == "one"
        assert gate.link.pid is not None and gate.policy.seen == []

    play(shell(sessions), scene, policy_in_force=False)


@pytest.mark.requirement("A8")
def test_a_refused_program_is_not_run_and_who_is_behind_it_is_recorded(sessions: Sessions) -> None:
    async def scene(gate: Gated) -> None:
        gate.writes(BOB, ANN)
        gate.set_rule(refusing("date"))
        seen = await gate.ask("cd /usr; ONE=two date -u; echo $?")
        assert "Operation not permitted" in seen and "UTC" not in seen and seen.endswith("126")
        ((effect, verdict),) = gate.recorded
        assert (effect.path, effect.argv, effect.cwd) == ("/usr/bin/date", ("date", "-u"), "/usr")
        assert effect.environment == ("ONE=two",)
        assert [each.name for each in effect.contributors] == ["bob", "ann"]
        assert verdict.reason == "the test says no"

    play(shell(sessions), scene)


def test_a_rule_that_comes_later_and_goes_again_counts_from_then_on(sessions: Sessions) -> None:
    async def scene(gate: Gated) -> None:
        for _ in range(3):
            assert "UTC" in await gate.ask("date -u")
            gate.set_rule(refusing("date"))
            assert "UTC" not in await gate.ask("date -u")
            gate.set_rule(None)

    play(shell(sessions), scene)


def test_an_answer_is_remembered_until_rights_change(sessions: Sessions) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(refusing("date"))
        await gate.ask("/bin/true; /bin/true; /bin/true x; /bin/true x")
        assert len(gate.policy.seen) == 2
        gate.gate.changed()
        await gate.ask("/bin/true")
        assert len(gate.policy.seen) == 3

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_a_job_of_a_revoked_actor_executes_nothing_more_while_others_go_on(
    sessions: Sessions, tmp_path: Path
) -> None:
    log = tmp_path / "log"

    async def scene(gate: Gated) -> None:
        job = f"{{ (while sleep 0.01; do /bin/echo x >> {log}; done) 2>/dev/null & }}"
        await gate.ask(job)
        await gate.until(lambda: log.exists() and log.stat().st_size > 6)
        gate.writes(BOB)
        gate.revoke(ANN)
        assert "Done" in await gate.ask("wait; /bin/echo Done")
        assert {effect.contributors[0].name for effect, _ in gate.recorded} == {"ann"}

    play(shell(sessions), scene)


# -- what is seen ---------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_every_way_to_execute_a_program_is_seen(sessions: Sessions, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    shutil.copy("/bin/true", tool)
    (tmp_path / "link").symlink_to(tool)
    (tmp_path / "script").write_text(f"#!{tool}\n")
    (tmp_path / "script").chmod(0o755)
    by_memory = (
        "import os; f = os.memfd_create('tool'); os.write(f, open('/bin/true', 'rb').read()); "
        "os.execve(f, ['tool'], {})"
    )

    async def scene(gate: Gated) -> None:
        gate.set_rule(refusing("tool", "tool (deleted)", "memfd:tool (deleted)", "script"))
        await gate.ask(f"cd {tmp_path}")
        for line in ("./tool", f"{tool}", "./link", "./script", "(cd / && exec .$OLDPWD/tool)"):
            assert (await gate.ask(f"{line} 2>/dev/null; echo $?")).endswith("126"), line
        by_path = f"import os; os.chdir('/tmp'); os.execv('/proc/self/cwd/..{tool}', ['x'])"
        for program in (by_memory, by_path):
            (tmp_path / "way.py").write_text(program)
            assert "PermissionError" in await gate.ask(f"python3 {tmp_path}/way.py")

    play(shell(sessions), scene)


def test_what_is_not_there_is_not_found_as_without_the_gate(sessions: Sessions) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(refusing("date"))
        assert (await gate.ask("nosuch 2>/dev/null; echo $?")) == "127"
        assert (await gate.ask("/etc/passwd/x 2>/dev/null; echo $?")) in ("126", "127")
        assert (await gate.ask("/etc/passwd 2>/dev/null; echo $?")) == "126"

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_files_are_written_in_the_workspace_only(sessions: Sessions, tmp_path: Path) -> None:
    work, away = tmp_path / "work", tmp_path / "away"
    work.mkdir()
    away.mkdir()
    (away / "there").touch()
    for name, target in (("old", away / "there"), ("new", away / "missing"), ("up", "../away")):
        (work / name).symlink_to(target)

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.WRITE_OPEN,)
        gate.set_rule(inside(str(work)))
        await gate.ask(f"cd {work}")
        ways = (
            "echo x > ../away/a",
            f"echo x >> {away}/b",
            "echo x > old",
            "echo x > new",
            "echo x > up/c",
            f"cd up && echo x > {away.name}; cd /; cd {away} && echo x > d",
            f"truncate -s 9 {away}/there",
            f"cp /etc/hostname {away}/e",
        )
        for way in ways:
            assert "ermitted" in await gate.ask(f"({way})"), way
        assert sorted(path.name for path in away.iterdir()) == ["there"]
        assert (away / "there").stat().st_size == 0
        assert await gate.ask("echo fine > a && mkdir b && echo > b/c && cat a < a") == "fine"
        assert await gate.ask("echo fine > /dev/stderr; echo > /dev/null; echo > /dev/tty") != ""

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_what_changes_a_name_without_opening_it_is_judged_by_its_place(
    sessions: Sessions, tmp_path: Path
) -> None:
    inner, outer = tmp_path / "work", tmp_path / "elsewhere"
    for place in (inner, outer):
        (place / "empty").mkdir(parents=True)
        (place / "file").write_text("one")
        (place / "file").chmod(0o640)
    changes = (
        "chmod 600 file; chown 1:1 file; touch -d @1 file; ln file hard; ln -s file soft; "
        "mkdir made; mknod pipe p; mv file moved; rm moved file; rmdir empty"
    )

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.WRITE_OPEN,)
        gate.set_rule(inside(str(inner)))
        await gate.ask(f"cd {outer}; {changes}")
        assert sorted(os.listdir(outer)) == ["empty", "file"]
        found = (outer / "file").stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_nlink) == (0o640, 0, 1)
        assert found.st_mtime > 1
        paths = {effect.path for effect, _ in gate.recorded}
        assert paths == {
            f"{outer}/{name}" for name in ("file", "hard", "soft", "made", "pipe", "moved", "empty")
        }
        await gate.ask(f"ln {outer}/file {inner}/theirs; mv {outer}/file {inner}/theirs")
        assert not (inner / "theirs").exists() and (outer / "file").exists()
        await gate.ask(f"cd {inner}; {changes}")
        assert sorted(os.listdir(inner)) == ["hard", "made", "pipe", "soft"]
        found = (inner / "hard").stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_mtime) == (0o600, 1, 1)

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_another_actors_process_is_not_reached_into(sessions: Sessions, tmp_path: Path) -> None:
    program = tmp_path / "reach.py"
    program.write_text(
        "import ctypes, os, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "pid = int(sys.argv[1])\n"
        "def said(result): print('done' if result >= 0 else os.strerror(ctypes.get_errno()))\n"
        "said(libc.ptrace(0x4206, pid, None, None))\n"
        "try: os.close(os.open(f'/proc/{pid}/mem', os.O_RDWR)); print('done')\n"
        "except OSError as error: print(error.strerror)\n"
    )

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.EXEC, EffectKind.WRITE_OPEN)
        gate.set_rule(refusing("date"))
        anns = (await gate.ask("sleep 1000 & echo $!")).split()[-1]
        assert await gate.ask(f"python3 {program} {anns}") == "done\ndone"
        gate.writes(BOB)
        refused = "Operation not permitted"
        assert await gate.ask(f"python3 {program} {anns}") == f"{refused}\n{refused}"
        assert gate.recorded[-1][1].reason == "it would change a process of ann"
        gate.writes(ANN)
        assert await gate.ask(f"python3 {program} 2") == f"{refused}\n{refused}"
        assert "shell" in gate.recorded[-1][1].reason

    neighbour = shell(sessions)  # whose processes have the same numbers inside
    neighbour.ask("sleep 1000 & sleep 1000 & echo $!")
    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_ways_past_the_filter_are_closed_from_the_start(sessions: Sessions, tmp_path: Path) -> None:
    program = tmp_path / "past.py"
    program.write_text(
        "import ctypes, errno, fcntl\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def said(*call):\n"
        "    libc.syscall(*call); print(errno.errorcode[ctypes.get_errno()])\n"
        "said(425, 8, ctypes.create_string_buffer(120))\n"  # io_uring_setup
        "said(323, 0)\n"  # userfaultfd
        "said(101, 16, 2, 0, 0)\n"  # ptrace ATTACH to the shell
        "said(311, 2, 0, 0, 0, 0, 0)\n"  # process_vm_writev
        "said(0x40000000 + 39)\n"  # x32
        "try: fcntl.ioctl(0, 0x5412, b'x')\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
    )

    async def scene(gate: Gated) -> None:
        seen = await gate.ask(f"python3 {program}")
        assert seen.split() == ["ENOSYS", "EPERM", "EPERM", "EPERM", "ENOSYS", "EPERM"]

    play(shell(sessions), scene)


def test_setuid_programs_and_filters_of_its_own_work_inside(
    sessions: Sessions, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    for above in tmp_path.parents[:3]:
        above.chmod(above.stat().st_mode | 0o055)
    raised = Path("/usr/local/bin") / f"hf-id-{os.getpid()}"
    shutil.copy("/usr/bin/id", raised)
    raised.chmod(0o755 | stat.S_ISUID)
    nested = (
        "import ctypes, os, struct\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "rule = struct.pack('=HBBIHBBIHBBIHBBI', 0x20, 0, 0, 0, 0x15, 0, 1, 110, 6, 0, 0, 0x50007,"
        " 6, 0, 0, 0x7fff0000)\n"
        "text = ctypes.create_string_buffer(rule)\n"
        "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]\n"
        "libc.prctl(38, 1, 0, 0, 0)\n"
        "whole = P(4, ctypes.cast(text, ctypes.c_void_p))\n"
        "assert libc.syscall(317, 1, 0, ctypes.byref(whole)) == 0\n"
        "print(libc.syscall(110), ctypes.get_errno())\n"
        "os.execv('/bin/date', ['date'])\n"
    )
    program = tmp_path / "nested.py"
    program.write_text(nested)

    async def scene(gate: Gated) -> None:
        gate.set_rule(refusing("date"))
        assert await gate.ask(f"{raised} -u") == "0"
        seen = await gate.ask(f"python3 -u {program}")
        assert seen.startswith("-1 7") and "PermissionError" in seen

    try:
        play(shell(sessions, NOBODY), scene)
    finally:
        raised.unlink()


# -- held -----------------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_a_held_program_runs_when_it_is_approved_and_not_when_it_is_denied(
    sessions: Sessions,
) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(held("date"))
        for approvers, shown in (((BOB,), True), (None, False), ((BOB,), True)):
            asked = asyncio.ensure_future(gate.ask("date -u"))
            await gate.until(lambda: gate.held.waiting)
            assert not asked.done()
            gate.held.decide(approvers)
            assert ("UTC" in await asked) is shown
        outcomes = [verdict.outcome for _, verdict in gate.recorded]
        assert outcomes == [Outcome.ALLOW, Outcome.REFUSE, Outcome.ALLOW]
        assert gate.recorded[0][0].approved_by == (BOB,)

    play(shell(sessions), scene)


def test_an_approved_program_is_judged_again_and_nothing_else_is_approved_with_it(
    sessions: Sessions,
) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(held("date"))
        asked = asyncio.ensure_future(gate.ask("date -u"))
        await gate.until(lambda: gate.held.waiting)
        gate.policy.rule = refusing("date")
        gate.held.decide((BOB,))
        assert "UTC" not in await asked

    play(shell(sessions), scene)


def test_an_interrupt_gives_a_held_program_up_and_its_approval_is_dropped(
    sessions: Sessions,
) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(held("date"))
        gate.running.type("date -u")
        await gate.until(lambda: gate.held.waiting)
        os.write(gate.running.master, b"\x03")
        await gate.until(lambda: gate.held.dropped)
        assert await gate.ask("echo alive") == "alive"

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_a_session_with_a_held_program_can_be_halted_and_goes_on_holding(
    sessions: Sessions,
) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(held("date"))
        asked = asyncio.ensure_future(gate.ask("date -u"))
        await gate.until(lambda: gate.held.waiting)
        place = gate.running.place
        assert (await asyncio.to_thread(freeze.halt, place)).frozen
        assert await asyncio.to_thread(freeze.resume, place)
        # The kernel has the call made again, by another number.
        await gate.until(lambda: gate.held.dropped and gate.held.waiting)
        assert not asked.done()
        gate.held.decide((BOB,))
        assert "UTC" in await asked

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("killed", ["answerer", "daemon", "both"])
def test_a_held_program_is_held_and_judged_after_a_kill(sessions: Sessions, killed: str) -> None:
    async def scene(gate: Gated) -> None:
        gate.set_rule(held("date"))
        asked = asyncio.ensure_future(gate.ask("date -u"))
        await gate.until(lambda: gate.held.waiting)
        before = len(gate.policy.seen)
        if killed != "daemon":
            gate.kill_answerer()
        if killed != "answerer":
            gate.replace_daemon()
        await gate.until(lambda: len(gate.policy.seen) > before)
        assert not asked.done()
        gate.held.decide((BOB,))
        assert "UTC" in await asked

    play(shell(sessions), scene)


# -- whoever dies ---------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_no_exec_fails_or_hangs_while_answerer_and_daemon_are_killed_in_any_order(
    sessions: Sessions,
) -> None:
    order = random.Random(20)

    async def scene(gate: Gated) -> None:
        gate.set_rule(refusing("date"))
        loop = (  # it says how far it is: a test that hears nothing gives up
            f"n=0; for i in $(seq {LOOP}); do /bin/true $i || n=$((n+1)); "
            "case $i in *00) echo $i;; esac; done; echo failed $n"
        )
        asked = asyncio.ensure_future(gate.ask(loop))
        while not asked.done():
            reached = len(gate.policy.seen) + order.randint(1, 150)
            await gate.until(lambda: len(gate.policy.seen) >= reached or asked.done())  # noqa: B023
            victim = order.choice(["answerer", "daemon", "both"])
            if victim != "daemon":
                gate.kill_answerer()
            if victim != "answerer":
                gate.replace_daemon()
        assert (await asked).endswith("\nfailed 0")

    play(shell(sessions), scene)


def test_a_thousand_judged_execs_leave_nothing_behind(sessions: Sessions) -> None:
    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.EXEC, EffectKind.WRITE_OPEN)
        gate.set_rule(refusing("date"))
        await gate.ask("/bin/true")
        before = descriptors(gate.link.pid)
        four = "for j in 1 2 3 4; do (for i in $(seq 250); do /bin/true $i > /tmp/x; done) & done"
        assert await gate.ask(f"{four}; wait; rm -f /tmp/x; echo over") == "over"
        assert descriptors(gate.link.pid) == before
        page = GatePage(gate.running.gate_page)
        await gate.until(lambda: not page.waiting())
        page.close()

    play(shell(sessions), scene)


def descriptors(pid: int | None) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


# -- who wrote a file -------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_who_wrote_a_program_or_what_it_is_told_to_read_is_behind_it(
    sessions: Sessions, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "old").write_text("#!/bin/sh\nexit 0\n")
    (work / "old").chmod(0o755)

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.EXEC, EffectKind.WRITE_OPEN)
        gate.set_rule(refusing("date"))
        await gate.ask(f"cd {work}")
        await gate.ask("printf '#!/bin/sh\\n' > made; chmod 755 made; cp made copied")
        await gate.ask("printf '#!/bin/sh\\n' > first; chmod 755 first; mv first renamed")
        await gate.ask("sed -i s/0/1/ old; echo pass > told.py")
        gate.writes(BOB)
        await gate.ask("printf '#!/bin/sh\\n' > own; chmod 755 own")
        for line, wrote in (
            ("./made", True),
            ("./copied", True),
            ("./renamed", True),
            ("./old", True),
            ("sh made", True),
            ("python3 told.py", True),
            ("./own", False),
            ("sh own", False),
            ("/bin/true", False),
        ):
            gate.policy.seen.clear()
            gate.behind.another_command()
            await gate.ask(line)
            behind = {
                each.name
                for effect in gate.policy.seen
                for each in effect.contributors
                if each.part is Part.FILE
            }
            assert ("ann" in behind) is wrote, (line, gate.policy.seen)
            assert gate.policy.seen[0].actor == BOB

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_what_a_revoked_actor_wrote_is_not_run_by_others(
    sessions: Sessions, tmp_path: Path
) -> None:
    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.EXEC, EffectKind.WRITE_OPEN)
        gate.set_rule(refusing("date"))
        await gate.ask(f"cd {tmp_path}; printf '#!/bin/sh\\necho sprung' > trap; chmod 755 trap")
        gate.writes(BOB)
        assert "sprung" in await gate.ask("./trap; sh trap")
        gate.revoke(ANN)
        assert "sprung" not in await gate.ask("./trap; sh trap")
        assert gate.recorded[-1][1].reason == "ann may not write here"

    play(shell(sessions), scene)


def test_who_only_tries_to_write_a_file_is_not_behind_it(sessions: Sessions) -> None:
    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.EXEC, EffectKind.WRITE_OPEN)
        gate.set_rule(refusing("date"))
        assert "denied" in await gate.ask("(echo x > /bin/true)")
        gate.writes(BOB)
        await gate.ask("/bin/true")
        assert [each.name for each in gate.policy.seen[-1].contributors] == ["bob"]

    play(shell(sessions, NOBODY), scene)


# -- further points -------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("kind", "line", "others"),
    [
        (EffectKind.UNLINK, "rm one", "mv one two; echo x > three; chmod 600 three"),
        (EffectKind.UNLINK, "rmdir d", "mkdir e"),
        (EffectKind.RENAME, "mv one two", "rm one; echo x > three"),
    ],
)
def test_what_removes_or_renames_is_judged_as_that_where_a_rule_asks(
    sessions: Sessions, tmp_path: Path, kind: EffectKind, line: str, others: str
) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "d").mkdir()

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (kind,)
        gate.set_rule(refusing_all)
        assert "Operation not permitted" in await gate.ask(f"cd {tmp_path}; {line}")
        ((effect, _),) = gate.recorded
        assert effect.kind is kind and effect.path.startswith(f"{tmp_path}/")
        assert await gate.ask(f"cd {tmp_path}; {others}") == ""

    play(shell(sessions), scene)


@pytest.mark.requirement("A8")
def test_a_connection_is_judged_by_where_it_goes(sessions: Sessions, tmp_path: Path) -> None:
    socket_path = str(tmp_path / "sock")
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(socket_path)
        unix.listen()
        port = tcp.getsockname()[1]
        (tmp_path / "c.py").write_text(
            "import socket, sys\n"
            "where = sys.argv[1]\n"
            "if where.isdigit(): socket.create_connection(('127.0.0.1', int(where)))\n"
            "else: socket.socket(socket.AF_UNIX).connect(where)\n"
            "print('connected')\n"
        )

        async def scene(gate: Gated) -> None:
            gate.policy.kinds = (EffectKind.CONNECT,)
            for where in (str(port), socket_path):
                line = f"/usr/bin/python3 {tmp_path}/c.py {where} 2>&1 | tail -n 1"
                gate.set_rule(refusing_all)
                assert "Operation not permitted" in await gate.ask(line)
                gate.set_rule(None)
                assert await gate.ask(line) == "connected"
            first, second = [effect for effect, _ in gate.recorded]
            assert (first.kind, first.destination) == (EffectKind.CONNECT, f"127.0.0.1:{port}")
            assert (second.destination, second.path) == ("", socket_path)
            assert first.text == f"connect to 127.0.0.1:{port}"

        play(shell(sessions), scene)


def test_what_is_open_for_reading_is_not_changed_without_being_judged(
    sessions: Sessions, tmp_path: Path
) -> None:
    (tmp_path / "f").touch(0o600)
    changes = ("os.fchmod(f, 0o644)", "os.utime(f)", "os.setxattr(f, 'user.x', b'y')")

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.WRITE_OPEN,)
        gate.set_rule(inside("/nowhere"))
        for change in changes:
            program = f"import os; f = os.open('{tmp_path}/f', os.O_RDONLY); {change}"
            seen = await gate.ask(f'/usr/bin/python3 -c "{program}" 2>&1 | tail -n 1')
            assert "Operation not permitted" in seen, change
        assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600
        assert {effect.path for effect, _ in gate.recorded} == {f"{tmp_path}/f"}

    play(shell(sessions), scene)


def test_a_link_is_followed_where_the_call_follows_it(sessions: Sessions, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "f").touch()
    (tmp_path / "inside" / "l").symlink_to(tmp_path / "f")

    async def scene(gate: Gated) -> None:
        gate.policy.kinds = (EffectKind.WRITE_OPEN,)
        gate.set_rule(inside(f"{tmp_path}/inside"))
        for change in ("os.utime(l, (1, 1))", "os.chown(l, 1, 1)", "os.chmod(l, 0o777)"):
            program = f"import os; l = '{tmp_path}/inside/l'; {change}"
            seen = await gate.ask(f'/usr/bin/python3 -c "{program}" 2>&1 | tail -n 1')
            assert "Operation not permitted" in seen, change

    play(shell(sessions), scene)


@pytest.mark.requirement("A7", "A8")
def test_who_is_behind_a_server_is_who_connects_to_it(sessions: Sessions, tmp_path: Path) -> None:
    """Ann starts it, Bob talks to it; then Bob is behind what it does. Ann's other programs are
    Ann's alone."""
    path = str(tmp_path / "sock")
    (tmp_path / "server.py").write_text(
        "import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\n"
        f"s.bind('{path}')\ns.listen()\nprint('up', flush=True)\n"
        "c, _ = s.accept()\nos.system('date -u')\n"
    )
    client = f"import socket; socket.socket(socket.AF_UNIX).connect('{path}')"

    async def scene(gate: Gated) -> None:
        gate.writes(BOB)
        gate.writes(ANN)
        gate.set_rule(lambda _: ALLOWED)
        gate.gate.changed()
        out = tmp_path / "out"
        await gate.ask(f"/usr/bin/python3 {tmp_path}/server.py > {out} & true")
        await gate.until(lambda: out.exists() and "up" in out.read_text())
        gate.writes(BOB)
        await gate.ask(f'/usr/bin/python3 -c "{client}"')
        await gate.until(lambda: "UTC" in out.read_text())
        (run,) = [each for each in gate.policy.seen if each.path.endswith("/date")]
        assert [each.name for each in run.contributors] == ["ann", "bob"]

    play(shell(sessions), scene)
