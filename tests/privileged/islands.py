"""A host in a network of its own, with one wire to the rest: when that is cut, nothing gets through
and nobody is told."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from holdfast.adapters.nats.server import NatsCluster, NatsNode
from privileged.leasing import LeasedHost, soon
from process.commanding import HOLD, PATIENCE_S
from process.relaying import RelayProcess


class Wire:
    """Between this network and a new one, which lasts as long as anybody is in it."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        soon(self._is_there, "no network was made")
        pid = self._holder.pid
        self.outside = f"hf{pid}a"
        # Of 198.18.0.0/15, which is for such trials.
        network = f"198.18.{pid % 256}"
        self.here, self._there = f"{network}.1", f"{network}.2"
        inside = f"hf{pid}b"
        _ip("link", "add", self.outside, "type", "veth", "peer", "name", inside, "netns", str(pid))
        _ip("address", "add", f"{self.here}/30", "dev", self.outside)
        _ip("link", "set", self.outside, "up")
        for words in (
            f"address add {self._there}/30 dev {inside}",
            f"link set {inside} up",
            "link set lo up",
        ):
            subprocess.run([*self.entering, "ip", *words.split()], check=True)

    @property
    def entering(self) -> list[str]:
        """Before a command that is to run in there."""
        return ["nsenter", "--net", "--target", str(self._holder.pid)]

    def cut(self) -> None:
        _ip("link", "set", self.outside, "down")

    def heal(self) -> None:
        _ip("link", "set", self.outside, "up")

    def close(self) -> None:
        _ip("link", "delete", self.outside)
        self._holder.send_signal(signal.SIGKILL)
        self._holder.wait(PATIENCE_S)

    def _is_there(self) -> bool:
        own = os.readlink("/proc/self/ns/net")
        return os.readlink(f"/proc/{self._holder.pid}/ns/net") != own


class Island(LeasedHost):
    """A host behind a wire; its relay and its coordination point are on this side."""

    def __init__(self, wire: Wire, relay: RelayProcess, nats: NatsNode, lease_s: float) -> None:
        coordination = f"nats://{wire.here}:{nats.port}"
        super().__init__(coordination, lease_s)
        self.coordination, self._wire = coordination, wire
        config = Path(self.home, "config.toml")
        config.write_text(f'{config.read_text()}relays = ["{relay.url}"]\n')

    def up(self) -> None:
        done = subprocess.run(
            [*self._wire.entering, HOLD, "up", "-d", "--no-relay"],
            env=self.env,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done
        soon(self.is_reached, "it does not get to its relay")

    def is_reached(self) -> bool:
        return all(each["reached"] for each in self.json("host"))


def nats_at(directory: Path, address: str) -> NatsCluster:
    """One node that listens at this address."""
    cluster = NatsCluster(directory, 1)
    config = cluster.nodes[0].directory / "nats.conf"
    config.write_text(config.read_text().replace("listen: 127.0.0.1", f"listen: {address}"))
    return cluster


def needs_networks() -> str:
    """Why there can be none here; "" when there can."""
    if os.geteuid() != 0:
        return "needs root"
    tried = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "hf0", "type", "veth", "peer", "name", "hf1"],
        capture_output=True,
    )
    return "" if tried.returncode == 0 else "no networks can be made here"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
