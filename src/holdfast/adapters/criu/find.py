"""Finding a CRIU that works on this machine: the distribution's own if its check passes here, else
the one `install.py` unpacked into a prefix, run with its own loader. Always with our preload shim
(see native/criu_shim.c) and with a timeout.

Deliberately does not checkpoint or restore anything: dump.py and restore.py do.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from holdfast.adapters import compiled
from holdfast.model.record import Record

TIMEOUT_S = 20.0

_LOADERS = ("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1")
# CRIU keeps what it learnt about the kernel in /run. Here that is a tmpfs in a mount namespace of
# its own, so that nothing is left on the host; what it learnt is copied to the descriptor $FACTS.
_APART = (
    *("unshare", "--mount", "sh", "-c"),
    'mount -t tmpfs criu /run && "$@"; done=$?; '
    'cat /run/criu.kdat >"/proc/self/fd/$FACTS"; exit $done',
    "criu",
)


class Criu(Record):
    """A CRIU that passed its own check here."""

    program: str
    command: tuple[str, ...]
    # what it learnt about this kernel, as it keeps that: to learn it again takes 30 ms at each run
    facts: bytes = b""

    def version(self) -> str:
        return _version(self)

    def run(self, word: str) -> tuple[subprocess.CompletedProcess[str], bytes]:
        """What it says, and what it learnt about the kernel."""
        memory = os.memfd_create("criu-facts", os.MFD_CLOEXEC)
        with open(memory, "rb") as facts:
            done = subprocess.run(
                [*_APART, *self.command, word],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                cwd="/",
                env={**os.environ, "FACTS": str(memory)},
                pass_fds=(memory,),
                start_new_session=True,
            )
            return done, facts.read()


@functools.cache
def _version(criu: Criu) -> str:
    words = criu.run("--version")[0].stdout.split()
    return words[words.index("Version:") + 1] if "Version:" in words else "of unknown version"


def prefix() -> Path:
    """Where `install.py` unpacks."""
    return Path("/var/cache/holdfast/criu")


@functools.cache
def find() -> Criu | str:
    """A CRIU that works here, or why there is none. Asked once per process."""
    if os.geteuid() != 0:
        return "CRIU needs root"
    shim = compiled.build(compiled.SHIM)
    if isinstance(shim, str):
        return f"the shim for CRIU cannot be built: {shim}"
    reasons = []
    for candidate in (_distributions_own(str(shim)), _from_prefix(str(shim))):
        if candidate is None:
            continue
        why, facts = _check(candidate)
        if not why:
            return candidate.replace(facts=facts)
        reasons.append(f"{candidate.program} does not work here: {why}")
    return "; ".join(reasons) or "there is no CRIU"


def _distributions_own(shim: str) -> Criu | None:
    program = shutil.which("criu", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    return Criu(program, ("env", f"LD_PRELOAD={shim}", program)) if program else None


def _from_prefix(shim: str) -> Criu | None:
    program = prefix() / "usr/sbin/criu"
    for libraries in sorted((prefix() / "usr/lib").glob("*-linux-gnu")):
        for loader in (libraries / name for name in _LOADERS):
            if loader.exists() and program.exists():
                command = (str(loader), "--preload", shim, "--library-path", str(libraries))
                return Criu(str(program), (*command, str(program)))
    return None


def _check(candidate: Criu) -> tuple[str, bytes]:
    """Why it cannot be used, or "" and what it learnt about the kernel."""
    try:
        done, facts = candidate.run("check")
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), b""
    if done.returncode == 0:
        return "", facts
    # An error in CRIU's words, without its clock and source position.
    errors = (line.partition("Error (")[2].partition("): ")[2] for line in done.stdout.splitlines())
    return next(filter(None, errors), f"its check failed with {done.returncode}"), b""
