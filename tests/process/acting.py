"""Actors in tests: made by the real command, and as programs that stay connected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from holdfast.sdk.client import Host
from process.commanding import Hold


def add_actor(hold: Hold, name: str, *grants: str) -> str:
    """An agent, and what it is granted if anything; gives its id."""
    actor: str = hold.json("actor", "add", name)["id"]
    if grants:
        hold.ok("grant", name, *grants)
    return actor


@contextmanager
def connected(hold: Hold, actor: str = "") -> Iterator[Host]:
    """A program that acts as this actor; "" as the unix user's own."""
    env = {"HOLDFAST_HOME": hold.home, "HOLDFAST_AS": actor}
    with mock.patch.dict(os.environ, env), Host(client="test") as host:
        yield host


def key_file(hold: Hold, name: str) -> Path:
    return Path(hold.home, "actor-keys", f"{name}.key")


def files_with(hold: Hold, secret: str) -> list[str]:
    """Every regular file of a home that has these bytes in it."""
    found = []
    for directory, _, names in os.walk(hold.home):
        for name in names:
            path = Path(directory, name)
            if path.is_file() and secret.encode() in path.read_bytes():
                found.append(str(path))
    return found
