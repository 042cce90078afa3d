"""What a host sends to all readers of a session: who gets which key, and when there is another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.host.reach.output_fanout import Fanout
from holdfast.model.errors import OutputRefused
from holdfast.model.ids import SessionId
from holdfast.model.limits import OUTPUT_KEY_S
from holdfast.wire import relay_messages as r
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.output_broadcast import OutputKey
from holdfast.wire.output_listener import Listener
from holdfast.wire.record_layer import RecordKind

SESSION, HOST = SessionId("0" * 26), SigningKey(bytes(32))


class Ring:
    """All that was ever printed."""

    tail = 0

    def __init__(self) -> None:
        self.data = b""

    @property
    def head(self) -> int:
        return len(self.data)

    def copy(self, start: int, end: int) -> bytes:
        return self.data[start:end]


class Member:
    """A stream, and the reader at its other end, who keeps every key it was ever given."""

    def __init__(self, name: str) -> None:
        self.id = name
        self.keys: list[OutputKey] = []
        self.listener = Listener(SESSION, HOST.public, EpochFloor())

    def seal(self, kind: RecordKind, body: bytes) -> None:
        assert kind == RecordKind.OUTPUT_KEY
        self.keys.append(OutputKey.decode(body))
        self.listener.take_key(body, 0.0)


class Stage:
    """A session, and one relay where all of its readers are."""

    has_room, broadcast_window = True, 1 << 18

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.ring = Ring()
        relays: Any = SimpleNamespace(life=0, host_key=HOST, wanting=lambda _: [self])
        live: Any = SimpleNamespace(
            incarnation=Incarnation(SESSION, 3), ring=self.ring, spec=SimpleNamespace(id=SESSION)
        )
        self.fanout = Fanout(relays, live)

    def say(self, message: r.Broadcast) -> None:
        self.sent.append(message.data)

    def joins(self, name: str) -> Member:
        member = Member(name)
        self.fanout.join(member)  # type: ignore[arg-type]
        return member

    def prints(self, text: bytes) -> bytes:
        """The frame with it."""
        self.ring.data += text
        self.fanout.pump()
        return self.sent[-1]


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be moved."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def play(scene: Callable[[Stage, Clock], None]) -> None:
    async def all_of_it() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clock)
        stage = Stage()
        scene(stage, loop)
        stage.fanout.close()

    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(all_of_it())


@pytest.mark.requirement("R3")
def test_who_left_can_open_nothing_that_is_printed_afterwards() -> None:
    def scene(stage: Stage, _: Clock) -> None:
        stays, goes = stage.joins("stays"), stage.joins("goes")
        before = stage.prints(b"before")
        assert all(
            each.listener.open(before, 0.0).data.endswith(b"before") for each in (stays, goes)
        )
        stage.fanout.leave(goes)  # type: ignore[arg-type]
        after = stage.prints(b"after")
        assert stays.listener.open(after, 0.0).data.endswith(b"after")
        with pytest.raises(OutputRefused, match="not given"):
            goes.listener.open(after, 0.0)
        assert len(goes.keys) == 1 and len(stays.keys) == 2

    play(scene)


@pytest.mark.requirement("R4")
def test_a_key_is_not_used_for_longer_than_an_hour() -> None:
    def scene(stage: Stage, clock: Clock) -> None:
        reader = stage.joins("reader")
        stage.prints(b"early")
        clock.ahead += OUTPUT_KEY_S - 60
        stage.prints(b"still early")
        assert len(reader.keys) == 1
        clock.ahead += 61
        late = stage.prints(b"late")
        first, second = reader.keys
        assert first.key != second.key and second.group == first.group + 1 and not second.begins
        assert [reader.listener.open(each, 0.0).data[8:] for each in stage.sent] == [
            b"early", b"still early", b"late",
        ]  # fmt: skip
        assert late == stage.sent[-1]

    play(scene)
