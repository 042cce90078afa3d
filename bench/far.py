"""A host at a relay of its own on loopback, and the home of somebody who joined it by an invite:
what every measure of the way through a relay begins with."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator

from bench.stage import Stage
from bench.systems import Holdfast

_READY_S = 20.0


class Far(Holdfast):
    """A host that has dialled a relay, and the home of somebody who joined it."""

    name = "far"

    def __init__(self, stage: Stage) -> None:
        super().__init__(tempfile.mkdtemp(dir=stage.directory), stage.env)
        self.relay = subprocess.Popen(
            [sys.executable, "-m", "holdfast.relay", "--listen", "127.0.0.1:0"],
            env={**stage.env, "HOLDFAST_HOME": self.home},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.relay.stdout is not None
        self.url = self.relay.stdout.readline().split()[-1]
        self.client_env = {**self.env, "HOLDFAST_HOME": f"{self.home}/client"}

    def begin(self) -> None:
        os.makedirs(self.client_env["HOLDFAST_HOME"])
        with open(f"{self.home}/config.toml", "w", encoding="utf-8") as file:
            file.write(f'relays = ["{self.url}"]\n')
        super().begin()
        deadline = time.monotonic() + _READY_S
        while True:
            done = subprocess.run(
                [self.program, "join", self.link(), "--machine", "far"],
                env=self.client_env,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(done.stderr)
            time.sleep(0.1)

    def link(self) -> str:
        """For one more device; as soon as the host is at its relay."""
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                said = self.command([self.program, "invite", "--all", "--role", "admin", "--no-qr"])
                break
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        found = re.search(r"http\S+/i#\S+", said)
        assert found is not None
        return found.group()

    def uplink_bytes(self) -> int:
        """What the relay has received from its host for others, of all kinds."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        names = ("broadcast_bytes_total", "data_bytes_total")
        return sum(
            int(float(line.rpartition(" ")[2]))
            for line in text.splitlines()
            if line.split(" ")[0].endswith(names)
        )

    def close(self) -> None:
        super().close()
        self.relay.kill()
        self.relay.wait()


@contextlib.contextmanager
def far_host(stage: Stage) -> Iterator[Far]:
    far = Far(stage)
    try:
        far.begin()
        yield far
    finally:
        far.close()
