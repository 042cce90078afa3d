"""The memory of large processes is read while the session runs on, as it was in the freeze (M2)."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.proc import procfs
from privileged.checkpointing import (
    restored,
    skip_unless_possible,
    started,
    until_screen,
)
from process.commanding import Hold
from process.recorded import host_dies
from process.waiting import until

MB = 1 << 20
PAGE = 4096
PAGES = 100 * MB // PAGE

# Writes its memory page by page, each full of its step's number: what is in memory follows from how
# many steps there were. A line says how many more, which are fewer once the file is gone.
WRITER = """
import hashlib, os, struct, sys
heap, count = bytearray({pages} * 4096), 0
print("ready", flush=True)
for line in sys.stdin:
    last = count + int(line)
    while count < last and os.path.exists({go!r}):
        at = count % {pages} * 4096
        heap[at : at + 4096] = struct.pack(">Q", count) * 512
        count += 1
    try:
        children = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        children = "childless"
    print("steps", count, hashlib.sha256(heap).hexdigest()[:24], children, flush=True)
"""

# Memory of every kind, and what became of it.
KINDS = """
import ctypes, hashlib, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
def made(mb, advice=None, kind=PRIVATE):
    memory = mmap.mmap(-1, mb << 20, kind)
    memory.write(os.urandom(mb << 20))
    if advice is not None:
        memory.madvise(advice)
    return memory
kinds = [
    made(40), made(16, mmap.MADV_DONTFORK), made(1, mmap.MADV_DONTFORK), made(1, 18),
    made(2, None, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS), made(1),
]
hidden = kinds[-1]
where = ctypes.addressof(ctypes.c_char.from_buffer(hidden))
size = len(hidden)
print("ready", flush=True)
for line in sys.stdin:
    assert libc.mprotect(ctypes.c_void_p(where), size, 3) == 0
    sums = [hashlib.sha256(each).hexdigest()[:8] for each in kinds]
    assert libc.mprotect(ctypes.c_void_p(where), size, 0) == 0
    marked, kb = {" dc": 0, " wf": 0}, 0
    for each in open("/proc/self/smaps"):
        kb = int(each.split()[1]) if each.startswith("Size:") else kb
        for mark in marked if each.startswith("VmFlags:") else ():
            marked[mark] += kb * (mark in each)
    print("sums", *sums, *marked.values(), flush=True)
"""

MARKED = f"{17 << 10} {1 << 10}"  # kB of these that are marked, as it asked

LOCKED = """
import ctypes, os, sys
heap = os.urandom(16 << 20)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mlock(heap, ctypes.c_size_t(4096)) == 0, ctypes.get_errno()
print("ready", flush=True)
for line in sys.stdin: print("still", len(heap), flush=True)
"""


@pytest.fixture
def hold() -> Iterator[Hold]:
    skip_unless_possible()
    hold = Hold()
    try:
        hold.ok("up", "-d")
        yield hold
    finally:
        hold.close()


class Writer:
    """A session that writes its 100 MB, and says how far it is."""

    def __init__(self, hold: Hold, go: Path, *options: str) -> None:
        self._hold, self._go = hold, go
        go.touch()
        program = WRITER.format(pages=PAGES, go=str(go))
        words = (*options, "--", sys.executable, "-u", "-c", program)
        hold.ok("run", "-d", "--name", "writer", "--level", "movable", *words)
        until_screen(hold, "writer", "ready")

    def begin(self, steps: int = 1 << 40) -> None:
        self._hold.ok("keys", "writer", *str(steps), "Enter")

    def stop(self) -> int:
        """Its steps, when all that it has in memory is right."""
        self._go.unlink()
        return self.is_right()

    def write(self, steps: int, after: int = 0) -> None:
        """So many, with those before."""
        self.begin(steps - after)
        until_screen(self._hold, "writer", rf"steps {steps} \w")

    def is_right(self) -> int:
        shown = until_screen(self._hold, "writer", r"steps \d+ \w+ \w+\s*$")
        count, digest, children = re.findall(r"steps (\d+) (\w+) (\w+)", shown)[-1]
        assert digest == expected(int(count)), "its memory is not what it wrote"
        assert children == "childless"
        return int(count)


def expected(steps: int) -> str:
    """The digest of the memory after so many of them."""
    digest = hashlib.sha256()
    for page in range(PAGES):
        last = (steps - 1 - page) // PAGES * PAGES + page
        digest.update(struct.pack(">Q", last) * 512 if last >= 0 else bytes(PAGE))
    return digest.hexdigest()[:24]


def comes_back(hold: Hold, name: str) -> None:
    """From its last checkpoint, after a power loss."""
    host_dies(hold)
    hold("up", "-d")
    restored(hold, name)


def holders(hold: Hold) -> list[int]:
    """Processes that keep ghosts for this host's daemon."""
    daemon = hold.json("doctor")["daemon_pid"]
    return [pid for pid, stat in processes() if stat.ppid == daemon and is_holder(stat)]


