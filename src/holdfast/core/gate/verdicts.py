"""Of several verdicts on one effect the strictest counts; of several policies, the narrowest."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model.gate import ALLOWED, Outcome, Verdict

_STRICTNESS = {Outcome.ALLOW: 0, Outcome.HOLD: 1, Outcome.REFUSE: 2}


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """The first of the strictest. Of several holds the one that needs most; the others are judged
    again when that one is approved."""
    found = ALLOWED
    for each in verdicts:
        wins = _STRICTNESS[each.outcome] - _STRICTNESS[found.outcome]
        if wins > 0 or (wins == 0 and each.outcome is Outcome.HOLD and each.quorum > found.quorum):
            found = each
    return found


def narrowest(scopes: Iterable[str]) -> tuple[str, ...]:
    """Of the scopes that apply, those that count: the session's own, else all of its labels, else
    the host's."""
    known = tuple(scopes)
    for prefix in ("session:", "label:", "host"):
        chosen = tuple(each for each in known if each.startswith(prefix))
        if chosen:
            return chosen
    return ()


def refusal_text(verdict: Verdict, what: str = "the policy refuses it") -> str:
    """What is said to whoever asked for the effect."""
    return f"{what}: {verdict.reason or 'it gives no reason'}"
