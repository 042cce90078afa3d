"""Moves of a live session in which daemons are killed or hang, at seeded moments, while an operator
types: exactly one life comes of each, with every line once, in order (F1, N1)."""

from __future__ import annotations

import difflib
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.sdk.client import Host
from holdfast.wire.host_link import LinkTicket
from holdfast.wire.messages.host_links import GetTicket, TicketGiven
from holdfast.wire.messages.moving import Move, SessionMoved
from privileged.checkpointing import skip_unless_possible, started
from privileged.moving import Typist, lives, two_hosts
from process.commanding import Hold
from process.relaying import RelayProcess
from process.waiting import until

SEED = 15
_RUNS = 6  # of each kind
_MOMENTS_S = 1.6  # a move here takes about as long
_HANGS_S = 1.5
_SETTLES_S = 60.0


@pytest.fixture
def hosts() -> Iterator[tuple[Hold, Hold]]:
    skip_unless_possible()
    with two_hosts() as both:
        yield both


def daemon_pid(host: Hold) -> int:
    return int(host.json("daemon", "status")["daemon_pid"])


def killed(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def hung(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(_HANGS_S)
    os.kill(pid, signal.SIGCONT)


class Faults:
    """One session, moved to and fro."""

    def __init__(self, hosts: tuple[Hold, Hold]) -> None:
        self.hosts = hosts
        self.source, self.target = hosts
        self.lines = Path(hosts[0].made + "-lines")
        program = f"while read -r line; do echo $line >> {self.lines}; done"
        self.session = started(self.source, "counts", "bash", "--norc", "-c", program, prompt=False)
        self.typist = Typist(self.session, hosts)
        self.typist.start()
        self.moves = 0

    def run(self, moment_s: float, hits: tuple[int, ...], fault: Callable[[int], None]) -> str:
        """Begin a move, and do this to the daemon of these hosts (0: the source). What the command
        said."""
        pids = [daemon_pid(self.source), daemon_pid(self.target)]
        before = self.typist.typed
        command = self.source.start("move", self.session, self.target.home)
        time.sleep(moment_s)
        for each in hits:
            fault(pids[each])
        out, err = command.communicate(timeout=_SETTLES_S)
        self.settles(f"{moment_s:.2f} s, {hits}: {out!r} {err!r}")
        until("nothing is typed", lambda: self.typist.typed > before or bool(self.typist.failure))
        assert not self.typist.failure, self.typist.failure
        return (out + err).decode()

    def settles(self, story: str) -> None:
        """It runs at exactly one of them."""
        deadline = time.monotonic() + _SETTLES_S
        while True:
            living = [host for host in self.hosts if lives(host, self.session)]
            assert len(living) < 2, f"two lives: {story}"
            if living:
                break
            assert time.monotonic() < deadline, f"none is alive: {story}\n{self.story()}"
            time.sleep(0.05)
        self.moves += living[0] is self.target
        if living[0] is self.target:
            self.source, self.target = self.target, self.source

    def close(self) -> None:
        self.typist.over.set()
        self.typist.join()
        assert not self.typist.failure, self.typist.failure
        typed = [str(number) for number in range(1, self.typist.typed + 1)]
        until("not all that was typed is read", lambda: len(self.read()) >= len(typed))
        assert self.read() == typed, f"{_difference(typed, self.read())}\n{self.story()}"
        self.source.ok("verify", self.session)
        self.lines.unlink()

    def read(self) -> list[str]:
        return self.lines.read_text().split()

    def story(self) -> str:
        return "\n\n".join(Path(host.home, "host.log").read_text()[-4000:] for host in self.hosts)


def _difference(typed: list[str], read: list[str]) -> str:
    found = difflib.unified_diff(typed, read, "typed", "read", lineterm="", n=2)
    return "lost or doubled: " + " ".join(found)


@pytest.mark.requirement("F1", "N1")
@pytest.mark.parametrize(
    ("hits", "fault"),
    [
        pytest.param((0,), killed, id="the source's daemon is killed"),
        pytest.param((1,), killed, id="the target's daemon is killed"),
        pytest.param((0, 1), killed, id="both daemons are killed"),
        pytest.param((0,), hung, id="the source's daemon hangs"),
        pytest.param((1,), hung, id="the target's daemon hangs"),
    ],
)
def test_one_life_and_every_line_once_whatever_fails_at_whatever_moment(
    hosts: tuple[Hold, Hold], hits: tuple[int, ...], fault: Callable[[int], None]
) -> None:
    chance = random.Random(f"{SEED} {hits} {fault.__name__}")
    faults = Faults(hosts)
    for _ in range(_RUNS):
        faults.run(chance.uniform(0.0, _MOMENTS_S), hits, fault)
    faults.close()


def moved_over_a_relay(source: Hold, session: str, target: Hold) -> str:
    """As `hold move` does, but that the source is told nothing of the target's socket. What came
    of it."""
    with (
        Host(f"{source.home}/run/hold.sock") as here,
        Host(f"{target.home}/run/hold.sock") as there,
    ):
        ticket = there.ask(GetTicket(0, session, here.host_key), TicketGiven).ticket
        over_relay = LinkTicket.of_text(ticket).replace(socket="").text()
        try:
            here.ask(Move(0, session, over_relay, target.home), SessionMoved, once=True)
        except HoldfastError as error:
            return error.message
    return "moved"


@pytest.mark.requirement("F1", "N1")
def test_a_relay_that_dies_at_any_moment_of_a_move_over_it_costs_no_life_and_no_line(
    hosts: tuple[Hold, Hold],
) -> None:
    chance, faults, relay = random.Random(SEED), Faults(hosts), MortalRelay()
    try:
        for each in hosts:
            each.ok("host", "--relay", relay.url)
        for _ in range(_RUNS):
            for each in hosts:
                until("the relay is not reached", partial(_is_reached, each))
            with ThreadPoolExecutor(1) as pool:
                ends = (faults.source, faults.session, faults.target)
                moving = pool.submit(moved_over_a_relay, *ends)
                time.sleep(chance.uniform(0.0, _MOMENTS_S / 2))
                relay.dies()
                faults.settles(moving.result(_SETTLES_S))
        faults.close()
    finally:
        relay.close()


class MortalRelay:
    """Another comes to its place."""

    def __init__(self) -> None:
        self._home = tempfile.mkdtemp(prefix="hf-", dir="/tmp")
        self._process = RelayProcess(home=self._home)
        self.url = self._process.url

    def dies(self) -> None:
        self._process.process.kill()
        self._process.__exit__(None, None, None)
        port = self._process.port
        self._process = RelayProcess(listen=f"127.0.0.1:{port}", home=self._home)

    def close(self) -> None:
        self._process.__exit__(None, None, None)
        shutil.rmtree(self._home, ignore_errors=True)


def _is_reached(host: Hold) -> bool:
    return all(each["reached"] for each in host.json("host"))


@pytest.mark.requirement("N1")
def test_a_typist_notices_nothing_of_ten_moves_but_a_pause(hosts: tuple[Hold, Hold]) -> None:
    faults = Faults(hosts)
    for _ in range(10):
        faults.run(0.0, (), killed)
    assert faults.moves == 10
    faults.close()
