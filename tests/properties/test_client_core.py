"""The client against a host that loses connections, answers and requests at any moment: no input is
typed twice or out of order, none is called done that is not, and output has no hole or repeat."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.errors import HoldfastError, HostDown, HostLost, InputUnknown, RelayUnreachable
from holdfast.model.state import Ending, SessionState
from holdfast.sdk.client_core.client_machine import finish, offer
from holdfast.sdk.client_core.event_reader import MISSED, EventReader
from holdfast.sdk.client_core.output_reader import OutputReader, Piece
from holdfast.sdk.client_core.unacked_inputs import UnackedInputs
from holdfast.wire.messages import session as m
from unit.scripted_io import INFO, SESSION

ENDING = Ending(code=0)

# What happens to one exchange: nothing, the request is lost, the answer is lost, or no relay leads
# to the host for a moment.
FATES = st.lists(st.sampled_from(["", "", "request", "answer", "relay"]), max_size=40)


class Flaky:
    """A host behind a bad connection, as the port of `client_core`. Everything is kept by it as a
    real one would: the last number of the operator, and all output with its offsets."""

    patience_s = 3.0

    def __init__(self, fates: Iterable[str], comes_back: Iterable[bool] = ()) -> None:
        self._fates, self._comes_back = deque(fates), deque(comes_back)
        self.time = 0.0
        self.connected = True
        self.last_seq = 0
        self.typed: list[tuple[int, bytes]] = []
        self.output = b""
        self.kept_from = 0  # offset of the first byte still held
        self.piece_bytes = 7
        self.state = SessionState.WORKING

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds

    async def connect(self) -> None:
        if not self.connected:
            if self._comes_back and not self._comes_back.popleft():
                raise HostDown("gone")
            self.connected = True

    def _fate(self) -> str:
        return self._fates.popleft() if self._fates else ""

    def _lose(self) -> HostLost:
        self.connected = False
        return HostLost("lost")

    async def exchange(self, request: m.Request) -> m.Answer:
        assert self.connected
        fate = self._fate()
        if fate == "request":
            raise self._lose()
        if fate == "relay":
            raise RelayUnreachable("no way")
        answer = self._answer(request)
        if fate == "answer":
            raise self._lose()
        return answer

    def _answer(self, request: m.Request) -> m.Answer:
        if isinstance(request, m.Input):
            repeated = request.seq <= self.last_seq
            if not repeated:
                self.typed.append((request.seq, request.data))
                self.last_seq = request.seq
            return m.Accepted(request.id, request.seq, 0, repeated)
        if isinstance(request, m.Attach):
            since = len(self.output) if request.since is None else request.since
            return m.Attached(request.id, request.channel, INFO, since, self.last_seq)
        assert isinstance(request, m.Watch)
        return m.Done(request.id)

    async def send(self, request: m.Request) -> deque[m.Message]:
        raise NotImplementedError

    async def attach(self, request: m.Attach) -> tuple[m.Attached, deque[m.Message]]:
        attached = await self.exchange(request)
        assert isinstance(attached, m.Attached)
        inbox: deque[m.Message] = deque()
        at = attached.offset
        if at < self.kept_from:
            inbox.append(m.Gap(0, self.kept_from, self.kept_from - at))
            at = self.kept_from
        for first in range(at, len(self.output), self.piece_bytes):
            inbox.append(m.Output(0, first, self.output[first : first + self.piece_bytes]))
        inbox.append(m.Closed(0, ENDING))
        return attached, inbox

    async def watch(self, session: str) -> deque[m.Message]:
        await self.exchange(m.Watch(0, session))
        return deque([m.StateEvent(SESSION, "s", self.state, self.time)])

    async def next(self, inbox: deque[m.Message], pause_s: float | None = None) -> m.Message | None:
        if self._fate() in ("request", "answer") or not inbox:
            raise self._lose()
        return inbox.popleft()

    def release(self, inbox: deque[m.Message]) -> None:
        inbox.clear()


@pytest.mark.requirement("M6")
@given(FATES, st.lists(st.booleans(), max_size=6), st.integers(1, 8))
def test_inputs_are_typed_in_order_once_or_their_fate_is_named(
    fates: list[str], comes_back: list[bool], count: int
) -> None:
    host, told = Flaky(fates, comes_back), dict[int, str]()
    for seq in range(1, count + 1):
        try:
            finish(offer(host, m.Input(0, SESSION, seq, b"%d" % seq)))
            told[seq] = "accepted"
        except InputUnknown:
            told[seq] = "unknown"
        except HoldfastError as error:
            told[seq] = "refused"
            assert isinstance(error, RelayUnreachable | HostDown)
    numbers = [seq for seq, _ in host.typed]
    assert numbers == sorted(set(numbers)), "none twice, and in order"
    assert all(data == b"%d" % seq for seq, data in host.typed)
    for seq, outcome in told.items():
        assert outcome == "unknown" or (outcome == "accepted") == (seq in numbers)


@given(
    FATES, st.binary(min_size=1, max_size=200), st.integers(0, 200), st.none() | st.integers(0, 150)
)
def test_output_comes_by_its_offsets_without_a_hole_or_a_repeat(
    fates: list[str], output: bytes, kept_from: int, since: int | None
) -> None:
    host = Flaky([fate for fate in fates if fate != "relay"])
    host.output, host.kept_from = output, min(kept_from, len(output))
    reader = OutputReader(host, "s", since)
    seen, at, gaps = b"", since if since is not None else len(output), 0
    host.patience_s = float("inf")
    while isinstance(piece := finish(reader.next()), Piece):
        assert piece.offset == at + piece.gap
        seen, at, gaps = seen + piece.data, piece.end, gaps + piece.gap
    assert isinstance(piece, m.Closed)
    begin = len(output) if since is None else max(since, host.kept_from)
    assert seen == output[begin:]
    assert reader.offset == at


@given(FATES)
def test_a_state_that_did_not_change_is_told_once_however_often_the_connection_is_lost(
    fates: list[str],
) -> None:
    host = Flaky([fate for fate in fates if fate != "relay"])
    host.patience_s = float("inf")
    reader, states = EventReader(host, "s"), list[SessionState]()
    for _ in range(12):
        message = finish(reader.next())
        assert message == MISSED or isinstance(message, m.StateEvent)
        if isinstance(message, m.StateEvent):
            states.append(message.state)
            host.state = SessionState.PROMPT  # changes once, while it is watched or not
    assert states == [SessionState.WORKING, SessionState.PROMPT]


@pytest.mark.requirement("M6")
@given(
    st.lists(
        st.one_of(
            st.binary(min_size=1, max_size=5),  # typed
            st.sampled_from(["deliver", "ack", "lose"]),
        ),
        max_size=60,
    )
)
def test_keys_in_flight_are_sent_again_after_a_loss_and_typed_once_in_order(
    steps: list[bytes | str],
) -> None:
    """As `hold attach` does: many are on their way at once, and all that the host did not
    acknowledge go again under their numbers."""
    unacked, wire, acks = UnackedInputs(), deque[tuple[int, bytes]](), deque[int]()
    typed, last, said = b"", 0, b""

    def deliver() -> None:
        nonlocal typed, last
        seq, data = wire.popleft()
        if seq > last:
            typed, last = typed + data, seq
        acks.append(last)

    for step in [*steps, "lose"]:
        if isinstance(step, bytes):
            said += step
            wire.append((unacked.add(step), step))
        elif step == "deliver" and wire:
            deliver()
        elif step == "ack" and acks:
            unacked.taken(acks.popleft())
        elif step == "lose":  # what is on its way is gone; the host says what it has
            wire.clear()
            acks.clear()
            unacked.taken(last)
            wire.extend(unacked.all())
        assert unacked.bytes == sum(len(data) for _, data in unacked.all())
    while wire:
        deliver()
    assert typed == said
