"""One effect, judged by some policies: its facts are computed once, each policy is asked, and the
strictest verdict counts. Whatever goes wrong is a refusal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from holdfast.adapters.bash_grammar.parser import BashGrammar
from holdfast.core.gate.effect_facts import facts_of
from holdfast.core.gate.patterns import matching
from holdfast.core.gate.verdicts import strictest
from holdfast.model.actor import Actor
from holdfast.model.gate import Outcome, Part, ProposedEffect, Verdict
from holdfast.model.gate_facts import Facts
from holdfast.model.ids import ActorId, SessionId
from holdfast.ports.actor_scores import ActorScores
from holdfast.ports.path_look import PathLook
from holdfast.ports.policy_engine import PreparedPolicy, Question

log = logging.getLogger(__name__)

# Whoever typed some of the text does not approve it.
_OWN = (Part.TRIGGER, Part.TYPED, Part.INPUT, Part.SHAPED)


class EffectJudge:
    """For one thread: it has a parser."""

    def __init__(
        self,
        look: PathLook,
        scores: ActorScores,
        actor: Callable[[ActorId], Actor | None],
        user_of: Callable[[SessionId], str],
    ) -> None:
        """`actor`: an actor known here; `user_of`: the unix user of a session, by its id."""
        self._look, self._scores, self._actor, self._user_of = look, scores, actor, user_of
        self._grammar = BashGrammar()

    def facts(self, effect: ProposedEffect) -> Facts:
        home = self._look.home(self._user_of(effect.session))
        return facts_of(effect, self._grammar.parse, self._look.real, home)

    def judge(
        self, effect: ProposedEffect, policies: Sequence[tuple[str, PreparedPolicy]]
    ) -> Verdict:
        """By these policies, each with its scope."""
        try:
            facts = self.facts(effect)
            scores = tuple(self._scores.score(each.actor) for each in effect.contributors)
            approved = self._approved(effect)
            verdicts = []
            for scope, policy in policies:
                matches = matching(policy.patterns, facts.lines)
                question = Question(effect, facts, scores, matches, approved)
                verdicts.append(_placed(policy.decide(question), scope))
        except Exception as error:  # no bug of a policy may let anything pass
            log.exception("an effect could not be judged")
            return refused(f"it could not be judged: {type(error).__name__}: {error}")
        return strictest(verdicts)

    def _approved(self, effect: ProposedEffect) -> tuple[tuple[ActorId, str, str], ...]:
        """Approvals that count: of actors that are known and not revoked, and not of those whose
        line it is."""
        own = {each.actor for each in effect.contributors if each.part in _OWN} | {effect.actor}
        known = (self._actor(each) for each in effect.approved_by if each not in own)
        return tuple(
            (each.id, each.name, each.kind.value)
            for each in known
            if each is not None and each.revoked_at is None
        )


def refused(why: str) -> Verdict:
    return Verdict(Outcome.REFUSE, why, policy="error")


def _placed(verdict: Verdict, scope: str) -> Verdict:
    """With the scope of the policy before the id of its rule."""
    return verdict.replace(policy=f"{scope}:{verdict.policy}") if verdict.policy else verdict
