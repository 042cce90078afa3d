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
