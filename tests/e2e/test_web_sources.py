"""The web app's own tests. Its types, rules and format are looked at by `make check`."""

from __future__ import annotations

import subprocess

from e2e.probing import WEB, node

_PATIENCE_S = 600.0  # all of them together, on two cores that others use as well


def test_the_web_apps_own_tests_pass() -> None:
    done = subprocess.run(
        [node(), str(WEB / "node_modules" / "vitest" / "vitest.mjs"), "run", "--reporter=dot"],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
