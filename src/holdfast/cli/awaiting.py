"""Until a session is in a state, told by the host's events."""

from __future__ import annotations

import time

from holdfast.cli.resuming import come_back
from holdfast.model.errors import HostLost
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.state import SessionState
    from holdfast.sdk.client import Host


def await_state(
    host: Host, session: str, wanted: SessionState, deadline: float | None
) -> m.StateEvent:
    """The event that says so, or that the session has ended. Raises TimedOut. A daemon restart
    meanwhile does not matter."""
    host.watch(session)
    while True:
        try:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            event = host.connection.receive(left)
        except HostLost:
            come_back(host)
            host.watch(session)
            continue
        if isinstance(event, m.StateEvent):
            session = event.session  # the name may be another session's when we have to come back
            if event.state is wanted or event.ending is not None:
                return event
