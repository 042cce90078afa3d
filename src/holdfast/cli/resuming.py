"""Getting back to a host whose daemon was replaced while a verb was listening to it."""

from __future__ import annotations

import os

from holdfast.model.errors import HostLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client import Host


def come_back(host: Host) -> None:
    """Connect again. Raises HostLost at once when the host itself is gone: a daemon that is only
    being replaced leaves the socket in the keeper's hands, so its absence is certain knowledge."""
    if not os.path.exists(host.path):
        raise HostLost("the host was stopped", hint="`hold up -d` starts one")
    host.reconnect()
