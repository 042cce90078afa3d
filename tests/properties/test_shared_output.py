"""Output that comes by what is sent to all: whatever the relay does to it, and however the two ways
to a reader overtake each other, what is shown is what was printed."""

from __future__ import annotations

import random
from collections import deque

import pytest

from holdfast.adapters.signing import SigningKey
from holdfast.model.ids import SessionId
from holdfast.model.size import Size
from holdfast.model.state import Ending
from holdfast.sdk.reach.shared_output import SharedOutput
from holdfast.wire.epochs import EpochFloor, Incarnation
from holdfast.wire.frames import decode, encode
from holdfast.wire.messages import session as m
from holdfast.wire.output_broadcast import Broadcaster

SESSION = SessionId("0" * 26)
CHANNEL = 3
HOST = SigningKey(bytes(range(32)))


class Scene:
    """A host that prints, a relay that may drop, and a reader. Each way keeps its own order."""

    def __init__(self, seed: int, loss: float) -> None:
        self.chance, self.loss = random.Random(seed), loss
        self.printed = b""
        self.now = 0.0
        self.keys = 0
        self.own: deque[tuple[str, bytes | int]] = deque()  # over the session's own channel
        self.sent: deque[bytes] = deque()  # what was sent to all
        self.reader = SharedOutput(
            SESSION, CHANNEL, HOST.public, EpochFloor(1), self.show, self.anew
        )
        self.shown: bytes | None = None
        self.resyncs = 0
        self.broadcaster = Broadcaster(Incarnation(SESSION, 1), HOST.sign, self.key(), 0.0)
        self.shared = False
        self.wishes = 0
        self.closed = False

    def key(self) -> bytes:
        self.keys += 1
        return self.keys.to_bytes(32)

    # -- the host -------------------------------------------------------------------------------

    def prints(self) -> None:
        data = self.chance.randbytes(self.chance.randint(1, 40))
        at, self.printed = len(self.printed), self.printed + data
        if not self.shared:
            self.own.append(("message", encode(m.Output(CHANNEL, at, data))[4:]))
        self.sent.append(self.broadcaster.frame(at.to_bytes(8) + data, self.now))

    def resync(self) -> None:
        said = m.Resync(CHANNEL, len(self.printed), Size(80, 24), 0, self.printed)
        self.own.append(("message", encode(said)[4:]))

    def shares(self) -> None:
        self.own.append(("key", self.broadcaster.join("reader")))
        self.own.append(("shared", len(self.printed)))
        self.shared = True

    def anew(self) -> None:
        self.wishes += 1

    def grants_wishes(self) -> None:
        while self.wishes:
            self.wishes -= 1
            self.shared = False
            self.resync()
            self.shares()

    def ends(self) -> None:
        self.own.append(("message", encode(m.Output(CHANNEL, len(self.printed), b""))[4:]))
        self.own.append(("message", encode(m.Closed(CHANNEL, Ending(code=0)))[4:]))

    # -- the two ways ---------------------------------------------------------------------------

    def brings_own(self) -> None:
        kind, what = self.own.popleft()
        if kind == "message":
            assert isinstance(what, bytes)
            self.reader.message(what)
        elif kind == "key":
            assert isinstance(what, bytes)
            self.reader.key(what, self.now)
        elif kind == "mark":
            assert isinstance(what, bytes)
            self.reader.mark(what, self.now)
        else:
            assert isinstance(what, int)
            self.reader.shared(what)

    def brings_sent(self) -> None:
        frame = self.sent.popleft()
        if self.chance.random() < self.loss:
            if self.chance.random() < 0.5:
                self.reader.gap()  # as an honest relay tells it; else the reader must notice
            return
        if self.chance.random() < 0.1:  # what others could send
            broken = bytearray(frame)
            broken[self.chance.randrange(len(broken))] ^= 1
            self.reader.frame(bytes(broken), self.now)
        self.reader.frame(frame, self.now)
        if self.chance.random() < 0.1:
            self.reader.frame(frame, self.now)

    def brings_all(self) -> None:
        while self.own or self.sent or self.wishes:
            self.grants_wishes()
            ways = [way for way, there in (
                (self.brings_own, self.own), (self.brings_sent, self.sent)
            ) if there]  # fmt: skip
            if ways:
                self.chance.choice(ways)()

    # -- the user -------------------------------------------------------------------------------

    def show(self, body: bytes) -> None:
        message = decode(body)
        if isinstance(message, m.Resync):
            assert message.data == self.printed[: message.offset]
            self.shown, self.resyncs = message.data, self.resyncs + 1
        elif isinstance(message, m.Output):
            assert self.shown is not None and message.offset == len(self.shown), "a hole, or twice"
            self.shown += message.data
            assert self.printed.startswith(self.shown), "not what was printed"
        else:
            assert isinstance(message, m.Closed)
            assert self.shown == self.printed, "closed before all was shown"
            self.closed = True


@pytest.mark.requirement("R4", "M1")
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_what_is_shown_is_what_was_printed(loss: float) -> None:
    began_anew = 0
    for seed in range(300):
        scene = Scene(seed, loss)
        scene.resync()
        for step in range(60):
            if step == 5:
                scene.shares()
            if scene.chance.random() < 0.1:
                told = scene.broadcaster.rotate(scene.key(), scene.now)
                if "reader" in told:
                    scene.own.append(("key", told["reader"]))
            if scene.chance.random() < 0.1 and scene.shared:
                scene.own.append(("mark", scene.broadcaster.mark()))
            scene.prints()
            for way, there in ((scene.brings_own, scene.own), (scene.brings_sent, scene.sent)):
                while there and scene.chance.random() < 0.6:
                    way()
            scene.grants_wishes()
        scene.loss = 0.0
        scene.brings_all()
        scene.prints()
        scene.brings_all()
        assert scene.shown == scene.printed, seed
        scene.ends()
        scene.brings_all()
        assert scene.closed
        began_anew += scene.resyncs - 1
    assert (began_anew > 0) == (loss > 0)
