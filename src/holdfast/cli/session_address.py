"""Sessions that are named with their place: MACHINE/NAME and ID@RELAY-URL."""

from __future__ import annotations

import os


def name_there(named: str) -> str:
    """What the session is called where it is. From now on the whole command is about that place."""
    if "@" in named:
        os.environ["HOLDFAST_ON"] = named
        return named.partition("@")[0]
    if "/" in named:
        os.environ["HOLDFAST_ON"], _, named = named.partition("/")
    return named


def name_from_here(name: str) -> str:
    """By which a session of that name is found again from here."""
    where = os.environ.get("HOLDFAST_ON", "")
    if "@" in where:
        return where
    return f"{where}/{name}" if where else name
