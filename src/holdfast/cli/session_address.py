"""Sessions addressed together with their machine: MACHINE/NAME and ID@RELAY-URL."""

from __future__ import annotations

import os


def select_machine(named: str) -> str:
    """The name of the session on its machine. The whole command is for that machine from now on."""
    if "@" in named:
        os.environ["HOLDFAST_ON"] = named
        return named.partition("@")[0]
    if "/" in named:
        os.environ["HOLDFAST_ON"], _, named = named.partition("/")
    return named


def address_from_here(name: str) -> str:
    """The address by which that session is found from here."""
    where = os.environ.get("HOLDFAST_ON", "")
    if "@" in where:
        return where
    return f"{where}/{name}" if where else name
