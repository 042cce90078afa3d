"""The same question to every machine this user knows, at once. A machine that cannot be reached is
part of the answer, and delays nobody."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from holdfast.model.errors import HoldfastError, HostDown
from holdfast.sdk.client import Host
from holdfast.sdk.connection import socket_path
from holdfast.sdk.reach import machines
from holdfast.sdk.reach.machines import Machine

A = TypeVar("A")

HERE = ""  # the name of this machine
_AT_ONCE = 16


def ask_all(question: Callable[[Host], A], client: str) -> list[tuple[str, A | HoldfastError]]:
    """Of this machine, if a host runs here, and of all others, in the order they were joined."""
    places: list[tuple[str, str | Machine]] = [(HERE, socket_path())]
    places += [(machine.name, machine) for machine in machines.machines()]
    with ThreadPoolExecutor(min(_AT_ONCE, len(places))) as pool:
        answers = list(pool.map(lambda place: _asked(place[1], question, client), places))
    found = list(zip((name for name, _ in places), answers, strict=True))
    here, *others = found
    # No host here is no news to somebody who works on other machines.
    return others if others and isinstance(here[1], HostDown) else found


def _asked(place: str | Machine, question: Callable[[Host], A], client: str) -> A | HoldfastError:
    try:
        with Host(place, client) as host:
            return question(host)
    except HoldfastError as error:
        return error
