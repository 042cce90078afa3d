"""Checkpoint and restore of an idle shell, and how long a program with a large heap stands still,
beside CRIU alone on the same machine.

CRIU alone dumps a tree of the same kind, a shell in namespaces of its own at a terminal, with the
same flags, into a directory, from its command line; and it restores that. It is given what it knows
of the kernel, as holdfast's is, and locks no network either, where there is no connection. On
holdfast's side come on top: terminal, mounts, output, journal, compression, encryption, the gate's
filter, and the way from client to host and back.

An idle session that sleeps and wakes is compared with what it saves: a shell started anew. What
`hold can-move` takes is compared with the dump that it predicts."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import traceback
from functools import partial

from bench.results import Row, Target
from bench.sampling import Samples, interleaved, medians
from bench.stage import Stage
from bench.systems import Holdfast
from bench.terminal import Terminal
from holdfast.adapters import pty
from holdfast.adapters.criu import dump, find, mount_marks
from holdfast.adapters.halt import cgroup
from holdfast.adapters.launch import mounts, restored_child
from holdfast.model.restore import DumpedTree
from holdfast.model.size import Size
from holdfast.model.spec import Place
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from holdfast.wire.messages.checkpoints import (
    CheckpointMade,
    MakeCheckpoint,
    Restore,
    Restored,
)
from holdfast.wire.messages.preflight import CanMove, CanMoveShown

_RAW, _COLD = "criu alone", "bash, cold"
_UNUSED_S = 0.25  # the threshold of what is evicted
_NAPS_MAX = 15
_SKELETON = "/etc/skel/.bashrc"
_TIMEOUT_S = 60.0
# In a mount namespace of its own, which stays as long as its standard input is open.
_APART = 'mount -t tmpfs criu /run && cat "$1" >/run/criu.kdat && echo ready && cat'

# Its pages are of its own, and none is zero.
_HEAP = "import os; heap = bytearray(os.urandom({} << 20)); print('filled', flush=True); input()"


def measure(stage: Stage) -> list[Row]:
    criu = find.find()
    if os.geteuid() != 0 or cgroup.unavailable() or isinstance(criu, str):
        return []
    (hold,) = stage.systems(("holdfast",))
    repetitions = stage.scale.start_repetitions
    with (
        Host(f"{hold.env['HOLDFAST_HOME']}/run/hold.sock") as host,
        tempfile.TemporaryDirectory() as directory,
        contextlib.closing(_RawCriu(criu, directory)) as raw,
    ):
        env = {"PATH": os.environ["PATH"]}
        session = host.run(["bash", "--norc"], cwd="/", env=env).id
        bare = host.run(["bash", "--norc"], cwd="/", env=env, gate=False).id
        try:
            own = _Own(host, session)
            dumps = interleaved(
                {"holdfast": own.checkpoint, _RAW: partial(raw.dump, host, bare)},
                repetitions,
                warm_up=1,
            )
            frozen = {"holdfast": list(own.frozen), _RAW: list(raw.frozen)}
            looks = interleaved({"holdfast": own.can_move}, repetitions, warm_up=1)
            restores = interleaved(
                {"holdfast": own.restore, _RAW: raw.restore}, repetitions, warm_up=1
            )
        finally:
            host.end(session)
            host.end(bare)
        large = _large_heap(stage, host, raw)
    size = f"{stage.scale.heap_mb} MiB"
    return [
        _row("checkpoint of an idle shell", dumps, 2.0),
        _row("of that, standing still", frozen, 1.5),
        _row("hold can-move, beside the dump it predicts", {**looks, _RAW: dumps[_RAW]}, 0.5),
        _row("restore of an idle shell", restores, 2.0),
        _row("an idle shell evicted, and woken by an attach", _naps(stage), 10.0, _COLD),
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


def _naps(stage: Stage) -> Samples:
    """On a host of its own, where a second without use is enough."""
    directory = stage.path("nap")
    os.mkdir(directory)
    hold = Holdfast(directory, stage.env)
    with open(f"{hold.home}/config.toml", "w", encoding="utf-8") as config:
        # Nothing is evicted without a word of ours: the warning lasts longer than the measure.
        config.write(f"idle_movable_s = {_UNUSED_S}\nidle_warning_s = 3600\n")
    hold.begin()
    try:
        with hold.host() as host:
            env = {"PATH": os.environ["PATH"]}
            napping = _Napping(host, host.run(["bash", "--norc"], cwd="/", env=env).id)
            cold = partial(_cold_bash, stage)
            repetitions = min(stage.scale.start_repetitions, _NAPS_MAX)
            return interleaved({"holdfast": napping.nap, _COLD: cold}, repetitions, warm_up=1)
    finally:
        hold.close()


class _Napping:
    """One idle session, put to sleep and woken as a person at a terminal would."""

    def __init__(self, host: Host, session: str) -> None:
        self._host, self._session, self._channel = host, session, 0

    def nap(self) -> float:
        time.sleep(_UNUSED_S)  # the threshold itself: what is waited for is that time passes
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            began = time.perf_counter()
            if any(each.reaped for each in self._host.ask(m.Reap(0), m.Reaped).sessions):
                break
            if time.monotonic() > deadline:
                raise TimeoutError("it is never idle")
            time.sleep(0.02)
        evicted = time.perf_counter() - began
        self._channel += 1
        began = time.perf_counter()
        self._host.ask(m.Attach(0, self._session, self._channel), m.Attached)
        woken = time.perf_counter() - began
        self._host.ask(m.Detach(0, self._channel), m.Done)
        return (evicted + woken) * 1000


def _cold_bash(stage: Stage) -> float:
    """From its start at a terminal of its own until its prompt, with what a new user's bash reads
    on Debian."""
    home = stage.path("cold")
    os.makedirs(home, exist_ok=True)
    if os.path.exists(_SKELETON):
        shutil.copy(_SKELETON, f"{home}/.bashrc")
    env = {**stage.env, "HOME": home, "PROMPT_COMMAND": "printf first-prompt"}
    began = time.perf_counter()
    with Terminal(["bash"], env) as terminal:
        terminal.wait_for(b"first-prompt", _TIMEOUT_S)
        return (time.perf_counter() - began) * 1000


def _row(name: str, samples: Samples, bound: float | None, against: str = _RAW) -> Row:
    found = medians(samples)
    return Row(
        name,
        "ms",
        {"holdfast": found["holdfast"]},
        against,
        baseline=found[against],
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

    def can_move(self) -> float:
        began = time.perf_counter()
        self._host.ask(CanMove(0, self._session), CanMoveShown)
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
        self._tree: DumpedTree | None = None

    def close(self) -> None:
        self._place.communicate()

    def dump(self, host: Host, session: str) -> float:
        graph = host.graph(session)
        place = Place(
            pid=graph.root,
            shell_pid=_first_child(graph.root),
            tty="/dev/pts/0",
            cgroup=_group_of(graph.root),
            **_mounts_of(graph.root),
        )
        slave = os.open(f"/proc/{place.shell_pid}/root/dev/pts/0", os.O_RDWR | os.O_NOCTTY)
        try:
            tree = dump.look(place, slave, gate=False)
        finally:
            os.close(slave)
        self._tree = tree
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
        """The tree dumped last, beside the session itself: it has pid numbers of its own. How its
        mounts are laid out and its terminal is made is holdfast's way, and not timed."""
        assert self._tree is not None
        terminal = pty.open_private(Size(80, 24), 0)
        measured, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                took = self._restore_apart(self._tree, terminal)
                os.write(told, struct.pack("d", took))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(70)
        os.close(told)
        with open(measured, "rb") as answer:
            said = answer.read()
        for fd in (terminal.master, terminal.slave, terminal.devpts):
            os.close(fd)
        if os.waitpid(child, 0)[1] or not said:
            raise RuntimeError(self._log())
        with open(f"{self._images}/pid", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        os.unlink(f"{self._images}/pid")
        took_ms: float = struct.unpack("d", said)[0]
        return took_ms

    def _restore_apart(self, tree: DumpedTree, terminal: pty.PtyPair) -> float:
        restored_child.lay_out(tree.mounts, terminal.devpts, self._criu.facts)
        words = ["restore", "-d", "--root", restored_child.ROOT, "--manage-cgroups=ignore"]
        words += ["--tcp-established", "--skip-in-flight", "--file-locks", "--link-remap"]
        slaves = []
        for key in tree.tty_keys:
            slaves.append(os.dup(terminal.slave))
            words += ["--inherit-fd", f"fd[{slaves[-1]}]:{key}"]
        for mark in tree.mounts:
            words += ["--external", f"mnt[{mark.cookie}]:{restored_child.part(mark)}"]
        os.environ["HOLDFAST_CTTY"] = f"{tree.shell}:{tree.tty}"
        command = [*self._criu.command, *words, "--pidfile", f"{self._images}/pid"]
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "-D", self._images, "-o", "log", "-v2"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=slaves,
            timeout=_TIMEOUT_S,
        )
        took = (time.perf_counter() - began) * 1000
        done.check_returncode()
        return took

    def _log(self) -> str:
        with open(f"{self._images}/log", encoding="utf-8", errors="replace") as log:
            return log.read()[-2000:]

    def _run(self, *words: str) -> float:
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
            raise RuntimeError(self._log())
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


def _mounts_of(pid: int) -> dict[str, tuple[str, ...]]:
    """Every mount of its own tree, but those that are new in each: of the host; covers over what
    is holdfast's; and what is kept below these."""
    of_host = set(mounts.current_mounts())
    found: dict[str, list[str]] = {"mounts": [], "hidden": [], "kept": []}
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            path = cgroup.unescaped(before.split(" ")[4])
            if path in ("/", "/proc", "/sys") or path.startswith("/dev"):
                continue
            cover = "hidden" if after.startswith("tmpfs ") else "kept"
            found["mounts" if path in of_host else cover].append(path)
    return {name: tuple(paths) for name, paths in found.items()}
