"""`scripts/setup` on a machine without a network: what is there is enough if it was asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[2] / "scripts" / "setup"

# Stands for the environment's Python: pip reaches nobody, and some modules are not there.
PYTHON = """#!/bin/sh
case "$*" in
    "-m pip install "*) echo "ERROR: no matching distribution for hatchling" >&2; exit 1 ;;
    "-c import "*) for absent in $ABSENT; do case "$*" in *"$absent"*) exit 1 ;; esac; done ;;
esac
"""


def setup(directory: Path, purpose: str, absent: str) -> subprocess.CompletedProcess[str]:
    """Run it in a checkout of its own, as a user who is not root; nothing is installed."""
    (directory / "scripts").mkdir()
    shutil.copy(SETUP, directory / "scripts" / "setup")
    programs = {".venv/bin/python": PYTHON, ".venv/bin/hold": "#!/bin/sh\n"}
    for name, text in {**programs, "stubs/id": "#!/bin/sh\necho 1000\n"}.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    path = f"{directory / 'stubs'}:{os.environ['PATH']}"
    return subprocess.run(
        [directory / "scripts" / "setup", purpose],
        env={**os.environ, "PATH": path, "ABSENT": absent},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("purpose", "absent"),
    [("runtime", "hypothesis mypy pytest playwright nats"), ("test", ""), ("bench", "")],
)
def test_without_a_network_what_is_installed_is_used(
    tmp_path: Path, purpose: str, absent: str
) -> None:
    done = setup(tmp_path, purpose, absent)
    assert done.returncode == 0, done.stderr
    assert "could not be brought up to date" in done.stdout


@pytest.mark.parametrize(
    ("purpose", "absent"),
    [("runtime", "mcp"), ("runtime", "asyncssh"), ("runtime", "msgpack"), ("test", "hypothesis")],
)
def test_without_a_network_what_is_missing_is_a_failure(
    tmp_path: Path, purpose: str, absent: str
) -> None:
    done = setup(tmp_path, purpose, absent)
    assert done.returncode == 1
    assert "pip cannot install" in done.stderr
