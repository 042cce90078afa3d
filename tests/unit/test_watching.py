"""A change of state is told to everybody who was told otherwise, also when it was so short that
nobody looked but one who had just come."""

from __future__ import annotations

import asyncio

from holdfast.host.session.state_watch import StateWatch
from holdfast.model.state import SessionState


class _Live:
    """What is watched, and where a change is reported."""

    def __init__(self) -> None:
        self.now = SessionState.PROMPT
        self.news: asyncio.Queue[SessionState] = asyncio.Queue()

    def state(self) -> SessionState:
        return self.now

    def state_changed(self, state: SessionState) -> None:
        self.news.put_nowait(state)


def test_a_state_told_to_a_newcomer_is_left_for_everybody() -> None:
    async def work() -> list[SessionState]:
        live = _Live()
        watching = StateWatch(live.state, live.state_changed)
        watching.set_watched(True)
        seen = [await live.news.get()]
        live.now = SessionState.WORKING  # for a moment in which nobody looks
        assert watching.current_state() is SessionState.WORKING
        live.now = SessionState.PROMPT
        seen += [await live.news.get(), await live.news.get()]
        watching.stop()
        return seen

    told = asyncio.run(asyncio.wait_for(work(), 10))
    assert told == [SessionState.PROMPT, SessionState.WORKING, SessionState.PROMPT]


def test_what_everybody_knows_is_not_told_again() -> None:
    async def work() -> int:
        live = _Live()
        watching = StateWatch(live.state, live.state_changed)
        watching.set_watched(True)
        assert await live.news.get() is SessionState.PROMPT
        assert watching.current_state() is SessionState.PROMPT
        watching.stop()
        return live.news.qsize()

    assert asyncio.run(asyncio.wait_for(work(), 10)) == 0
