"""The gate's decision: one line judged by a policy of 200 rules, beside a policy of one.

In one process, without a session around it: the facts of a line with a pipeline and a redirection
are computed, and Cedar is asked for two contributors, a person and an agent."""

from __future__ import annotations

import time
from functools import partial

from bench.results import Row, Target
from bench.sampling import interleaved, medians
from bench.stage import Stage
from holdfast.adapters.real_paths import RealPaths
from holdfast.host.gate import policy_source
from holdfast.host.gate.effect_judge import EffectJudge
from holdfast.model.actor import ActorKind
from holdfast.model.gate import Contributor, EffectKind, Part, ProposedEffect
from holdfast.model.gate_facts import Score
from holdfast.model.ids import ActorId, SessionId
from holdfast.ports.policy_engine import PreparedPolicy

_RULES = 200
_DECISIONS = 50  # of one sample
_REPETITIONS = 7
_LINE = "make -j4 2>&1 | tee build.log && grep -c warning build.log > warnings"
_RULE = '[[rule]]\nname = "r{}"\nwho = "agent"\nlines = "evil-{} *"\nthen = "refuse"\n'


class _NoScores:
    def score(self, actor: ActorId) -> Score:
        return Score()


def measure(stage: Stage) -> list[Row]:
    effect = _effect(stage.path("gate"))
    judge = EffectJudge(RealPaths(), _NoScores(), lambda _: None, lambda _: "")
    samples = interleaved(
        {
            "holdfast": partial(_judged, judge, effect, _policy(_RULES)),
            "one rule": partial(_judged, judge, effect, _policy(1)),
        },
        _REPETITIONS,
    )
    values = medians(samples)
    return [
        Row(
            f"a line judged by {_RULES} rules",
            "µs",
            {"holdfast": values["holdfast"]},
            "one rule",
            values["one rule"],
            Target("<=", 10),
            samples={"holdfast": samples["holdfast"]},
        )
    ]


def _policy(rules: int) -> PreparedPolicy:
    text = "".join(_RULE.format(number, number) for number in range(rules))
    return policy_source.prepare(policy_source.read(text, "bench", policy_source.TOML))


def _judged(judge: EffectJudge, effect: ProposedEffect, policy: PreparedPolicy) -> float:
    """Microseconds for one."""
    began = time.perf_counter()
    for _ in range(_DECISIONS):
        judge.judge(effect, [("host", policy)])
    return (time.perf_counter() - began) / _DECISIONS * 1e6


def _effect(directory: str) -> ProposedEffect:
    people = [
        Contributor(ActorId(str(number) * 26), kind, kind, part)
        for number, (kind, part) in enumerate(
            ((ActorKind.HUMAN, Part.TRIGGER), (ActorKind.AGENT, Part.STATE)), 1
        )
    ]
    return ProposedEffect(
        session=SessionId("0" * 26),
        name="bench",
        labels=("prod",),
        level="plain",
        epoch=1,
        kind=EffectKind.LINE,
        actor=people[0].actor,
        contributors=tuple(people),
        text=_LINE,
        cwd=directory,
        workspace=directory,
    )
