"""The scenarios of the gate: one actor lays a trap in a session, another one sets it off.

Black-box: what an agent and two people can do with `hold` and the SDK, and files that only a trap
writes. What is in the tables: gate_line_scenarios.py and gate_exec_scenarios.py. What is asserted:
the tests that go through them. Nothing here knows how the gate works.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from holdfast import blocking
from holdfast.model.errors import HoldfastError, TurnNotHeld
from process.commanding import Hold

AGENT, HUMAN = "rob", "otto"  # rob lays the trap, otto sets it off; the unix user sees to both
PATIENCE_S = 20.0
LOOK_S = 0.01  # between two looks at a file that the kernel does not announce
CODES = ("gate_refused", "gate_held")

LINE, EXEC = "line", "exec"  # which layer must catch it
LEVEL = {LINE: "plain", EXEC: "contained"}


@dataclass(frozen=True)
class Scenario:
    """A trap: what is prepared, what rob does, what otto does. Texts have {trap}, {mark} and other
    places in them, see `Stage.fill`."""

    name: str
    staged: tuple[Step, ...]
    triggered: tuple[Step, ...]
    prepared: tuple[Step, ...] = ()  # by otto, before
    layer: str = LINE
    why: str = ""  # what to ask `hold why` for
    shell: tuple[str, ...] = ("bash", "--norc")
    policy: str = "shared"  # what refuses it
    ambient: bool = False  # everything in the shell is rob's from now on, also an innocent line
    closed: bool = False  # the product lets nobody do this, gate or not: no control, no exception
    restaged: bool = False  # it springs only once: laid again for a policy that allows it
    by_agent: tuple[Step, ...] = ()  # instead of otto, where rob acts alone
    after: tuple[Step, ...] = ()  # once these are through, what has not sprung never will
    instead: tuple[Step, ...] = ()  # of `triggered`, where it is to be allowed
    mark: str = "{marks}/sprung"
    env: tuple[tuple[str, str], ...] = ()


Step = Callable[["Stage", str], None]


@dataclass
class Stage:
    """One session with the places of one scenario."""

    theatre: Theatre
    session: str
    place: Path
    mark: Path = Path()
    names: dict[str, str] = field(default_factory=dict)
    refusals: list[HoldfastError] = field(default_factory=list)
    pipes: dict[str, int] = field(default_factory=dict)  # ends that the test has open

    def fill(self, text: str) -> str:
        """With braces replaced only where they are a name of ours: shells like braces too."""
        for name, value in self.names.items():
            text = text.replace("{" + name + "}", value)
        return text

    def sprung(self) -> bool:
        """Whether the trap has acted. Only a trap writes there."""
        return self.mark.exists() and self.mark.stat().st_size > 0

    def reset(self) -> None:
        self.mark.unlink(missing_ok=True)
        self.refusals.clear()

    def until(self, what: Callable[[], bool]) -> bool:
        """Whether it becomes so in time; for files, which announce nothing."""
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_S)
        return True

    @contextlib.contextmanager
    def acting(self, actor: str) -> Iterator[blocking.Session]:
        """The session as this actor has it, and the turn free for the other one afterwards. What
        the gate refuses is kept, everything else is a mistake of the test."""
        session = self.theatre.client(actor).session(self.session)
        try:
            yield session
        except HoldfastError as refusal:
            if refusal.code not in CODES:
                raise
            self.refusals.append(refusal)
        finally:
            with contextlib.suppress(TurnNotHeld):
                session.yield_turn()

    def run(self, steps: tuple[Step, ...], actor: str) -> None:
        for step in steps:
            step(self, actor)


# -- steps ------------------------------------------------------------------------------------


def ran(line: str) -> Step:
    """A whole command line, to its end."""

    def step(stage: Stage, actor: str) -> None:
        with stage.acting(actor) as session:
            session.submit(stage.fill(line), wait_prompt=PATIENCE_S, timeout=PATIENCE_S)

    return step


def wrote(path: str, text: str, mode: str = "") -> Step:
    """A file, by a command of the session: what is written from elsewhere is nobody's there."""

    def step(stage: Stage, actor: str) -> None:
        where, quoted = stage.fill(path), shlex.quote(stage.fill(text))
        then = f" && chmod {mode} {where}" if mode else ""
        ran(f"mkdir -p {Path(where).parent} && printf '%s\\n' {quoted} > {where}{then}")(
            stage, actor
        )

    return step


def typed(text: str) -> Step:
    """At the prompt, or into whatever reads; without Enter."""

    def step(stage: Stage, actor: str) -> None:
        with stage.acting(actor) as session:
            session.type(stage.fill(text))

    return step


def entered(text: str) -> Step:
    """With Enter, without waiting for what comes of it."""

    def step(stage: Stage, actor: str) -> None:
        with stage.acting(actor) as session:
            session.type(stage.fill(text), enter=True)

    return step


def pressed(*keys: str) -> Step:
    def step(stage: Stage, actor: str) -> None:
        with stage.acting(actor) as session:
            session.keys(*keys)

    return step


def seen(pattern: str) -> Step:
    """Wait until the terminal shows it."""

    def step(stage: Stage, actor: str) -> None:
        session = stage.theatre.client(actor).session(stage.session)
        session.wait_for(text=stage.fill(pattern), timeout=PATIENCE_S)

    return step


def shown(pattern: str) -> Step:
    """Wait until the terminal shows what was typed last has done, unless it was refused."""

    def step(stage: Stage, actor: str) -> None:
        if not stage.refusals:
            seen(pattern)(stage, actor)

    return step


def state(name: str) -> Step:
    def step(stage: Stage, actor: str) -> None:
        session = stage.theatre.client(actor).session(stage.session)
        session.wait_for(state=name, timeout=PATIENCE_S)  # type: ignore[arg-type]

    return step


