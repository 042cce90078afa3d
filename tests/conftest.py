"""The environment that every test gets. How a whole run goes is in whole_run.py."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["whole_run"]
_COROUTINE_S = 100.0  # less than a test may take, so that what it waited for is in the traceback


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in a loop of its own, and ends in time. Where its module says
    `pytest.mark.loop(factory=...)`, in one of that kind: its time may be another."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    marked = pyfuncitem.get_closest_marker("loop")
    wanted = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted})
    with asyncio.Runner(loop_factory=marked.kwargs["factory"] if marked else None) as runner:
        runner.run(test if marked else asyncio.wait_for(test, _COROUTINE_S))
    return True


# Whatever started the suite (`nohup`, a shell in the background) may have these ignored, and every
# program inherits that: none in a test could be interrupted or hung up.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(_number, signal.SIG_DFL)

# `hold` is started thousands of times here; compiled anew, each start takes four times as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A fish that finds no such directory reads every manual page of the machine, in the background, for
# minutes: each that a test starts would.
_DATA = Path(tempfile.gettempdir()) / f"hf-data-{os.getuid()}"
(_DATA / "fish" / "generated_completions").mkdir(parents=True, exist_ok=True)
os.environ["XDG_DATA_HOME"] = str(_DATA)

# An interactive shell reads its user's startup files. What those do is nobody's business here, and
# may take a minute: a version manager that waits for its lock, which a killed shell left behind.
_CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
_HOME = Path(tempfile.gettempdir()) / f"hf-home-{os.getuid()}"
_HOME.mkdir(exist_ok=True)
os.environ.update(HOME=str(_HOME), XDG_CACHE_HOME=_CACHE)  # the browser is in the cache

# How long an example takes says how busy the machine is, not whether the statement is true of it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
