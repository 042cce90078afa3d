"""Whether a session could be moved: each rule, on made-up facts. On real processes:
privileged/test_preflight.py."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.core.continuity.movability import estimate, for_target, judge, kernel_version, lacking
from holdfast.model.graph import OpenFile, Process, Socket
from holdfast.model.limits import DELETED_FILE_MAX_BYTES
from holdfast.model.movability import (
    DeletedFile,
    HostAbility,
    Movability,
    MoveFacts,
    MoveTarget,
    MoveVerdict,
    NeededFile,
)
from holdfast.model.state import Level

ABLE = HostAbility(Level.MOVABLE, is_root=True, criu="4.2.1")
MOVABLE, RESETS, BLOCKS = MoveVerdict.MOVABLE, MoveVerdict.RESETS, MoveVerdict.BLOCKS


def process(pid: int = 10, **more: Any) -> Process:
    fields: dict[str, Any] = {
        "pid": pid,
        "pid_inside": pid - 8,
        "ppid": 1,
        "pgid": pid,
        "sid": 10,
        "name": "prog",
        "argv": ("prog", "-x"),
        "cwd": "/",
        "uid": 0,
        "state": "S",
        "started": 0.0,
        "cpu_seconds": 0.0,
        "rss_bytes": 0,
        "threads": 1,
        "foreground": False,
    }
    return Process(**{**fields, **more})


def judged(*facts: MoveFacts, host: HostAbility = ABLE) -> Movability:
    return judge(facts, host)


def opened(path: str, kind: str = "anon") -> OpenFile:
    return OpenFile(7, path, kind, "rw", 0)


def unix(peer: int, inode: int = 1, remote: str = "") -> Socket:
    return Socket(5, inode, "unix", "stream", "established", "", remote, peer)


def tcp(local: str, remote: str, state: str = "established", inode: int = 1) -> Socket:
    return Socket(5, inode, "inet", "tcp", state, local, remote)


UNHINDERED = {
    "an idle shell": MoveFacts(process()),
    "what CRIU saves": MoveFacts(
        process(
            files=(
                *(opened(f"anon_inode:[{name}]") for name in ("eventpoll", "timerfd", "eventfd")),
                opened("anon_inode:inotify"),
                opened("/dev/null", "device"),
                opened("/dev/pts/0", "tty"),
                opened("/etc/passwd", "file"),
            )
        )
    ),
    "a server": MoveFacts(process(sockets=(tcp("0.0.0.0:80", "", "listen"),))),
    "what is half open": MoveFacts(process(sockets=(tcp("", "", "unconnected"),))),
    "a small deleted file": MoveFacts(process(), deleted=(DeletedFile(3, "/tmp/x", 1000),)),
    "a zombie": MoveFacts(process(state="Z"), tracer=5),
    "the leader of an inner terminal": MoveFacts(process(10, sid=10), inner_terminal=True),
}
FOUND = {
    "pid namespace": (MoveFacts(process(), nested=("pid",)), BLOCKS),
    "user namespace": (MoveFacts(process(), nested=("user",)), BLOCKS),
    "ipc namespace": (MoveFacts(process(), nested=("ipc",)), BLOCKS),
    "traced by process 99": (MoveFacts(process(), tracer=99), BLOCKS),
    "waits in the kernel": (MoveFacts(process(state="D")), BLOCKS),
    "fd 7: io_uring": (MoveFacts(process(files=(opened("anon_inode:[io_uring]"),))), BLOCKS),
    "mapped: io_uring": (MoveFacts(process(), maps_io_uring=True), BLOCKS),
    "fd 7: perf_event": (MoveFacts(process(files=(opened("anon_inode:[perf_event]"),))), BLOCKS),
    "fd 7: userfaultfd": (MoveFacts(process(files=(opened("anon_inode:[userfaultfd]"),))), BLOCKS),
    "fd 7: landlock-ruleset": (
        MoveFacts(process(files=(opened("anon_inode:[landlock-ruleset]"),))),
        BLOCKS,
    ),
    "fd 7: bpf-map": (MoveFacts(process(files=(opened("anon_inode:bpf-map"),))), BLOCKS),
    "fd 7: /dev/kvm": (MoveFacts(process(files=(opened("/dev/kvm", "device"),))), BLOCKS),
    "fd 5: unix socket to /run/x": (
        MoveFacts(process(sockets=(unix(99, remote="/run/x"),))),
        BLOCKS,
    ),
    "fd 5: AF_VSOCK socket": (
        MoveFacts(
            process(sockets=(Socket(5, 1, "other", "other", "unknown"),)),
            protocols={"5": "AF_VSOCK"},
        ),
        BLOCKS,
    ),
    "fd 4: message queue /q": (MoveFacts(process(), queues=("fd 4: message queue /q",)), BLOCKS),
    "fd 3: /tmp/x (deleted)": (
        MoveFacts(process(), deleted=(DeletedFile(3, "/tmp/x", DELETED_FILE_MAX_BYTES + 1),)),
        BLOCKS,
    ),
    "fd 5: connection 10.0.0.1:40 to 10.0.0.2:80": (
        MoveFacts(process(sockets=(tcp("10.0.0.1:40", "10.0.0.2:80"),))),
        RESETS,
    ),
    "terminal of another program": (MoveFacts(process(11, sid=10), inner_terminal=True), RESETS),
    "script": (MoveFacts(process(name="script")), RESETS),
}


@pytest.mark.parametrize("what", UNHINDERED)
def test_what_is_in_nobodys_way_is_movable(what: str) -> None:
    found = judged(UNHINDERED[what])
    assert found.movable
    assert [(each.verdict, each.findings) for each in found.processes] == [(MOVABLE, ())]
    assert found.findings == ()


@pytest.mark.requirement("M2")
@pytest.mark.parametrize("what", FOUND)
def test_what_is_in_the_way_is_named_with_its_reason_and_remedy(what: str) -> None:
    facts, verdict = FOUND[what]
    found = judged(facts)
    (only,) = found.processes
    assert [(each.what, each.verdict) for each in only.findings] == [(what, verdict)]
    assert only.findings[0].why and only.findings[0].remedy
    assert only.verdict is verdict
    assert found.movable is (verdict is not BLOCKS)
    assert (only.pid, only.command) == (facts.process.pid_inside, "prog -x")


def test_both_ends_inside_are_no_findings() -> None:
    pair = MoveFacts(process(sockets=(unix(2, 1), unix(1, 2))))
    assert judged(pair).processes[0].findings == ()
    one = MoveFacts(process(10, sockets=(tcp("127.0.0.1:40", "127.0.0.1:80", inode=1),)))
    other = MoveFacts(process(11, sockets=(tcp("127.0.0.1:80", "127.0.0.1:40", inode=2),)))
    assert [each.findings for each in judged(one, other).processes] == [(), ()]
    # A peer on the same address that is not of the session is outside.
    assert judged(one).processes[0].verdict is RESETS


def test_the_worst_finding_counts() -> None:
    facts = MoveFacts(process(name="script", sockets=(unix(9),)))
    (only,) = judged(facts).processes
    assert (only.verdict, len(only.findings)) == (BLOCKS, 2)


@pytest.mark.parametrize(
    ("host", "what", "remedy"),
    [
        (HostAbility(Level.PLAIN, is_root=False), "level plain", "sudo hold up -d"),
        (HostAbility(Level.PLAIN, is_root=True), "level plain", "criu.install"),
        (HostAbility(Level.PLAIN, is_root=True, criu="4"), "level plain", "--level movable"),
        (HostAbility(Level.CONTAINED, is_root=True), "level contained, no CRIU", "criu.install"),
        (
            HostAbility(Level.CONTAINED, is_root=True, criu="4"),
            "level contained",
            "--level movable",
        ),
        (HostAbility(Level.MOVABLE, is_root=True), "level movable, no CRIU", "criu.install"),
    ],
)
def test_a_level_that_cannot_says_so_and_how_to_add_it(
    host: HostAbility, what: str, remedy: str
) -> None:
    found = judged(MoveFacts(process()), host=host)
    assert not found.movable
    (only,) = found.findings
    assert (only.what, only.verdict) == (what, BLOCKS)
    assert remedy in only.remedy


def test_the_estimate_grows_with_memory_and_processes() -> None:
    """The measured points, within the spread they had: an idle shell with its init, and a gigabyte
    of Python."""
    shell = [MoveFacts(process(), anonymous_bytes=300_000) for _ in range(2)]
    assert 10 < estimate(shell).frozen_ms < 16
    heap = [*shell, MoveFacts(process(), anonymous_bytes=1_000_000_000)]
    assert 420 < estimate(heap).frozen_ms < 790
    assert 1_000_000_000 < estimate(heap).bytes < 1_010_000_000


def test_another_machine_is_compared() -> None:
    source = judged(MoveFacts(process())).replace(isa="x86_64", kernel="6.8.0-1-amd64")
    same = MoveTarget("pc", "x86_64", "6.8.3", "4.2")
    assert for_target(source, same) == source
    for change, what in (
        ({"isa": "aarch64"}, "pc: aarch64"),
        ({"kernel": "6.1.0"}, "pc: kernel 6.1.0"),
        ({"criu": ""}, "pc: no CRIU"),
    ):
        found = for_target(source, same.replace(**change))
        assert (found.movable, [each.what for each in found.findings]) == (False, [what])
    missing = lacking(NeededFile("/bin/x", 10), None)
    assert missing is not None
    assert not for_target(source, same.replace(missing=(missing,))).movable


def test_a_file_is_the_same_by_build_and_size() -> None:
    file = NeededFile("/bin/x", 10, "aa")
    assert lacking(file, file) is None
    assert lacking(file, NeededFile("/bin/x", 10)) is None
    for other in (NeededFile("/bin/x", 10, "bb"), NeededFile("/bin/x", 11, "aa"), None):
        found = lacking(file, other)
        assert found is not None and found.what == "/bin/x"


def test_kernels_are_compared_by_their_first_two_numbers() -> None:
    assert kernel_version("6.18.44-1-cloud") == (6, 18) > kernel_version("6.9.0")
