"""The lease of a session runs out while CRIU has it: it is frozen once CRIU has let go of it, since
CRIU would wait for what is frozen."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from faults.crash_points import customized_host
from faults.hosting import HOLD, FaultHost
from privileged.checkpointing import skip_unless_possible
from process.waiting import until

LEASE_S = 3.0

# When CRIU has written all, the daemon stands still, so that its lease runs out.
_STANDS_STILL = """
import os, time
from holdfast.adapters.session_memory import layout
def copy(memfd):
    if os.path.exists({armed!r}):
        os.rename({armed!r}, {reached!r})
        while os.path.exists({reached!r}):
            time.sleep(0.01)
    return real_copy(memfd)
real_copy, layout.copy = layout.copy, copy
"""


@pytest.mark.requirement("F2")
def test_a_lease_that_runs_out_during_a_dump_does_not_hang_it(tmp_path: Path) -> None:
    skip_unless_possible()
    armed, reached = tmp_path / "armed", tmp_path / "reached"
    host = customized_host(_STANDS_STILL.format(armed=str(armed), reached=str(reached)))
    Path(host.home, "config.toml").write_text(f"lease_s = {LEASE_S}\n")
    try:
        host.up()
        words = ("run", "-d", "--name", "leased", "--level", "movable", "--rehomeable")
        assert host.hold(*words, "--", "bash", "--norc").returncode == 0
        assert host.hold("wait", "leased", "--for", "prompt", "--timeout", "20").returncode == 0
        armed.touch()
        making = subprocess.Popen(
            [HOLD, "checkpoint", "leased"],
            env=host.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until("CRIU has the session", reached.exists)
        over = time.monotonic() + LEASE_S + 1
        until("the lease is over", lambda: time.monotonic() > over)
        reached.unlink()
        making.communicate(timeout=30)  # stored, or refused: CRIU has let go of it
        until("it has a lease again", lambda: _lease(host) == "held")
        done = host.hold("exec", "leased", "--", "echo alive")
        assert done.stdout.strip() == "alive", done.stderr + host.log()[-3000:]
    finally:
        host.down()


def _lease(host: FaultHost) -> str:
    shown = host.hold("show", "leased", "--json").stdout
    return str(json.loads(shown)["lease"]["state"])