def raw(text: str) -> Step:
    """Bytes as they are, as if a terminal had sent them."""

    def step(stage: Stage, actor: str) -> None:
        with stage.acting(actor) as session:
            session.type_bytes(stage.fill(text).encode())

    return step


def exists(path: str) -> Step:
    """Wait for a file that something in the session makes."""

    def step(stage: Stage, actor: str) -> None:
        assert stage.until(Path(stage.fill(path)).exists), f"no {stage.fill(path)}"

    return step


def opened(fifo: str) -> Step:
    """Let go on what reads this fifo; from outside, by nobody's hand."""

    def step(stage: Stage, actor: str) -> None:
        path = stage.fill(fifo)
        assert stage.until(lambda: _fed(path)), f"nobody reads {path}"

    return step


def _fed(path: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    os.write(fd, b"go\n")
    os.close(fd)
    return True


def listening(fifo: str) -> Step:
    """Have the reading end of a fifo that a job is to keep open for as long as it lives."""

    def step(stage: Stage, actor: str) -> None:
        path = stage.fill(fifo)
        made(path, "fifo")(stage, actor)
        if path not in stage.pipes:
            stage.pipes[path] = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    return step


def finished(fifo: str) -> Step:
    """Wait until no process has the fifo open."""

    def step(stage: Stage, actor: str) -> None:
        poll = select.poll()
        poll.register(stage.pipes[stage.fill(fifo)], 0)
        assert poll.poll(PATIENCE_S * 1000), f"{fifo} is still open"

    return step


def resized(cols: int, rows: int) -> Step:
    def step(stage: Stage, actor: str) -> None:
        with stage.acting(actor) as session:
            session.resize((cols, rows))

    return step


def made(path: str, kind: str) -> Step:
    """A fifo that the test itself feeds."""

    def step(stage: Stage, actor: str) -> None:
        with contextlib.suppress(FileExistsError):
            {"fifo": os.mkfifo, "dir": os.mkdir}[kind](stage.fill(path))

    return step


# -- the house --------------------------------------------------------------------------------


class Theatre:
    """One host, its actors, and a place for each scenario."""

    def __init__(self, hold: Hold) -> None:
        self.hold = hold
        self.base = Path(tempfile.mkdtemp(prefix="hfg-", dir="/tmp"))
        self.base.chmod(0o755)
        self.count = 0
        self._clients: dict[str, blocking.Hold] = {}
        hold.ok("up", "-d")
        hold.ok("actor", "add", AGENT, "--kind", "agent")
        hold.ok("actor", "add", HUMAN, "--kind", "human")
        for name in (AGENT, HUMAN):
            hold.ok("grant", name, "execute", "--all")

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self.hold.close()
        shutil.rmtree(self.base, ignore_errors=True)

    def client(self, actor: str) -> blocking.Hold:
        """One connection for each actor; "" is the unix user."""
        if actor not in self._clients:
            with mock.patch.dict(os.environ, {"HOLDFAST_HOME": self.hold.home}):
                self._clients[actor] = blocking.connect(actor=actor or None, client="test")
        return self._clients[actor]

    @contextlib.contextmanager
    def stage(self, scenario: Scenario, *, gated: bool = True) -> Iterator[Stage]:
        """A session for this scenario, at the level that its layer needs; `gated` is False for one
        that no exec gate will ever be asked about."""
        self.count += 1
        place = self.base / str(self.count)
        for name in ("work", "home", "marks"):
            (place / name).mkdir(parents=True)
        (place / "marks").chmod(0o777)
        names = {name: str(place / name) for name in ("work", "home", "marks")}
        mark = Path(scenario.mark.replace("{marks}", names["marks"]))
        names |= {"mark": str(mark), "trap": f"echo sprung > {mark}", "python": "/usr/bin/python3"}
        names |= {"built": str(self.base)}
        (place / "home" / ".zshrc").touch()
        (place / "home" / ".gitconfig").write_text("[user]\nname = otto\nemail = otto@test\n")
        env = {
            "HOME": names["home"],
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "PS1": "$ ",
            "XDG_DATA_HOME": os.environ.get("XDG_DATA_HOME", ""),  # see tests/conftest.py
            "USER": os.environ.get("USER", "root"),
        }
        stage = Stage(self, "", place, mark, names)
        env |= {name: stage.fill(value) for name, value in scenario.env}
        session = self.client("").run(
            list(scenario.shell),
            name=f"stage{self.count}",
            cwd=names["work"],
            env=env,
            level=LEVEL[scenario.layer],
            gate=gated,
        )
        stage.session = session.id
        session.wait_for(state="prompt", timeout=PATIENCE_S)
        try:
            yield stage
        finally:
            for fd in stage.pipes.values():
                os.close(fd)
            with contextlib.suppress(HoldfastError):
                session.end()


def compiled(theatre: Theatre, source: str, name: str, *options: str) -> None:
    """A program or library at {built}/NAME, made outside of all sessions."""
    path = Path(__file__).with_name("gate_programs") / f"{source}.c"
    done = subprocess.run(
        ["cc", "-O1", str(path), "-o", str(theatre.base / name), *options],
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()


def settled(stage: Stage) -> None:
    """What otto did has had its effect: the shell is back at its prompt."""
    session = stage.theatre.client(HUMAN).session(stage.session)
    session.wait_for(state="prompt", timeout=PATIENCE_S)


def log(stage: Stage, *words: str) -> list[dict[str, Any]]:
    lines = stage.theatre.hold.ok("log", stage.session, "--json", *words).splitlines()
    return [json.loads(line) for line in lines]
