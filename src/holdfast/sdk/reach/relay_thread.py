"""The thread in which this program speaks to relays. One for all of them, made when it is first
needed; whoever waits for something there waits with a limit."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from holdfast.model.errors import TimedOut

T = TypeVar("T")

_STOP_S = 1.0
_making = threading.Lock()


def wait_for(work: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """The result of something that takes place in the thread where relays are spoken to."""
    begun = asyncio.run_coroutine_threadsafe(work, reach_loop())
    try:
        return begun.result(timeout_s)
    except TimeoutError:
        begun.cancel()
        raise TimedOut("the other end was not reached in time") from None


def reach_loop() -> asyncio.AbstractEventLoop:
    """That thread's. Several may ask for it first."""
    with _making:
        return _made()


@cache
def _made() -> asyncio.AbstractEventLoop:
    """It is stopped before the interpreter goes away under it."""
    import uvloop

    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="reach", daemon=True)

    def stop() -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_STOP_S)

    atexit.register(stop)
    thread.start()
    return loop
