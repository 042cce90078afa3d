"""A policy in Cedar, prepared once and asked for each effect.

Cedar knows two effects, permit and forbid. A rule with `@hold` is a forbid that approvals lift. So
a policy is asked twice: its rules without the holds say whether it is refused; the holds alone,
with everything else permitted, which of them match. Approvals are counted here, and not in the
rules: a rule cannot forget to ask for them.

It is asked for each contributor as the principal, and the strictest answer counts: a rule about
agents applies to whatever an agent had a part in.

Cedar skips a rule that fails, which would let through what a forbid was to stop. So any error is a
refusal, whatever the decision beside it.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from typing import Any

import cedarpy

from holdfast.adapters.cedar import schema
from holdfast.adapters.cedar.policy_text import PolicyRule, rules_of
from holdfast.adapters.cedar.rule_actions import may_refuse
from holdfast.model.gate import ALLOWED, EffectKind, Outcome, Verdict, is_approver
from holdfast.ports.policy_engine import Question

log = logging.getLogger(__name__)

_PERMIT_ALL = '@id("otherwise") permit(principal, action, resource);'
_NO_RULE = "no rule permits it"
_RULES_NAMED = 3  # in one reason


class CedarPolicy:
    """One text, checked and prepared. Making it raises PolicyInvalid."""

    def __init__(self, text: str) -> None:
        found = rules_of(text)
        self.rules = len(found)
        self.patterns = tuple(dict.fromkeys(each for rule in found for each in rule.patterns))
        self._rules = {each.id: each for each in found}
        bodies = [_body(each.text) for each in found]
        self._concerned = frozenset(kind for kind in EffectKind if may_refuse(bodies, kind.value))
        self._plain = _prepared([each for each in found if not each.hold])
        holds = [each for each in found if each.hold]
        self._holds = _prepared(holds, with_permit=True) if holds else None

    def concerns(self, kind: EffectKind) -> bool:
        return kind in self._concerned

    def decide(self, question: Question) -> Verdict:
        try:
            return self._decided(question)
        except Exception as error:  # whatever it is, nothing may pass because of it
            log.exception("a policy failed")
            return _failed(f"{type(error).__name__}: {error}")

    def _decided(self, question: Question) -> Verdict:
        asked = schema.principals(question)
        if not asked:
            return _failed("the effect has no contributors")
        known = _entities(schema.entities(question, asked))
        requests = schema.requests(question, asked)
        held: list[tuple[PolicyRule, str]] = []
        for policies, holds in ((self._plain, False), (self._holds, True)):
            if policies is None:
                continue
            answers = cedarpy.is_authorized_batch(requests, policies, known)
            if len(answers) != len(requests):
                return _failed("it gave no answer")
            for answer, principal in zip(answers, asked, strict=True):
                if answer.diagnostics.errors:
                    return _failed("; ".join(answer.diagnostics.errors[:_RULES_NAMED]))
                if answer.decision is cedarpy.Decision.Allow:
                    continue
                if answer.decision is not cedarpy.Decision.Deny:
                    return _failed("it gave no answer")
                rules = [self._rules[each] for each in sorted(answer.diagnostics.reasons)]
                name = principal.contributor.name
                if not holds or not rules:
                    return _refused(rules, name)
                held.extend((rule, name) for rule in rules)
        return _held(question, held)


def _prepared(rules: list[PolicyRule], *, with_permit: bool = False) -> cedarpy.PolicySet:
    """These rules under their own ids: Cedar would number them."""
    bodies: dict[str, Any] = {each.id: _body(each.text) for each in rules}
    if with_permit:
        bodies["(otherwise)"] = _body(_PERMIT_ALL)  # no rule of a text can have this id
    whole = {"staticPolicies": bodies, "templates": {}, "templateLinks": []}
    return cedarpy.PolicySet.from_json_str(json.dumps(whole))


@lru_cache(maxsize=256)  # the same people in the same sessions, line after line
def _entities(known: str) -> cedarpy.Entities:
    return cedarpy.Entities.from_json_str(known)


def _body(text: str) -> Any:
    (body,) = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"].values()
    return body


def _failed(why: str) -> Verdict:
    return Verdict(Outcome.REFUSE, f"the policy failed, so it is refused: {why}", policy="error")


def _refused(rules: list[PolicyRule], name: str) -> Verdict:
    if not rules:
        return Verdict(Outcome.REFUSE, f"{_NO_RULE} for {name}", policy="otherwise")
    ids = ", ".join(each.id for each in rules[:_RULES_NAMED])
    return Verdict(Outcome.REFUSE, _reason(rules[0], name, "refuses this"), policy=ids)


def _held(question: Question, found: list[tuple[PolicyRule, str]]) -> Verdict:
    """Of those that are not approved the one that needs most; when it is, the next."""
    waiting = [(rule, name) for rule, name in found if not _is_approved(rule, question)]
    if not waiting:
        return ALLOWED
    rule, name = max(waiting, key=lambda each: each[0].quorum)
    reason = _reason(rule, name, "holds this until it is approved")
    return Verdict(Outcome.HOLD, reason, rule.id, rule.quorum, rule.approvers)


def _is_approved(rule: PolicyRule, question: Question) -> bool:
    """By enough of those who may, each counted once."""
    who = {
        actor for actor, name, kind in question.approved if is_approver(rule.approvers, name, kind)
    }
    return len(who) >= rule.quorum


def _reason(rule: PolicyRule, name: str, otherwise: str) -> str:
    return f"{rule.reason or f'the rule {rule.id} {otherwise}'} (because of {name})"
