"""What every measure stands on: a temporary directory, a clean environment, the systems that are
installed. Leaving the stage takes everything down again."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bench.content import make_file, script, until_attached
from bench.systems import Dtach, Holdfast, Screen, System, Tmux
from bench.terminal import Terminal

_KEPT = ("PATH", "HOME", "USER", "LOGNAME")


@dataclass(frozen=True)
class Scale:
    """How much is done: the full run, or a quick one to see that all works."""

    text_blocks: int = 47  # of 1 MB, to one attached terminal
    text_repetitions: int = 5
    keys: int = 1000
    long_output_blocks: int = 1000  # before the attach
    attach_repetitions: int = 15
    stalled_repetitions: int = 7
    idle_sessions: int = 500
    idle_seconds: float = 10.0
    start_repetitions: int = 25
    heap_mb: int = 1024  # of the large program that is checkpointed
    heap_repetitions: int = 7


QUICK = Scale(
    text_blocks=6,
    text_repetitions=3,
    keys=200,
    long_output_blocks=50,
    attach_repetitions=3,
    stalled_repetitions=3,
    idle_sessions=30,
    idle_seconds=2.0,
    start_repetitions=5,
    heap_mb=128,
    heap_repetitions=2,
)


@dataclass
class Stage:
    """A run's surroundings."""

    scale: Scale
    directory: str
    env: dict[str, str]
    holdfast: Holdfast
    tmux: Tmux
    dtach: Dtach
    screen: Screen
    missing: list[str] = field(default_factory=list)

    def systems(
        self, names: Iterable[str] = ("holdfast", "tmux", "dtach", "screen")
    ) -> list[System]:
        """Those that are there. Holdfast is first."""
        every: list[System] = [self.holdfast, self.tmux, self.dtach, self.screen]
        return [each for each in every if each.name in names and each.name not in self.missing]

    def text_file(self) -> str:
        """The coloured text, made once."""
        return self._made("text", self.scale.text_blocks)

    def block_file(self) -> str:
        return self._made("block", 1)

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    @contextlib.contextmanager
    def attached(self, system: System, name: str, file: str) -> Iterator[Terminal]:
        """A session running the content script, and a client attached to it."""
        if name not in system.known:
            system.start(name, script(system.pid_file(name), file))
            system.known.add(name)
        with Terminal(system.attach_command(name), system.env) as terminal:
            until_attached(terminal)
            yield terminal

    def _made(self, name: str, blocks: int) -> str:
        path = self.path(name)
        return path if os.path.exists(path) else make_file(path, blocks)


@contextlib.contextmanager
def staged(scale: Scale) -> Iterator[Stage]:
    # Short and in /tmp: socket paths have a limit of about a hundred bytes.
    directory = tempfile.mkdtemp(prefix="hfb-", dir="/tmp")
    env = {key: os.environ[key] for key in _KEPT if key in os.environ}
    env |= {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
    stage = Stage(
        scale,
        directory,
        env,
        Holdfast(directory, env),
        Tmux(directory, env),
        Dtach(directory, env),
        Screen(directory, env),
    )
    every: list[System] = [stage.holdfast, stage.tmux, stage.dtach, stage.screen]
    stage.missing = [system.name for system in every if not system.installed]
    with contextlib.ExitStack() as down:
        down.callback(shutil.rmtree, directory, ignore_errors=True)
        for system in stage.systems():
            down.callback(system.close)
            system.begin()
        yield stage
