"""What the next host of a session must be: `--require label=gpu`, `--require memory=8G`."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.model.errors import InvalidArgument
from holdfast.model.movability import MoveTarget

FACTS = ("label", "isa", "kernel", "criu", "memory")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class HostRequirement(NamedTuple):
    """One of them. Kernel, CRIU and free memory are the least that will do."""

    fact: str
    value: str

    @classmethod
    def parse(cls, text: str) -> HostRequirement:
        fact, _, value = text.partition("=")
        if fact not in FACTS or not value:
            raise InvalidArgument(
                f"a requirement is one of {', '.join(FACTS)} with a value, not {text[:80]!r}",
                hint="--require label=gpu --require memory=8G",
            )
        found = cls(fact, value)
        if fact == "memory" and not _SIZE.fullmatch(value):
            raise InvalidArgument(f"{value[:80]!r} is no amount of memory", hint="memory=512M")
        if fact in ("kernel", "criu") and not value[0].isdigit():
            raise InvalidArgument(f"{value[:80]!r} is no version", hint=f"{fact}=6.8")
        return found

    def unmet(self, host: MoveTarget) -> str:
        """What that host is instead; "": it will do."""
        match self.fact:
            case "label":
                return "" if self.value in host.labels else f"it has no label {self.value}"
            case "isa":
                return "" if host.isa == self.value else f"its instruction set is {host.isa}"
            case "kernel":
                return self._at_least(host.kernel, "kernel")
            case "criu":
                return self._at_least(host.criu, "CRIU") if host.criu else "it has no CRIU"
            case _:
                enough = host.memory_free >= self._bytes()
                return "" if enough else f"it has {host.memory_free >> 20} MiB of free memory"

    def _at_least(self, version: str, what: str) -> str:
        enough = _numbers(version) >= _numbers(self.value)
        return "" if enough else f"its {what} is {version}"

    def _bytes(self) -> int:
        found = _SIZE.fullmatch(self.value)
        assert found is not None
        return int(float(found[1]) * _UNITS[found[2].upper()])


def _numbers(version: str) -> tuple[int, ...]:
    """Of `6.8.0-31-generic`: 6, 8 and 0."""
    return tuple(int(each) for each in version.split("-")[0].split(".") if each.isdecimal())
