"""Two hosts of one machine, each with a home of its own, and a session that goes from one to the
other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.model.errors import HoldfastError
from holdfast.sdk.connection import Connection, new_operator
from holdfast.wire.messages.session import Input
from process.commanding import PATIENCE_S, Hold


@contextmanager
def two_hosts() -> Iterator[tuple[Hold, Hold]]:
    first = Hold()
    second = Hold()
    try:
        for each in (first, second):
            each.ok("up", "-d")
        yield first, second
    finally:
        first.close()
        second.close()


def moved(source: Hold, name: str, target: Hold) -> dict[str, Any]:
    found: dict[str, Any] = source.json("move", name, target.home)
    return found


def lives(host: Hold, session: str) -> bool:
    """Whether it runs there: what stands still in the middle of a move does not."""
    done = host("show", session, "--json")
    if done.returncode:
        return False
    shown = json.loads(done.stdout)
    moving = shown["migration"] and shown["migration"]["phase"]
    return shown["ending"] is None and not moving


class Typist(threading.Thread):
    """One operator that types numbered lines, each until it is acknowledged: at whichever of the
    hosts has the session, and always under the same numbers."""

    def __init__(self, session: str, hosts: tuple[Hold, ...]) -> None:
        super().__init__(daemon=True)
        self._session, self._hosts = session, hosts
        self._operator = new_operator()
        self._connection: Connection | None = None
        self._at = 0
        self.typed = 0  # lines that were acknowledged
        self.over = threading.Event()
        self.failure = ""

    def run(self) -> None:
        try:
            while not self.over.is_set():
                self._type(self.typed + 1)
                self.typed += 1
                self.over.wait(0.01)
        except Exception as error:
            self.failure = repr(error)

    def _type(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                connection = self._connection or self._connected()
                connection.last_id += 1
                data = b"%d\r" % number
                typed = Input(connection.last_id, self._session, number, data)
                connection.ask(typed, ANSWER_S)
                return
            except (HoldfastError, OSError) as error:
                assert time.monotonic() < deadline, f"line {number} is not taken: {error!r}"
                self._leave()
                self._at = (self._at + 1) % len(self._hosts)
                time.sleep(0.02)

    def _connected(self) -> Connection:
        path = f"{self._hosts[self._at].home}/run/hold.sock"
        self._connection = Connection(path, self._operator, "test")
        return self._connection

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


ANSWER_S = 8.0  # an input may wait for a move; then it is asked for again, under its number
