"""How long, how often and how fast a client tries again. All such times of the clients are here."""

from __future__ import annotations

from holdfast.model.errors import (
    ChannelBroken,
    CoordinationDown,
    HandshakeFailed,
    HoldfastError,
    HostDown,
    HostLost,
    LimitReached,
    RateLimited,
    RelayUnreachable,
    TimedOut,
)
from holdfast.model.limits import RECONNECT_DEADLINE_S
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client_core.client_io import ClientIo

# What a client that had a connection gets over by trying again for a while.
RECONNECTABLE = (
    *(HostDown, HostLost, RelayUnreachable, ChannelBroken, HandshakeFailed),
    *(TimedOut, CoordinationDown, RateLimited, LimitReached),
)
# Of these, what a request is answered with that was not even delivered to the host.
NOT_DELIVERED = (RelayUnreachable, HandshakeFailed, CoordinationDown)
# What may be over when the same request is made again.
RETRIED = (HostLost, *NOT_DELIVERED)

RELAY_RETRY_S = 0.3  # a relay is dialled by others too
INPUT_ATTEMPTS = 4  # a host that is lost so often before it answers is better looked at by a person
OUTPUT_PAUSE_S = 0.1  # output that rests this long may have completed a screen
PROMPT_S = 5.0  # a shell with heavy startup files is at its prompt within this
PORT_FIRST_S, PORT_MAX_S = 0.05, 0.5  # between two looks for a listening port: there is no event


class ReconnectPolicy(Record):
    """How a lost connection is made again."""

    first_s: float  # between two tries; doubled each time
    max_s: float
    patience_s: float = RECONNECT_DEADLINE_S
    stopped_is_final: bool = True  # give up at once when the host was stopped


LOCAL = ReconnectPolicy(0.02, 0.02)  # a daemon that is replaced is back within moments
RELAY = ReconnectPolicy(RELAY_RETRY_S, RELAY_RETRY_S)
ATTACH = ReconnectPolicy(0.05, 0.05, stopped_is_final=False)  # somebody sits there and may start it
FORWARD = ReconnectPolicy(0.1, 2.0, float("inf"), stopped_is_final=False)  # nobody sits there


class Retry:
    """One operation that is tried again after the connection was lost."""

    def __init__(self, io: ClientIo) -> None:
        self._io = io
        self._deadline: float | None = None  # set by the first loss

    async def caught(self, error: HoldfastError) -> None:
        """Return when the operation is to be tried again; otherwise raise the error."""
        now = self._io.now()
        if self._deadline is not None and now >= self._deadline:
            raise error
        if isinstance(error, HostLost):
            self._deadline = self._deadline or now + self._io.patience_s
        elif self._deadline is None:
            raise error  # no relay leads there: an answer, unless the host is on its way back
        else:
            await self._io.sleep(RELAY_RETRY_S)
