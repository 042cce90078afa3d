"""A host with a relay of its own, as `hold up` starts it, and its processes."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path
from typing import TypeVar

from process.commanding import Hold
from process.waiting import children_of, until, wait_ended

T = TypeVar("T")


class Relayed(Hold):
    """A home whose host has what every host has."""

    def __init__(self) -> None:
        super().__init__()
        del self.env["HOLDFAST_RELAY"]

    def up(self, *words: str) -> None:
        self.ok("up", "-d", *words)
        self.own()

    def supervisor(self) -> int:
        # The rest is of the one before, while the next one writes a shorter number over its.
        return int(Path(self.home, "run/supervisor.lock").read_text().splitlines()[0])

    def child(self, module: str) -> int:
        """The supervisor's child that runs this module; 0: there is none."""
        mine = set(children_of(self.supervisor()))
        return next((pid for pid in _with_words(module) if pid in mine), 0)

    def relay_pid(self) -> int:
        return self.child("holdfast.relay")

    def own(self) -> str:
        """Its own relay's address, once the host is there."""

        def look() -> str:
            (own,) = (each for each in self.json("host") if each["source"] == "own")
            return str(own["address"]) if own["reached"] else ""

        return until("the host is at its own relay", look)

    def link(self) -> str:
        found = re.search(r"http\S+/i#\S+", self.ok("invite", "--all", "--role", "execute"))
        assert found is not None
        return found.group()

    def kill(self, pid: int) -> None:
        """SIGKILL, and wait until it has come to that."""
        handle = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            wait_ended(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        super().close()
        left = _with_words(f"{self.home}/relay.sqlite")
        assert not left, "a relay was left"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _with_words(word: str) -> list[int]:
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(int(pid))
    return found
