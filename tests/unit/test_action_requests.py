"""Requests to carry out a structured action, in a session that is over before the action begins."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.host.gate.action_requests import ActionRequests
from holdfast.model.errors import HoldfastError, SessionAsleep, SessionEnded
from holdfast.model.state import Ending
from holdfast.wire.messages.gate_actions import Act

ENDINGS = [
    pytest.param(Ending(checkpoint="ck-1"), SessionAsleep, id="asleep"),
    pytest.param(Ending(code=0), SessionEnded, id="ended"),
]


class _Session:
    """One that is over once it was looked at, or was asked what is at its prompt."""

    def __init__(self, ending: Ending, *, text_at_prompt: bool) -> None:
        self._ending = ending
        self.core = SimpleNamespace(
            ending=None,
            inputs=SimpleNamespace(is_behind=lambda *_: False),
            turn=SimpleNamespace(blind=False),
            check_not_halted=lambda _: None,
            may_type=lambda *_: True,
        )
        self.commands = SimpleNamespace(
            shells=SimpleNamespace(kind="bash"),
            executions=SimpleNamespace(find=lambda *_: None),
            typed=SimpleNamespace(prompt_may_have_text=text_at_prompt),
            after_prompt_check=self._passes,
            check_can_run=self.use,
        )
        look = SimpleNamespace(cwd="/", roots=lambda _: (), look=self._passes)
        self.actions = SimpleNamespace(look=look)

    async def _passes(self, *_: object) -> None:
        self.core.ending = self._ending

    def use(self, *_: object) -> None:
        if self.core.ending is not None:
            raise OSError("its descriptors are closed")


@pytest.mark.requirement("M9")
@pytest.mark.parametrize("text_at_prompt", [False, True], ids=["looked-at", "asked"])
@pytest.mark.parametrize(("ending", "error"), ENDINGS)
def test_a_session_that_is_over_before_an_action_begins_is_said_to_be(
    ending: Ending, error: type[HoldfastError], text_at_prompt: bool
) -> None:
    session: Any = _Session(ending, text_at_prompt=text_at_prompt)
    ways_in: Any = SimpleNamespace(begin_exec=session.use)
    books: Any = None
    requests = ActionRequests(ways_in, books, books, books, lambda *_: True)
    operator: Any = SimpleNamespace(
        identity="o", actor=SimpleNamespace(id="alice"), channels=frozenset()
    )
    act = Act(1, "work", 1, action='{"intent": "see", "command": "true"}')
    with pytest.raises(error):
        asyncio.run(requests.act(operator, act, session))
