"""Inputs to one session: numbered, one after another, none twice.

The host takes a number that is not above the last one for a repeat. So a number is given when the
frame is written, and the next input waits until the host has said what became of this one:
otherwise one that has to be sent again could be overtaken, and taken for done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.model.errors import HoldfastError, HostLost, InputUnknown
from holdfast.sdk.aio.link import REDIAL_S, HostLink
from holdfast.sdk.connection import NOT_SENT
from holdfast.wire.messages import session as m

_ATTEMPTS = 4  # a host that is lost so often before it answers is better looked at by a person


class Inputs:
    """What this program types into one session."""

    def __init__(self, link: HostLink, session: str) -> None:
        self._link = link
        self._numbers = link.numbers(session)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """The number of the next input; others wait until this one's fate is known."""
        async with self._numbers.one:
            self._numbers.last += 1
            yield self._numbers.last

    async def offer(self, request: m.Submit | m.Keys | m.Input) -> m.Accepted:
        """Raises InputUnknown when the host was lost and cannot be asked what it took."""
        async with self.turn() as seq:
            sent: HostLost | None = None  # how the host was lost after it was sent
            for _ in range(_ATTEMPTS):
                try:
                    carrier = await self._link.carrier()
                except HoldfastError as error:
                    if sent is None:
                        raise
                    raise unknown() from error
                try:
                    # The number makes sending it again harmless: if it was taken, we are told so.
                    answer = await carrier.ask(request.replace(seq=seq))
                except NOT_SENT:
                    if sent is None:
                        raise
                    await asyncio.sleep(REDIAL_S)
                except HostLost as lost:
                    sent = lost
                else:
                    assert isinstance(answer, m.Accepted), answer
                    if answer.repeated and sent is None:
                        raise unknown()  # somebody else has used its number: never call it done
                    return answer
            raise unknown() from sent


def unknown() -> InputUnknown:
    """The host was lost, and what it took cannot be asked."""
    return InputUnknown(
        "the host was lost before it said whether it took the input",
        hint="look at the screen before you type it again",
    )
