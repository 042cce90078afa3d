"""What is compiled on this machine and where it is stored: a pure function of source, flags and
environment, so that builder and loader agree without communicating."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Program(Record):
    """One program or library from C sources of the package `native`, and how it is compiled."""

    name: str
    source: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()  # of the same package
    more_sources: tuple[str, ...] = ()  # compiled into it too

    @property
    def texts(self) -> tuple[str, ...]:
        """The files it is made of."""
        return (self.source, *self.more_sources, *self.headers)

    def file_name(self, text: bytes, machine: str) -> str:
        """Name of the compiled file: different for each source text, flags and machine."""
        import hashlib  # takes milliseconds: only who looks for a file waits for it

        parts = [text, *(flag.encode() for flag in self.flags)]
        digest = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
        stem, dot, ending = self.name.partition(".")
        return f"{stem}-{machine}-{digest}{dot}{ending}"


KEY_LOOP = Program("key-loop.so", "key_loop.c", ("-O2", "-fPIC", "-shared"))


def kept_in(prefix: str, environment: Mapping[str, str], home: str) -> tuple[str, str]:
    """The two directories: in the installation, and in the user's cache if that cannot be
    written."""
    cache = environment.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return f"{prefix}/lib/holdfast", f"{cache}/holdfast"
