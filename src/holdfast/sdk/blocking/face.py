"""How a blocking class is made of an async one: a wrapper object, and methods that wait.

    class Session(Face[aio.Session]):
        info = waits(aio.Session.info)

The signature, its types and the docstring are those of the async method: `Method` carries them to
type checkers and editors by its parameters, `functools.wraps` to `help()`. So each call is written
once, and a call that changes there cannot be out of date here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from holdfast.sdk.blocking.loop_thread import LoopThread

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound="Face[Any]")


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