def processes() -> Iterator[tuple[int, procfs.Stat]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                yield int(name), procfs.stat_of(int(name))
            except OSError:
                continue


def is_holder(stat: procfs.Stat) -> bool:
    return stat.name.startswith("hold-ghosts")


def chunks(hold: Hold) -> int:
    return sum(len(files) for _, _, files in os.walk(f"{hold.home}/checkpoints"))


@pytest.mark.requirement("M2")
def test_what_is_restored_is_the_memory_of_the_freeze(hold: Hold, tmp_path: Path) -> None:
    writer = Writer(hold, tmp_path / "go")
    writer.write(PAGES)
    writer.begin()
    made = hold.json("checkpoint", "writer")
    assert (made["method"], made["copied_at_once"]) == ("ghost", [])
    assert made["bytes"] > 100 * MB
    went_to = writer.stop()
    until("a ghost is left over", lambda: not holders(hold))
    comes_back(hold, "writer")
    was_at = writer.is_right()
    assert went_to - was_at > PAGES // 4, "it wrote little while its memory was read"
    hold.ok("verify", "writer")


@pytest.mark.requirement("M2")
def test_later_checkpoints_store_what_changed(hold: Hold, tmp_path: Path) -> None:
    writer = Writer(hold, tmp_path / "go")
    writer.write(PAGES)
    first = hold.json("checkpoint", "writer")
    assert 100 * MB < first["bytes_new"] <= first["bytes"]
    same = hold.json("checkpoint", "writer")
    assert same["bytes"] > 100 * MB > 50 * same["bytes_new"] > 0
    changed = 10 * MB // PAGE
    writer.write(PAGES + changed, after=PAGES)
    made = hold.json("checkpoint", "writer")
    assert 10 * MB < made["bytes_new"] < 14 * MB
    hold.ok("checkpoints", "rm", first["id"], same["id"])
    comes_back(hold, "writer")
    assert writer.is_right() == PAGES + changed


@pytest.mark.requirement("M2")
def test_memory_of_every_kind_comes_back(hold: Hold) -> None:
    started(hold, "kinds", sys.executable, "-u", "-c", KINDS, prompt=False)
    until_screen(hold, "kinds", "ready")

    def sums() -> str:
        before = len(re.findall("sums", hold.ok("screen", "kinds")))
        hold.ok("keys", "kinds", "Enter")
        shown = until_screen(hold, "kinds", rf"(?s)(sums.*){{{before + 1}}} {MARKED}\s*$")
        return str(re.findall(r"sums (.*)", shown)[-1])

    was = sums()
    assert hold.json("checkpoint", "kinds")["method"] == "ghost"
    assert sums() == was
    comes_back(hold, "kinds")
    assert sums() == was


@pytest.mark.requirement("M2")
def test_a_process_that_cannot_have_a_ghost_is_copied_at_once(hold: Hold) -> None:
    started(hold, "locked", sys.executable, "-u", "-c", LOCKED, prompt=False)
    until_screen(hold, "locked", "ready")
    made = hold.json("checkpoint", "locked")
    assert made["method"] == "plain"
    (why,) = made["copied_at_once"]
    assert re.fullmatch(r"python\S* \(\d+\): part of its memory is locked", why)
    assert why in hold.ok("checkpoint", "locked")
    comes_back(hold, "locked")
    hold.ok("keys", "locked", "Enter")
    until_screen(hold, "locked", f"still {16 * MB}")


@pytest.mark.requirement("M2")
def test_a_daemon_killed_while_it_reads_leaves_no_ghost(hold: Hold, tmp_path: Path) -> None:
    writer = Writer(hold, tmp_path / "go")
    writer.write(PAGES)
    writer.begin()
    before = hold.json("doctor")["daemon_pid"]
    making = hold.start("checkpoint", "writer")
    until("nothing is stored", lambda: chunks(hold) > 20)
    assert holders(hold), "it is over already"
    os.kill(before, signal.SIGKILL)
    making.communicate(timeout=60)
    until("no other daemon comes", lambda: hold.json("doctor").get("daemon_pid", before) != before)
    left = [pid for pid, stat in processes() if is_holder(stat) and stat.ppid in (1, before)]
    until("a ghost outlives its daemon", lambda: not any(map(runs, left)))
    writer.stop()
    assert hold.json("checkpoint", "writer")["method"] == "ghost"
    hold.ok("verify", "writer")


def runs(pid: int) -> bool:
    try:
        return procfs.stat_of(pid).runs
    except OSError:
        return False


@pytest.mark.requirement("M2")
def test_a_ghost_that_is_lost_fails_the_checkpoint_alone(hold: Hold, tmp_path: Path) -> None:
    """As when the machine runs out of memory: the kernel ends its holder first."""
    writer = Writer(hold, tmp_path / "go")
    writer.write(PAGES)
    writer.begin()
    making = hold.start("checkpoint", "writer")
    until("nothing is stored", lambda: chunks(hold) > 20)
    (holder,) = holders(hold)
    assert procfs.read(f"/proc/{holder}/oom_score_adj").strip() == b"1000"
    os.kill(holder, signal.SIGKILL)
    _, said = making.communicate(timeout=60)
    assert making.returncode != 0 and b"checkpoint_failed" in said
    assert hold.json("checkpoints") == []
    writer.stop()
    assert hold.json("checkpoint", "writer")["method"] == "ghost"


@pytest.mark.requirement("M2")
def test_a_ghost_is_kept_until_the_next_periodic_checkpoint(hold: Hold, tmp_path: Path) -> None:
    writer = Writer(hold, tmp_path / "go", "--checkpoint-every", "1h")
    writer.write(PAGES)
    hold.ok("checkpoint", "writer")
    (first,) = holders(hold)
    for count in range(1, 4):  # some windows change, and most do not
        writer.write(PAGES + 1000 * count, after=PAGES + 1000 * (count - 1))
        made = hold.json("checkpoint", "writer")
        assert made["bytes"] > 100 * MB > 10 * made["bytes_new"]
    until("those before are not let go", lambda: len(holders(hold)) == 1)
    assert holders(hold) != [first]
    comes_back(hold, "writer")
    assert writer.is_right() == PAGES + 3000
    until("it outlives its session", lambda: not holders(hold))


# The daemon sees a connection in the freeze that was not there before it.
_BEGUN_AGAIN = """
import os
if "HOLDFAST_SUPERVISOR_FD" in os.environ:
    from holdfast.adapters.proc import foreign_connections
    looks = [False, True]
    foreign_connections.any_connection = lambda pids: looks.pop(0) if looks else False
"""


@pytest.mark.requirement("M2")
def test_a_dump_that_is_begun_again_has_ghosts_of_its_own(tmp_path: Path) -> None:
    skip_unless_possible()
    (tmp_path / "sitecustomize.py").write_text(_BEGUN_AGAIN)
    hold = Hold()
    hold.env["PYTHONPATH"] = str(tmp_path)
    try:
        hold.ok("up", "-d")
        writer = Writer(hold, tmp_path / "go")
        writer.write(PAGES)
        writer.begin()
        assert hold.json("checkpoint", "writer")["method"] == "ghost"
        writer.stop()
        comes_back(hold, "writer")
        writer.is_right()
    finally:
        hold.close()
