"""Two hosts of one machine, each with a home of its own, and a session that goes from one to the
other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from privileged.checkpointing import entries, said
from process.commanding import Hold


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
    """Whether it can be attached to there."""
    done = host("show", session, "--json")
    if done.returncode:
        return False
    import json

    return json.loads(done.stdout)["state"] not in ("ended", "lost", "asleep")


__all__ = ["entries", "lives", "moved", "said", "two_hosts"]
