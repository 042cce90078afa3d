"""Session start to first prompt.

Timed until the new bash is about to show its prompt, which it tells by writing a byte to a FIFO
from PROMPT_COMMAND. As root holdfast starts a contained session: own namespaces, cgroup and
devpts. dtach and screen start a process of their own for each session. Two rows:

- the start of a session: for holdfast from the request of a program that is connected already
  (an agent, a service, the SDK); for the others from their command, which is C and starts in 2 ms;
- the whole command: `hold run -d` beside `tmux new-session -d`. It includes the start of a Python
  interpreter, which alone takes longer than all of tmux, so it has no target; it is shown because
  it is what a person at a prompt waits for."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from functools import partial
from itertools import count

from bench.results import Row, Target
from bench.sampling import Samples, interleaved, medians
from bench.stage import Stage
from bench.systems import System
from holdfast.sdk.client import Host

_TIMEOUT_S = 20.0
_SKELETON = "/etc/skel/.bashrc"  # what a new user's bash reads on Debian
_numbers = count(1)


def measure(stage: Stage) -> list[Row]:
    home = stage.path("home")
    os.makedirs(home, exist_ok=True)
    if os.path.exists(_SKELETON):
        shutil.copy(_SKELETON, os.path.join(home, ".bashrc"))
    bare = _interleaved(stage, ["bash", "--norc"], {})
    requested = _requested(stage, ["bash", "--norc"])
    with_rc = _interleaved(stage, ["bash"], {"HOME": home})
    level = "contained" if os.geteuid() == 0 else "plain"
    return [
        Row(
            f"session start to first prompt, {level}",
            "ms",
            medians(requested),
            "tmux",
            target=Target("<=", 4),
            samples=requested,
            note="bash --norc; holdfast asked by a connected program",
        ),
        Row("the same, the whole command", "ms", medians(bare), "tmux", samples=bare),
        Row("the same with Debian's .bashrc", "ms", medians(with_rc), "tmux", samples=with_rc),
    ]


def _interleaved(stage: Stage, argv: list[str], env: dict[str, str]) -> Samples:
    actions = {system.name: partial(_start, stage, system, argv, env) for system in stage.systems()}
    return interleaved(actions, stage.scale.start_repetitions, warm_up=2)


def _requested(stage: Stage, argv: list[str]) -> Samples:
    """tmux by its command, holdfast by a request on an open connection."""
    by_name = {system.name: system for system in stage.systems()}
    with Host(f"{by_name['holdfast'].env['HOLDFAST_HOME']}/run/hold.sock") as host:
        actions = {"holdfast": partial(_request, stage, host, argv)}
        if "tmux" in by_name:
            actions["tmux"] = partial(_start, stage, by_name["tmux"], argv, {})
        return interleaved(actions, stage.scale.start_repetitions, warm_up=2)


def _request(stage: Stage, host: Host, argv: list[str]) -> float:
    fifo = stage.path(f"request{next(_numbers)}")
    os.mkfifo(fifo)
    bell = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    env = {"PATH": os.environ["PATH"], "PROMPT_COMMAND": f"echo > {fifo}"}
    try:
        began = time.perf_counter()
        info = host.run(argv, cwd="/", env=env)
        if not select.select([bell], [], [], _TIMEOUT_S)[0]:
            raise TimeoutError("holdfast: no prompt")
        seconds = time.perf_counter() - began
        host.end(info.id)
        return seconds * 1000
    finally:
        os.close(bell)
        os.unlink(fifo)


def _start(stage: Stage, system: System, argv: list[str], env: dict[str, str]) -> float:
    name = f"start{next(_numbers)}"
    # A FIFO for each: a second prompt of the one before must not count as this one's first.
    fifo = stage.path(name)
    os.mkfifo(fifo)
    bell = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    # It tells its pid, by which the sessions of dtach are ended.
    env = {**env, "PROMPT_COMMAND": f"echo $$ > {fifo}"}
    try:
        return _until_bell(system, name, system.start_command(name, argv, env), env, bell)
    finally:
        os.close(bell)
        os.unlink(fifo)


def _until_bell(
    system: System, name: str, command: list[str], env: dict[str, str], bell: int
) -> float:
    began = time.perf_counter()
    client = subprocess.Popen(
        command,
        env={**system.env, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
    )
    if not select.select([bell], [], [], _TIMEOUT_S)[0]:
        raise TimeoutError(f"{system.name}: no prompt")
    seconds = time.perf_counter() - began
    with open(system.pid_file(name), "wb") as file:
        file.write(os.read(bell, 64))
    client.wait(_TIMEOUT_S)
    system.end(name)
    return seconds * 1000
