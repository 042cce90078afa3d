"""The web app's half of the protocol without a browser: the very code a page runs, in Node, asked
line by line (web/test/probe.ts)."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.requiring import missing
from process.commanding import PATIENCE_S

WEB = Path(__file__).resolve().parents[2] / "web"
_BUILD_S = 120.0


class Refused(Exception):
    """What the page's promise was rejected with."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: str = error["code"]


def node() -> str:
    """Node.js with the packages of the web app; the test is skipped where there are none."""
    found = shutil.which("node")
    if found is None:
        missing("there is no Node.js on this machine")
    if not (WEB / "node_modules" / "vite").is_dir():
        missing("the web app's packages are not installed (`npm ci` in web/)")
    return found


def built(to: Path) -> Path:
    """The program, made from the sources."""
    vite = WEB / "node_modules" / "vite" / "bin" / "vite.js"
    how = ("--config", "vite.probe.config.ts", "--outDir", to, "--emptyOutDir")
    subprocess.run(
        [node(), vite, "build", *how],
        cwd=WEB,
        check=True,
        timeout=_BUILD_S,
        stdout=subprocess.DEVNULL,
    )
    return to / "probe.mjs"


class Probe:
    """One page. `probe("open", machine, name)` does what the program calls so."""

    def __init__(self, program: Path, keys: str = "webcrypto") -> None:
        self._process = subprocess.Popen(
            [node(), program, keys],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NODE_OPTIONS": ""},
        )

    def __call__(self, command: str, *arguments: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, *arguments]).encode() + b"\n")
        self._process.stdin.flush()
        said = json.loads(self._line())
        if "error" in said:
            raise Refused(said["error"])
        return said["result"]

    def refused(self, command: str, *arguments: object) -> str:
        """The code it was refused with."""
        with pytest.raises(Refused) as caught:
            self(command, *arguments)
        return caught.value.code

    def ask(self, what: str, *arguments: object) -> Any:
        """Of the session that is open."""
        return self("ask", what, *arguments)

    def join(self, link: str, name: str = "phone") -> str:
        """Gives the machine, when it is reached."""
        outcome = self("join", link, name)
        assert outcome["ok"], outcome
        self("machineOnline")
        machine: str = outcome["joined"]["machine"]
        return machine

    def _line(self) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None
        deadline = time.monotonic() + 2 * PATIENCE_S
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the page did not answer; so far: {line[:200]!r}"
            piece = os.read(pipe.fileno(), 1 << 16)
            assert piece, "the page is gone"
            line += piece
        return line

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
