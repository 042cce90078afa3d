"""A session's output as the bytes it printed, by offset, across daemon restarts.

The offset makes coming back exact: the new daemon is asked for what follows the last byte seen.
"""

from __future__ import annotations

from holdfast.cli.resuming import come_back
from holdfast.model.errors import HostLost
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.info import SessionInfo
    from holdfast.sdk.client import Host

_CHANNEL = 0


class RawOutput:
    """Attached as an observer that wants every byte. `since` None: from now on."""

    def __init__(self, host: Host, session: str, since: int | None) -> None:
        self._host = host
        self._session = session
        attached = self._attach(since)
        self.info: SessionInfo = attached.info
        self._session = attached.info.id  # the name may be another session's later
        self.offset = attached.offset  # of the next byte to come

    def next(self, timeout: float | None = None) -> m.Output | m.Gap | m.Closed:
        """What comes next. Raises TimedOut, and HostLost when the host itself is gone."""
        while True:
            try:
                message = self._host.connection.receive(timeout)
            except HostLost:
                come_back(self._host)
                self._attach(self.offset)
                continue
            if isinstance(message, m.Output):
                self.offset = message.offset + len(message.data)
                return message
            if isinstance(message, m.Gap):
                self.offset = message.offset
                return message
            if isinstance(message, m.Closed):
                return message

    def _attach(self, since: int | None) -> m.Attached:
        connection = self._host.connection
        answer = connection.ask(
            m.Attach(
                connection.next_id(), self._session, _CHANNEL, observe=True, raw=True, since=since
            )
        )
        if not isinstance(answer, m.Attached):
            raise HostLost(f"the host answered {answer.tag}")
        return answer
