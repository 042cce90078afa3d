"""Getting back to a host whose daemon was replaced while a verb was listening to it."""

from __future__ import annotations

import time

from holdfast.model.errors import HostDown, HostLost
from holdfast.model.limits import RECONNECT_DEADLINE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client import Host

_RETRY_S = 0.02


def come_back(host: Host) -> None:
    """Connect again. Raises HostLost at once when the host itself is gone: while a daemon is only
    being replaced the keeper holds the listening socket, so its absence is certain knowledge."""
    deadline = time.monotonic() + RECONNECT_DEADLINE_S
    while True:
        try:
            host.reconnect(0.0)
            return
        except (HostDown, HostLost) as error:
            if isinstance(error.__cause__, FileNotFoundError | ConnectionRefusedError):
                raise HostLost("the host was stopped", hint="`hold up -d` starts one") from error
            if time.monotonic() >= deadline:
                raise
        time.sleep(_RETRY_S)
