"""What the tests of checkpoints share."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.requiring import missing
from holdfast.adapters.criu import find
from holdfast.adapters.halt import cgroup
from process.commanding import Hold
from process.waiting import until


def skip_unless_possible() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if why := cgroup.unavailable():
        pytest.skip(f"needs cgroup v2: {why}")
    found = find.find()
    if isinstance(found, str):
        pytest.skip(f"needs CRIU: {found}")


@contextmanager
def movable_host() -> Iterator[Hold]:
    """A host, on a machine where sessions can be checkpointed."""
    skip_unless_possible()
    with Hold() as hold:
        hold.ok("up", "-d")
        yield hold


def program(name: str) -> str:
    """Its path; one that `scripts/setup test` installs."""
    found = shutil.which(name)
    if found is None:
        missing(f"{name} is not installed (scripts/setup test)")
    return found


def started(hold: Hold, name: str, *command: str, prompt: bool = True) -> str:
    """A movable session; gives its id."""
    words = command or ("bash", "--norc")
    done = hold.ok("run", "-d", "--name", name, "--level", "movable", "--", *words)
    if prompt:
        hold.ok("wait", name, "--for", "prompt", "--timeout", "20")
    return done.strip()


def put_to_sleep(hold: Hold, name: str) -> dict[str, Any]:
    """The checkpoint with which it was ended."""
    made: dict[str, Any] = hold.json("checkpoint", name, "--end")
    return made


def restored(hold: Hold, target: str) -> dict[str, Any]:
    """What the restore says."""
    found: dict[str, Any] = hold.json("restore", target)
    return found


def there_and_back(hold: Hold, name: str) -> dict[str, Any]:
    put_to_sleep(hold, name)
    return restored(hold, name)


def said(hold: Hold, name: str, line: str) -> str:
    """What a command line prints in the session's own shell."""
    return hold.ok("exec", name, "--", line).strip()


def entries(hold: Hold, name: str, kind: str) -> list[dict[str, Any]]:
    """Entries of its journal, of one kind."""
    lines = hold.ok("log", name, "--json").splitlines()
    return [each for each in map(json.loads, lines) if each["kind"] == kind]


def until_screen(hold: Hold, name: str, pattern: str) -> str:
    """Its screen, once it shows this."""
    shown = ""

    def shows() -> bool:
        nonlocal shown
        shown = hold.ok("screen", name)
        return re.search(pattern, shown) is not None

    try:
        until(f"{pattern!r} is not on the screen of {name}", shows)
    except AssertionError as error:
        raise AssertionError(f"{error}:\n{shown}") from None
    return shown
