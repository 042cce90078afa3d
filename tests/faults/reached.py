"""A host that has dialled relays, devices that joined it, and relays that can be killed, paused and
started again in their place."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from faults.hosting import FaultHost, descriptor_count, resident_bytes, until
from holdfast.sdk import joining, reaching
from holdfast.sdk.machines import Machine
from holdfast.wire import messages as m
from process.relaying import RelayProcess

__all__ = ["Guests", "RelayPlace", "ReachedHost", "descriptor_count", "resident_bytes"]

ROOMY = ("--limit", "opens=100000", "--limit", "drain_s=1")  # all devices have one address here


class RelayPlace:
    """A relay by its address: whichever process is there now."""

    def __init__(self, start: Callable[[str], RelayProcess]) -> None:
        self._start = start
        self.now = start("127.0.0.1:0")
        self.url, self.port = self.now.url, self.now.port

    @property
    def alive(self) -> bool:
        return self.now.process.poll() is None

    def kill(self) -> None:
        self.now.process.kill()
        self.close()

    def end(self) -> None:
        """As a service is stopped: asked, and waited for."""
        self.now.signal(signal.SIGTERM)
        self.now.process.wait(20)
        self.close()

    def again(self) -> None:
        self.now = self._start(f"127.0.0.1:{self.port}")

    def pause(self) -> None:
        self.now.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.now.signal(signal.SIGCONT)

    def close(self) -> None:
        """It must not have failed before."""
        self.now.__exit__(None, None, None)


def plain_relay(*words: str) -> RelayPlace:
    return RelayPlace(lambda listen: RelayProcess(*ROOMY, *words, listen=listen))


class ReachedHost(FaultHost):
    """Keeper and daemon, at these relays."""

    def __init__(self, relays: Sequence[RelayPlace], settings: str = "") -> None:
        super().__init__()
        self.relays = list(relays)
        urls = ", ".join(f'"{relay.url}"' for relay in relays)
        (self.home / "config.toml").write_text(f"relays = [{urls}]\n{settings}")

    def up(self) -> ReachedHost:
        super().up()
        self.until_reached()
        return self

    def until_reached(self, timeout_s: float = 40.0) -> None:
        """It is at all of its relays."""
        with self.client() as client:
            until(
                "the host is at its relays",
                lambda: all(each.reached for each in reaching.relays(client)),
                timeout_s,
            )

    def link(self, *words: str) -> str:
        done = self.hold("invite", "--role", "execute", "--all", *words)
        found = re.search(r"http\S+/i#\S+", done.stdout)
        assert found is not None, done
        return found.group()

    def operators(self) -> int:
        """Connections to the daemon besides the one that asks."""
        with self.client() as client:
            return client.host().operators - 1

    def at_rest(self) -> tuple[int, int]:
        """How many descriptors and operators its daemon has."""
        pid = self.daemon_pid()
        assert pid is not None
        return descriptor_count(pid), self.operators()

    def answers(self) -> None:
        with self.client() as client:
            client.ask(m.GetHost(0), m.HostShown)


class Guests:
    """Devices of people elsewhere. What they know is in a directory of their own, which this
    process uses as its own home while they are in use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = tempfile.mkdtemp(prefix="hg", dir="/tmp")
        monkeypatch.setenv("HOLDFAST_HOME", self.home)
        for name in ("HOLDFAST_AS", "HOLDFAST_GRANT", "HOLDFAST_ON"):
            monkeypatch.delenv(name, raising=False)

    def join(self, link: str, name: str) -> Machine:
        """A machine file's entry for this device alone; each has a key of its own."""
        joined = joining.join(link, device=name, name=name, machine="box")
        return joined.replace(identity=f"{self.home}/keys/{name}.key")

    @property
    def keys(self) -> Path:
        return Path(self.home, "keys")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
