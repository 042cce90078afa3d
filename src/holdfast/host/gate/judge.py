"""Asks the policy. It may be slow, or fail: then the effect is refused, and the refusal says so.

In threads of its own: what a policy waits for must not stop the daemon, and one that hangs must not
keep anything else of the daemon from its threads.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from holdfast.model.gate import Outcome, ProposedEffect, Verdict
from holdfast.model.limits import GATE_JUDGE_S
from holdfast.ports.gate_policy import GatePolicy

log = logging.getLogger(__name__)

_THREADS = 4  # judgements under way; while that many hang, all others are refused after their bound


class Judge:
    """Of one host."""

    def __init__(self, policy: GatePolicy) -> None:
        self.policy = policy
        self._threads = ThreadPoolExecutor(_THREADS, "gate")

    async def judge(self, effect: ProposedEffect) -> Verdict:
        """Never raises: an error of the policy is a refusal."""
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._threads, self.policy.judge, effect)
        try:
            return await asyncio.wait_for(asked, GATE_JUDGE_S)
        except TimeoutError:
            why = f"the policy did not answer within {GATE_JUDGE_S:g} s"
        except Exception as error:  # whatever it is, it is no leave to go on
            log.exception("the policy failed on %s", effect.kind)
            why = f"the policy failed: {error}"
        return Verdict(Outcome.REFUSE, why)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
