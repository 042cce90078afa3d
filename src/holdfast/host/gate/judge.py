"""Asks the policy. It may be slow, or fail: then the effect is refused, and the refusal says so.

In a thread of its own, and one at a time, as policies expect: what a policy waits for must not stop
the daemon. A thread that does not come back is left behind, and the next effect is judged in
another one; after a few of these everything is refused.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future, ThreadPoolExecutor

from holdfast.model.gate import Outcome, ProposedEffect, Verdict
from holdfast.model.limits import GATE_JUDGE_S
from holdfast.ports.gate_policy import GatePolicy

log = logging.getLogger(__name__)

_HANGING_MAX = 8  # threads that a policy does not come back from


class Judge:
    """Of one host."""

    def __init__(self, policy: GatePolicy) -> None:
        self.policy = policy
        self._thread = ThreadPoolExecutor(1, "gate")
        self._hanging: list[Future[Verdict]] = []

    async def judge(self, effect: ProposedEffect) -> Verdict:
        """Never raises: an error of the policy is a refusal."""
        self._hanging = [each for each in self._hanging if not each.done()]
        if len(self._hanging) >= _HANGING_MAX:
            return Verdict(Outcome.REFUSE, "the policy does not answer")
        thread = self._thread
        asked = thread.submit(self.policy.judge, effect)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), GATE_JUDGE_S)
        except TimeoutError:
            why = f"the policy did not answer within {GATE_JUDGE_S:g} s"
            if not asked.cancelled() and thread is self._thread:
                self._hanging.append(asked)
                thread.shutdown(wait=False)
                self._thread = ThreadPoolExecutor(1, "gate")
        except Exception as error:  # no failure is a permission
            log.exception("the policy failed on %s", effect.kind)
            why = f"the policy failed: {error}"
        return Verdict(Outcome.REFUSE, why)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
