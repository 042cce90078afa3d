"""Checkpoint and restore of an idle shell, and how long a program with a large heap stands still,
beside CRIU alone on the same machine.

CRIU alone dumps the very same tree, with the same flags, into a directory, from its command line;
and it restores a tree of its own, a bash that waits for a child, without terminal and namespaces.
It is given what it knows of the kernel, as holdfast's is, and locks no network either, where there
is no connection. On holdfast's side come on top: terminal,
output, journal, compression, encryption and the way from client to host and back."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from functools import partial

from bench.results import Row, Target
from bench.sampling import Samples, interleaved, medians
from bench.stage import Stage
from holdfast.adapters.criu import dump, find, mount_marks
from holdfast.adapters.halt import cgroup
from holdfast.model.spec import Place
from holdfast.sdk.client import Host
from holdfast.wire.messages.checkpoints import (
    CheckpointMade,
    MakeCheckpoint,
    Restore,
    Restored,
)

_RAW = "criu alone"
_TIMEOUT_S = 60.0
# In a mount namespace of its own, which stays as long as its standard input is open.
_APART = 'mount -t tmpfs criu /run && cat "$1" >/run/criu.kdat && echo ready && cat'

# Its pages are of its own, and none is zero.
_HEAP = "import os; heap = bytearray(os.urandom({} << 20)); print('filled', flush=True); input()"
_TREE = "exec </dev/null >/dev/null 2>&1; sleep 100000; :"  # what it has open is open in there


def measure(stage: Stage) -> list[Row]:
    criu = find.find()
    if os.geteuid() != 0 or cgroup.unavailable() or isinstance(criu, str):
        return []
    (hold,) = stage.systems(("holdfast",))
    with (
        Host(f"{hold.env['HOLDFAST_HOME']}/run/hold.sock") as host,
        tempfile.TemporaryDirectory() as directory,
        contextlib.closing(_RawCriu(criu, directory)) as raw,
    ):
        info = host.run(["bash", "--norc"], cwd="/", env={"PATH": os.environ["PATH"]})
        try:
            own = _Own(host, info.id)
            dumps = interleaved(
                {"holdfast": own.checkpoint, _RAW: partial(raw.dump, host, info.id)},
                stage.scale.start_repetitions,
                warm_up=1,
            )
            frozen = {"holdfast": list(own.frozen), _RAW: list(raw.frozen)}
            restores = interleaved(
                {"holdfast": own.restore, _RAW: raw.restore},
                stage.scale.start_repetitions,
                warm_up=1,
            )
        finally:
            host.end(info.id)
        large = _large_heap(stage, host, raw)
    size = f"{stage.scale.heap_mb} MiB"
    return [
        _row("checkpoint of an idle shell", dumps, 2.0),
        _row("of that, standing still", frozen, 1.5),
        _row("restore of an idle shell", restores, 2.0),
        # a small heap is no measure: what is left is what CRIU does with any process
        _row(f"heap of {size}, standing still", large, 0.1 if stage.scale.heap_mb > 1000 else None),
    ]


def _large_heap(stage: Stage, host: Host, raw: _RawCriu) -> Samples:
    """How long it stands still, each time it is checkpointed with its heap."""
    program = ["python3", "-c", _HEAP.format(stage.scale.heap_mb)]
    info = host.run(program, cwd="/", env={"PATH": os.environ["PATH"]})
    try:
        deadline = time.monotonic() + _TIMEOUT_S
        while "filled" not in host.screen(info.id).text:
            if time.monotonic() > deadline:
                raise RuntimeError("the heap is not filled")
            time.sleep(0.05)
        own = _Own(host, info.id)

        def by_us() -> float:
            own.checkpoint()
            return own.frozen[-1]

        def by_criu() -> float:
            raw.dump(host, info.id)
            return raw.frozen[-1]

        return interleaved(
            {"holdfast": by_us, _RAW: by_criu}, stage.scale.heap_repetitions, warm_up=1
        )
    finally:
        host.end(info.id)


def _row(name: str, samples: Samples, bound: float | None) -> Row:
    found = medians(samples)
    return Row(
        name,
        "ms",
        {"holdfast": found["holdfast"]},
        _RAW,
        baseline=found[_RAW],
        target=None if bound is None else Target("<=", bound),
        samples=samples,
    )


class _Own:
    """One session, as its client sees it."""

    def __init__(self, host: Host, session: str) -> None:
        self._host, self._session = host, session
        self.frozen: list[float] = []

    def checkpoint(self) -> float:
        began = time.perf_counter()
        request = MakeCheckpoint(0, self._session, False, "")
        made = self._host.ask(request, CheckpointMade).checkpoint
        self.frozen.append(made.frozen_ms)
        return (time.perf_counter() - began) * 1000

    def restore(self) -> float:
        self._host.ask(MakeCheckpoint(0, self._session, True, ""), CheckpointMade)
        began = time.perf_counter()
        self._host.ask(Restore(0, self._session), Restored)
        return (time.perf_counter() - began) * 1000


class _RawCriu:
    """From its command line."""

    def __init__(self, criu: find.Criu, directory: str) -> None:
        self._criu, self._images = criu, f"{directory}/images"
        facts = f"{directory}/facts"
        with open(facts, "wb") as file:
            file.write(criu.facts)
        self._place = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _APART, "sh", facts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._place.stdout is not None
        self._place.stdout.readline()
        self._there = ("nsenter", f"--mount=/proc/{self._place.pid}/ns/mnt")
        self.frozen: list[float] = []

    def close(self) -> None:
        self._place.communicate()

    def dump(self, host: Host, session: str) -> float:
        graph = host.graph(session)
        place = Place(
            pid=graph.root,
            shell_pid=_first_child(graph.root),
            tty="/dev/pts/0",
            cgroup=_group_of(graph.root),
            mounts=_mounts_of(graph.root),
        )
        slave = os.open(f"/proc/{place.shell_pid}/root/dev/pts/0", os.O_RDWR | os.O_NOCTTY)
        try:
            tree = dump.look(place, slave, gate=True)
        finally:
            os.close(slave)
        external = (*tree.tty_keys, *mount_marks.for_dump(tree.mounts))
        options = [word for each in external for word in ("--external", each)]
        took = self._run(
            *("dump", "-t", str(place.pid), "--leave-running", "--tcp-established"),
            *("--network-lock", "skip", "--skip-in-flight", "--file-locks", "--link-remap"),
            *("--manage-cgroups=ignore", "--ghost-limit", "64M", *options),
        )
        images = os.open(self._images, os.O_RDONLY)
        self.frozen.append(dump.frozen_ms(images))
        os.close(images)
        return took

    def restore(self) -> float:
        tree = subprocess.Popen(
            [*self._there, "bash", "-c", _TREE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while not (children := _children(tree.pid)):
            time.sleep(0.001)
        (child,) = children
        self._run("dump", "-t", str(tree.pid), "--manage-cgroups=ignore")
        tree.wait()
        while os.path.exists(f"/proc/{child}"):  # its number must be free again
            time.sleep(0.001)
        pidfile = f"{self._images}/pid"
        more = ("-d", "--manage-cgroups=ignore", "--pidfile", pidfile)
        took = self._run("restore", *more, fresh=False)
        with open(pidfile, encoding="ascii") as file:
            os.killpg(int(file.read()), signal.SIGKILL)
        return took

    def _run(self, *words: str, fresh: bool = True) -> float:
        if fresh:
            shutil.rmtree(self._images, ignore_errors=True)
            os.mkdir(self._images)
        began = time.perf_counter()
        done = subprocess.run(
            [*self._there, *self._criu.command, *words, "-D", self._images, "-o", "log", "-v2"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
        )
        took = (time.perf_counter() - began) * 1000
        if done.returncode:
            with open(f"{self._images}/log", encoding="utf-8", errors="replace") as log:
                raise RuntimeError(log.read()[-2000:])
        return took


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def _first_child(pid: int) -> int:
    return _children(pid)[0]


def _group_of(pid: int) -> str:
    with (
        open("/proc/self/mountinfo", encoding="utf-8") as mounts,
        open(f"/proc/{pid}/cgroup", encoding="utf-8") as membership,
    ):
        found = cgroup.locate(mounts.read(), membership.read(), os.path.isdir)
    assert found is not None, "a movable session has a group"
    return found


def _mounts_of(pid: int) -> tuple[str, ...]:
    """Every mount of its own tree, but those that are new in each."""
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as file:
        paths = [cgroup.unescaped(line.split(" ")[4]) for line in file]
    return tuple(path for path in paths if path not in ("/", "/proc", "/sys"))
