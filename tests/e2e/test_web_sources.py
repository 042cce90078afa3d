"""The web app's sources: their own tests, their types, and the rules of who may import whom."""

from __future__ import annotations

import subprocess

import pytest

from e2e.probing import WEB, node

_PATIENCE_S = 600.0  # all of them together, on two cores that others use as well


@pytest.mark.parametrize(
    "words",
    [
        ("vitest/vitest.mjs", "run", "--reporter=dot"),
        ("typescript/bin/tsc", "--noEmit"),
        ("eslint/bin/eslint.js", "."),
        ("prettier/bin/prettier.cjs", "--check", "."),
    ],
    ids=["tests", "types", "rules", "format"],
)
def test_the_web_app_holds_up_to_its_own_tools(words: tuple[str, ...]) -> None:
    tool, *arguments = words
    done = subprocess.run(
        [node(), str(WEB / "node_modules" / tool), *arguments],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
