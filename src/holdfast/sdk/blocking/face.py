"""How a blocking class is made of an async one: a wrapper object, and methods that wait.

    class Session(Face[aio.Session]):
        info = waits(aio.Session.info)

The signature, its types and the docstring are those of the async method: `Method` carries them to
type checkers and editors by its parameters, `functools.wraps` to `help()`. So each call is written
once, and a call that changes there cannot be out of date here.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound="Face[Any]")

_STOP_S = 5.0  # for what is still going on to be cancelled


class LoopThread:
    """One event loop, in which the async calls run while the caller waits. One for each connection;
    it ends with it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="holdfast", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left, timeout=_STOP_S))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. A caller that is interrupted (^C) cancels it."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except BaseException:
            running.cancel()
            raise

    def each(self, stream: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """Its items, as they come; it is closed when the caller stops asking."""
        try:
            while True:
                try:
                    item = self.wait(_next(stream))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            if not self._loop.is_closed():
                self.wait(stream.aclose())

    def call(self, work: Callable[[], None]) -> None:
        """Do this there; it is not waited for."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_STOP_S)


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await anext(stream)


class Method(Protocol[P, R_co]):
    """A method, as type checkers see it. At run time it is an ordinary function."""

    @overload
    def __get__(self, face: None, kind: type, /) -> Callable[Concatenate[Any, P], R_co]: ...
    @overload
    def __get__(self, face: Face[Any], kind: type, /) -> Callable[P, R_co]: ...


class Face(Generic[T]):
    """A blocking object in front of an async one."""

    def __init__(self, thread: LoopThread, of: T) -> None:
        self._thread, self._of = thread, of

    def __repr__(self) -> str:
        return repr(self._of)


def waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Method[P, T]:
    """Waits for its result."""

    @wraps(method)
    def call(face: Face[Any], *args: P.args, **named: P.kwargs) -> T:
        return face._thread.wait(method(face._of, *args, **named))

    return cast(Method[P, T], call)


def waits_for(
    kind: type[F], method: Callable[Concatenate[Any, P], Coroutine[Any, Any, Any]]
) -> Method[P, F]:
    """Waits for an object that has a blocking face too, and gives that."""

    @wraps(method)
    def call(face: Face[Any], *args: P.args, **named: P.kwargs) -> F:
        return kind(face._thread, face._thread.wait(method(face._of, *args, **named)))

    return cast(Method[P, F], call)


def iterates(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Method[P, Generator[T, None, None]]:
    """Gives the items as they come."""

    @wraps(method)
    def call(face: Face[Any], *args: P.args, **named: P.kwargs) -> Generator[T, None, None]:
        return face._thread.each(method(face._of, *args, **named))

    return cast(Method[P, Generator[T, None, None]], call)
