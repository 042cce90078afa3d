"""A2, F2: the clock of the machine jumps forward and back for as long as a host runs, over killed
daemons too, from one seed. No right that has expired comes back, none ends before its time, and the
lease of a session, which goes by another clock, does not notice."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.crash_points import customized_host
from faults.hosting import FaultHost
from holdfast.adapters.halt import cgroup

SEED = 20_261_119
STEPS = 45
AGENTS = ("ann", "bob", "cyd")
MARGIN_S = 5.0  # between the host's look at its clock and ours

_SHIFTED = """
import time
really = time.time
def shifted():
    try:
        with open({path!r}) as file:
            return really() + float(file.read())
    except (OSError, ValueError):
        return really()
time.time = shifted
"""


class ClockedHost:
    """A host whose clock is set here, and what may be said of its rights."""

    def __init__(self, path: Path) -> None:
        self._path, self.offset = path, 0.0
        self.latest = 0.0  # the host never goes behind what it has seen of this
        self.host = customized_host(_SHIFTED.format(path=str(path)))
        (self.host.home / "config.toml").write_text("lease_s = 12.0\n")
        self.host.up()
        self.expires: dict[str, float] = {}  # by the host's clock

    def set(self, offset: float) -> None:
        new = self._path.with_suffix(".new")
        new.write_text(repr(offset))
        os.rename(new, self._path)
        self.offset = offset

    def wall(self) -> float:
        return time.time() + self.offset

    def ok(self, *words: str) -> str:
        done = self.host.hold(*words)
        assert done.returncode == 0, (words, done, self.host.log()[-2000:])
        return done.stdout

    def give(self, agent: str, seconds: int) -> None:
        self.ok("grant", agent, "execute", "--all", "--expires", f"{seconds}s")
        shown = json.loads(self.ok("actor", "show", agent, "--json"))
        self.expires[agent] = shown["envelopes"][0]["expires_at"]

    def probe(self, agent: str) -> bool:
        """Whether it may write now; checked against what its clock has shown so far."""
        wall, before = self.wall(), self.latest
        done = self.host.hold("--as", agent, "send", "work", "x")
        self.latest = max(before, self.wall())
        may = done.returncode == 0
        expires = self.expires[agent]
        if max(wall, before) > expires + MARGIN_S:
            assert not may, f"{agent} has expired {max(wall, before) - expires:.0f} s ago"
        if self.latest < expires - MARGIN_S:
            assert may, f"{agent} has {expires - self.latest:.0f} s left: {done.stderr}"
        return may


@pytest.fixture
def clocked(tmp_path: Path) -> Iterator[ClockedHost]:
    made = ClockedHost(tmp_path / "offset")
    try:
        yield made
    finally:
        made.host.down()


def lease_of(host: FaultHost, name: str) -> tuple[str, int]:
    shown = json.loads(host.hold("show", name, "--json").stdout)
    return shown["lease"]["state"], shown["epoch"]


@pytest.mark.requirement("A2", "F2")
@pytest.mark.timeout(150)
def test_a_clock_that_jumps_revives_no_right_ends_none_early_and_fences_nothing(
    clocked: ClockedHost,
) -> None:
    chance = random.Random(SEED)
    clocked.ok("run", "-d", "--name", "work", "--", "cat")
    leased = os.getuid() == 0 and not cgroup.unavailable()
    if leased:
        clocked.ok("run", "-d", "--name", "leased", "--rehomeable", "--", "cat")
        held = lease_of(clocked.host, "leased")
        assert held[0] == "held"
    for agent in AGENTS:
        clocked.ok("actor", "add", agent)
        clocked.give(agent, 3600)
    seen = {True: 0, False: 0}
    for step in range(STEPS):
        what = chance.choice(("jump", "jump", "back", "give", "kill", "probe", "probe"))
        if what == "jump":
            clocked.set(clocked.offset + chance.uniform(-7200, 5400))
        elif what == "back":
            clocked.set(clocked.offset - chance.uniform(0, 90_000))
        elif what == "give":
            clocked.give(chance.choice(AGENTS), chance.randrange(600, 7200))
        elif what == "kill":
            clocked.host.wait_new_daemon(clocked.host.kill_daemon())
        for agent in AGENTS:
            seen[clocked.probe(agent)] += 1
        if leased:
            assert lease_of(clocked.host, "leased") == held, f"after step {step}, {what}"
    assert min(seen.values()) > STEPS / 5, "the run saw both"
