"""One command line, sent once and followed to its end, across lost connections.

The host remembers what became of the commands it was asked to run: by the key its asker gave it, or
without one by operator and number. The same request again joins that command, running or ended, and
never runs another.
"""

from __future__ import annotations

from holdfast.model.errors import HoldfastError, HostLost, InputUnknown, SessionEnded, from_code
from holdfast.sdk.client_core.client_machine import Reader, input_unknown
from holdfast.sdk.client_core.retry_policy import RETRIED, Retry
from holdfast.wire.messages import session as m
from holdfast.wire.messages.gate_actions import Act

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client_core.client_io import ClientIo


class ExecReader(Reader):
    """The answers to one Exec or Act. After a loss those that came before come again."""

    def __init__(self, io: ClientIo, request: m.Exec | Act) -> None:
        super().__init__(io)
        self._request = request
        self._sent = self._printed = False
        self._in_doubt = False  # it was sent, and the connection was lost
        self.began = False
        self.held = False  # it waits for approval, and the host remembers it
        self.joined = False  # some of its output had come before the connection was lost

    async def next(self) -> m.Message:
        """The next answer; a Failed is raised as the error it names."""
        while True:
            try:
                await self._io.connect()
            except HoldfastError as error:
                if not self._sent:
                    raise
                raise self._out_of_reach() from error
            try:
                return await self._answer()
            except RETRIED as error:
                self.close()
                self._in_doubt = self._sent
                self.joined = self._printed
                try:
                    await self._retry.caught(error)
                except HostLost as lost:
                    raise self._out_of_reach() from lost

    async def _answer(self) -> m.Message:
        if self._inbox is None:
            self._inbox = await self._io.send(self._request)
            self._sent = True
        message = await self._io.next(self._inbox)
        assert message is not None
        if isinstance(message, m.Failed):
            error = from_code(message.code, message.message, message.hint, message.ending)
            raise self._refusal(error)
        self._retry = Retry(self._io)  # it is there: the next loss is another
        self.began = self.began or isinstance(message, m.ExecBegan)
        self.held = isinstance(message, m.ExecHeld)
        self._printed = self._printed or isinstance(message, m.ExecOutput)
        return message

    def _refusal(self, error: HoldfastError) -> HoldfastError:
        """What a refusal says of the command. After a loss it does not say that the command was not
        run: that may be why the host now refuses, because the session ended by it."""
        if not self._in_doubt or isinstance(error, InputUnknown):
            return error
        if not self.began:
            return InputUnknown(
                "the host was lost before it said whether it ran the command; now it says: "
                + error.message,
                hint=error.hint or "look at the screen before you run it again",
            )
        if isinstance(error, SessionEnded):
            return error
        return InputUnknown(
            f"the command began; then the host was lost, and now it says: {error.message}",
            hint=error.hint,
        )

    def _out_of_reach(self) -> HoldfastError:
        """The host is lost, and did not come back."""
        if not self.began:
            return input_unknown()
        return HostLost(
            "the host was lost while the command ran; it goes on there",
            hint="with a key its result can be asked for again",
        )
