"""Two machines and a relay between them: a host that has dialled out, and a client elsewhere that
knows nothing of it but an invite's link."""

from __future__ import annotations

import re
import time
from pathlib import Path

from holdfast.sdk.client import Host
from process.commanding import PATIENCE_S, Hold
from process.relaying import RelayProcess


class Faraway:
    """A relay, a host called `box`, and somebody who joined it."""

    def __init__(
        self,
        *,
        role: str = "admin",
        more: tuple[str, ...] = (),
        relay_words: tuple[str, ...] = (),
        host: Hold | None = None,
    ) -> None:
        self.relay = RelayProcess(*relay_words)
        self.host, self.client = host or Hold(), Hold()
        (Path(self.host.home) / "config.toml").write_text(f'relays = ["{self.relay.url}"]\n')
        self.host.ok("up", "-d", "--no-relay")
        self.until_reached()
        self.join(self.client, role=role, more=more)

    def join(self, client: Hold, *, role: str = "admin", more: tuple[str, ...] = ()) -> None:
        link = self.link(role=role, more=more)
        client.ok("join", "-", "--machine", "box", stdin=link.encode())

    def link(self, *, role: str = "admin", more: tuple[str, ...] = ("--all",)) -> str:
        said = self.host.ok("invite", "--role", role, *(more or ("--all",)))
        found = re.search(r"http\S+/i#\S+", said)
        assert found is not None, said
        return found.group()

    def another_client(self, *, role: str, more: tuple[str, ...] = ()) -> Hold:
        client = Hold()
        self.join(client, role=role, more=more)
        return client

    def until_reached(self, times: int = 1) -> None:
        """The host has been at its relay so often."""
        wanted = f"relay {self.relay.url}: connected"
        deadline = time.monotonic() + PATIENCE_S
        log = Path(self.host.home) / "host.log"
        while log.read_text().count(wanted) < times:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)

    def relay_again(self) -> None:
        """A new relay in the place of one that is gone."""
        self.relay.process.wait(PATIENCE_S)
        self.relay = RelayProcess(listen=f"127.0.0.1:{self.relay.port}")

    def close(self) -> None:
        self.client.close()
        self.host.close()
        self.relay.__exit__(None, None, None)


def pid_of_daemon(host: Hold) -> int:
    with Host(f"{host.home}/run/hold.sock") as client:
        return client.connection.welcome.daemon_pid
