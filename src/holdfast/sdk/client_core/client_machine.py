"""Connect again, ask again, send an input again: what a client does when its host was lost.

Inputs are numbered. A host takes a number that is not above the last one for a repeat, so sending
one again is harmless: it says that it has it. When that cannot be learnt, the outcome is
InputUnknown; an input is never guessed to be done and never typed twice.
"""

from __future__ import annotations

from holdfast.model.errors import (
    HoldfastError,
    HostDown,
    HostLost,
    InputUnknown,
    SessionHalted,
    TurnHeld,
)
from holdfast.sdk.client_core.retry_policy import (
    INPUT_ATTEMPTS,
    NOT_DELIVERED,
    RECONNECTABLE,
    RELAY_RETRY_S,
    RETRIED,
    ReconnectPolicy,
    Retry,
)
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, Protocol, TypeVar

    from holdfast.sdk.client_core.client_io import ClientIo

    A = TypeVar("A", bound=m.Answer)
    T = TypeVar("T")

    class Timing(Protocol):
        """As much of a ClientIo as dialling needs."""

        def now(self) -> float: ...
        async def sleep(self, seconds: float) -> None: ...


# A host refuses an input with these only after it has seen that its number is new.
_REFUSED_AS_NEW = (TurnHeld, SessionHalted)


class Reader:
    """What readers have in common that go on across lost connections."""

    def __init__(self, io: ClientIo) -> None:
        self._io = io
        self._inbox: Any = None
        self._retry = Retry(io)

    def close(self) -> None:
        if self._inbox is not None:
            self._io.release(self._inbox)
            self._inbox = None


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of work whose driver blocks instead of suspending."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a blocking driver does not suspend")


async def reconnect(timing: Timing, dial: Callable[[], Awaitable[T]], policy: ReconnectPolicy) -> T:
    """Dial until it succeeds, the patience is over, or the error is one that stays."""
    deadline, delay = timing.now() + policy.patience_s, policy.first_s
    while True:
        try:
            return await dial()
        except RECONNECTABLE as error:
            if policy.stopped_is_final and _is_stopped(error):
                raise HostLost("the host was stopped", hint="`hold up -d` starts one") from error
            if timing.now() >= deadline:
                raise
        await timing.sleep(delay)
        delay = min(2 * delay, policy.max_s)


def _is_stopped(error: HoldfastError) -> bool:
    """While a daemon is only being replaced the supervisor holds the listening socket, so its
    absence is certain knowledge."""
    gone = isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError)
    return isinstance(error, HostDown | HostLost) and gone


async def ask(io: ClientIo, request: m.Request, kind: type[A], *, once: bool = False) -> A:
    """Ask, and ask again when the connection is lost; `once`: what must not be done twice."""
    retry = Retry(io)
    while True:
        await io.connect()
        try:
            return expect(await io.exchange(request), kind)
        except RETRIED as error:
            if once:
                raise
            await retry.caught(error)


def expect(answer: m.Message, kind: type[A]) -> A:
    if not isinstance(answer, kind):
        raise HostLost(f"the host answered {answer.tag} instead of {kind.tag}")
    return answer


async def offer(io: ClientIo, request: m.Submit | m.Keys | m.Input) -> m.Accepted:
    """Send a numbered input until the host has said what became of it. The caller sends no later
    one meanwhile: the host would take this one's number for a repeat."""
    lost: HostLost | None = None  # after it was sent
    for _ in range(INPUT_ATTEMPTS):
        try:
            await io.connect()
        except HoldfastError as error:  # also when we are not let in again: it may be typed
            if lost is None:
                raise
            raise input_unknown() from error
        try:
            answer = expect(await io.exchange(request), m.Accepted)
        except HostLost as error:
            lost = error
        except NOT_DELIVERED:
            if lost is None:
                raise
            await io.sleep(RELAY_RETRY_S)
        except _REFUSED_AS_NEW:
            raise
        except HoldfastError as error:
            if lost is None:
                raise
            # The session has ended meanwhile, or rights or the disk are gone: that refuses the
            # repeat, and says nothing of the first one.
            raise input_unknown(error) from error
        else:
            if answer.repeated and lost is None:
                raise input_unknown()  # somebody else has used its number: never call it done
            return answer
    raise input_unknown() from lost


def input_unknown(since: HoldfastError | None = None) -> InputUnknown:
    """`since`: what the host answered when it was asked again."""
    unknown = "the host was lost before it said whether it took the input"
    return InputUnknown(
        f"{unknown}; now {since.message}" if since is not None else unknown,
        hint="look at the screen before you type it again",
    )
