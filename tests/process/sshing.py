"""A real gateway as a process, and a real OpenSSH client before it."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from holdfast.model.size import Size
from process.commanding import PATIENCE_S, Hold
from process.terminals import SIZE, Terminal
from process.waiting import children_of

SSH = shutil.which("ssh") or ""
needs_ssh = pytest.mark.skipif(not SSH, reason="there is no OpenSSH client (openssh-client)")


def make_key(hold: Hold, name: str) -> Path:
    """A new ssh key; the public half is beside it."""
    import asyncssh

    path = Path(hold.made, f"{name}.sshkey")
    key = asyncssh.generate_private_key("ssh-ed25519", comment=f"{name}@test")
    path.touch(0o600)
    path.write_bytes(key.export_private_key())
    path.with_name(f"{path.name}.pub").write_bytes(key.export_public_key())
    return path


class GatewayProcess:
    """`hold sshd` on a port of its own. `limits` are other values for those of model.limits."""

    def __init__(self, hold: Hold, port: int = 0, **limits: float) -> None:
        self.hold = hold
        setting = "".join(f"limits.{name} = {value!r}; " for name, value in limits.items())
        run = "import sys; from holdfast.ssh.__main__ import main; sys.exit(main())"
        code = f"from holdfast.model import limits; {setting}{run}"
        self.log = Path(hold.made, f"gateway-{time.monotonic_ns()}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "--listen", f"127.0.0.1:{port}"],
                env=hold.env,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().decode()
        assert "the ssh gateway is at" in self.said, self.log.read_text()
        self.port = int(self.said.split(",")[0].rpartition(":")[2])
        self.fingerprint = self.said.split()[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        said = self.log.read_text()
        assert "Traceback" not in said, said

    # -- the client ---------------------------------------------------------------------------

    def words(self, session: str, key: Path, *more: str) -> tuple[str, ...]:
        known = Path(self.hold.made, "known_hosts")
        options = (
            *("IdentitiesOnly=yes", "StrictHostKeyChecking=accept-new", "BatchMode=yes"),
            *(f"UserKnownHostsFile={known}", "IdentityAgent=none", "ConnectTimeout=20"),
        )
        settings = [word for option in options for word in ("-o", option)]
        at = ("-F", "none", "-p", str(self.port), "-i", str(key), *settings, "-l", session)
        return (*at, *more)

    def ssh(
        self, session: str, key: Path, *command: str, options: tuple[str, ...] = (), **more: object
    ) -> subprocess.CompletedProcess[str]:
        """Without a terminal."""
        return subprocess.run(
            [SSH, *self.words(session, key, *options), "127.0.0.1", *command],
            env=self.hold.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    def terminal(self, session: str, key: Path, *command: str, size: Size = SIZE) -> Terminal:
        words = (*self.words(session, key, "-tt"), "127.0.0.1", *command)
        return Terminal(self.hold, *words, size=size, program=SSH)

    # -- what became of it --------------------------------------------------------------------

    def clients(self) -> list[int]:
        return children_of(self.process.pid)

    def clients_are(self, wanted: int) -> None:
        """Looked at until it is so: the kernel has no event of it for us."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.clients()) != wanted:
            assert time.monotonic() < deadline, f"there are {len(self.clients())} clients"
            os.sched_yield()

    def resident_bytes(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def ends(pid: int) -> bool:
    """Whether a process ends by itself, soon."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE_S)[0])
    finally:
        os.close(handle)
