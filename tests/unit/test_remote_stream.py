"""A stream that a relay tells of, before anybody is known to be at its other end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from holdfast.host import remote
from holdfast.host.remote import RemoteStream
from holdfast.model.errors import HoldfastError, ProtocolViolation


class Uplink:
    """A relay that is told when a stream is closed."""

    window = 1 << 18
    has_room = True

    def __init__(self) -> None:
        self.reach = SimpleNamespace(daemon=None, book=lambda _: None)
        self.complaints: list[HoldfastError] = []
        self.closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def complain(self, error: HoldfastError) -> None:
        self.complaints.append(error)

    def close_stream(self, number: int) -> None:
        self.closed.set_result(number)


@pytest.mark.requirement("R3")
def test_one_who_opens_it_and_says_nothing_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "_GREETING_S", 0.01)

    async def scene() -> None:
        uplink = Uplink()
        RemoteStream(uplink, 7)  # type: ignore[arg-type]
        assert await asyncio.wait_for(uplink.closed, 10) == 7

    asyncio.run(scene())


@pytest.mark.requirement("R3")
@pytest.mark.parametrize("first", [b"", b"?", b"S", b"S" + b"!" * 26, b"I1234567"])
def test_what_is_no_opening_ends_it(first: bytes) -> None:
    async def scene() -> None:
        uplink = Uplink()
        stream = RemoteStream(uplink, 7)  # type: ignore[arg-type]
        stream.receive(first)
        assert uplink.closed.done()
        # Not for want of a session: one that is no session's at all is not even looked for.
        assert [type(each) for each in uplink.complaints] == [ProtocolViolation]

    asyncio.run(scene())
