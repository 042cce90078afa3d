"""Session start to first prompt.

Timed: from starting the client command (`hold run -d`, `tmux new-session -d`) with the server
already running, until the new bash is about to show its prompt, which it tells by writing a byte
to a FIFO from PROMPT_COMMAND. As root holdfast starts a contained session: own namespaces, cgroup
and devpts. dtach and screen start a process of their own for each session."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from functools import partial
from itertools import count

from bench.results import Row, Target
from bench.sampling import interleaved, medians
from bench.stage import Stage
from bench.systems import System

_TIMEOUT_S = 20.0
_SKELETON = "/etc/skel/.bashrc"  # what a new user's bash reads on Debian


def measure(stage: Stage) -> list[Row]:
    fifo = stage.path("prompt")
    os.mkfifo(fifo)
    bell = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    # The shell tells its pid too: how the sessions of dtach are ended.
    env = {"PROMPT_COMMAND": f"echo $$ > {fifo}"}
    numbers = count(1)
    try:
        bare = _interleaved(stage, ["bash", "--norc"], env, bell, numbers)
        home = stage.path("home")
        os.makedirs(home)
        if os.path.exists(_SKELETON):
            shutil.copy(_SKELETON, os.path.join(home, ".bashrc"))
        with_rc = _interleaved(stage, ["bash"], {**env, "HOME": home}, bell, numbers)
    finally:
        os.close(bell)
    level = "contained" if os.geteuid() == 0 else "plain"
    return [
        Row(
            f"start to first prompt, {level}",
            "ms",
            medians(bare),
            "tmux",
            target=Target("<=", 4),
            samples=bare,
            note="bash --norc",
        ),
        Row("the same with Debian's .bashrc", "ms", medians(with_rc), "tmux", samples=with_rc),
    ]


def _interleaved(
    stage: Stage, argv: list[str], env: dict[str, str], bell: int, numbers: count[int]
) -> dict[str, list[float]]:
    actions = {
        system.name: partial(_start, system, argv, env, bell, numbers) for system in stage.systems()
    }
    return interleaved(actions, stage.scale.start_repetitions, warm_up=2)


def _start(
    system: System, argv: list[str], env: dict[str, str], bell: int, numbers: count[int]
) -> float:
    name = f"start{next(numbers)}"
    command = system.start_command(name, argv, env)
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
