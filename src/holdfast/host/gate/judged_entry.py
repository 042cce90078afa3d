"""An effect and its verdict, as the journal has them."""

from __future__ import annotations

import shlex

from holdfast.journal.entries import JudgedEntry
from holdfast.model.gate import EffectKind, ProposedEffect, Verdict

# A line is recorded whole: it is what was approved. A program's arguments may be megabytes.
_TEXT_KEPT_CHARS, _ARGV_KEPT_CHARS = 500, 4000
_TYPED = (EffectKind.LINE, EffectKind.INPUT)


def judged_entry(effect: ProposedEffect, verdict: Verdict, *, secret: bool = False) -> JudgedEntry:
    """`secret`: what was typed is kept nowhere."""
    text = effect.text or shlex.join(effect.argv) or effect.path
    return JudgedEntry(
        effect.kind,
        "" if secret else text if effect.kind in _TYPED else text[:_TEXT_KEPT_CHARS],
        verdict.outcome,
        verdict.reason,
        verdict.policy,
        effect.contributors,
        effect.text_known and not secret,
        effect.approved_by,
        argv=_kept(effect.argv),
        path=effect.path,
        cwd=effect.cwd,
    )


def _kept(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The first of them, as many as fit."""
    left = _ARGV_KEPT_CHARS
    for number, each in enumerate(argv):
        left -= len(each) + 1
        if left < 0:
            return argv[:number]
    return argv
