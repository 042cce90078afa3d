"""A host that has dialled relays, devices that joined it, and relays that can be killed, paused and
started again in their place."""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from faults.hosting import FaultHost, descriptor_count
from holdfast.sdk.reach import host_relays
from holdfast.sdk.reach import join as joining
from holdfast.sdk.reach.machines import Machine
from process.relaying import RelayProcess
from process.waiting import until

ROOMY = ("--limit", "opens=100000", "--limit", "drain_s=1")  # all devices have one address here


class RelayPlace:
    """A relay by its address: whichever process is there now."""

    def __init__(self, start: Callable[[str], RelayProcess]) -> None:
        self._start = start
        self.now = start("127.0.0.1:0")
        self.url, self.port = self.now.url, self.now.port

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
                lambda: all(each.reached for each in host_relays.relays(client)),
                timeout_s,
            )

    def link(self, *words: str) -> str:
        done = self.hold("invite", "--role", "execute", "--all", *words)
        found = re.search(r"http\S+/i#\S+", done.stdout)
        assert found is not None, done
        return found.group()

    def json(self, *words: str) -> Any:
        done = self.hold(*words, "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def descriptors(self) -> int:
        """Of its daemon: each operator that came through a relay costs two."""
        return descriptor_count(until("there is a daemon", self.daemon_pid))


class Guests:
    """Devices of people elsewhere. What they know is in a directory of their own, which this
    process uses as its own home while they are in use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = tempfile.mkdtemp(prefix="hg", dir="/tmp")
        monkeypatch.setenv("HOLDFAST_HOME", self.home)
        for name in ("HOLDFAST_AS", "HOLDFAST_GRANT", "HOLDFAST_ON"):
            monkeypatch.delenv(name, raising=False)

    def join(self, link: str, name: str) -> Machine:
        """The machine, as this device knows it. Each has a key of its own."""
        return joining.join(link, device=name, name=name, machine="box")

    def close(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
