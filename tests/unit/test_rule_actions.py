"""Which kinds of effect a policy has anything to say of, so that it need not be asked of others."""

from __future__ import annotations

import pytest

from holdfast.host.gate.policy_source import prepare, read
from holdfast.model.gate import EffectKind

PERMIT = "permit(principal, action, resource);"
ALL = set(EffectKind)
LINES = {EffectKind.LINE, EffectKind.INPUT}


def concerned(text: str, source: str = "test") -> set[EffectKind]:
    policy = prepare(read(text, source, "" if source.startswith("starter:") else "cedar"))
    return {kind for kind in EffectKind if policy.concerns(kind)}


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (PERMIT, set()),
        ('permit(principal, action == Action::"exec", resource);', ALL - {EffectKind.EXEC}),
        (f"{PERMIT} forbid(principal, action, resource);", ALL),
        (f'{PERMIT} forbid(principal, action == Action::"exec", resource);', {EffectKind.EXEC}),
        (
            f'{PERMIT} forbid(principal, action in [Action::"line", Action::"input"], resource);',
            LINES,
        ),
        (
            f'{PERMIT} forbid(principal, action, resource) when {{ action == Action::"exec" && '
            'principal.name == "x" };',
            {EffectKind.EXEC},
        ),
        (
            f'{PERMIT} forbid(principal, action, resource) when {{ action == Action::"exec" || '
            'principal.name == "x" };',
            ALL,
        ),
        (
            f"{PERMIT} forbid(principal, action, resource) unless {{ action in "
            '[Action::"exec", Action::"write-open"] };',
            ALL - {EffectKind.EXEC, EffectKind.WRITE_OPEN},
        ),
        (
            f'{PERMIT} forbid(principal, action, resource) when {{ !(action == Action::"exec") }};',
            ALL - {EffectKind.EXEC},
        ),
        (
            'permit(principal, action, resource) when { principal.name == "x" || '
            'action == Action::"line" };',
            ALL - {EffectKind.LINE},
        ),
    ],
)
def test_what_depends_on_nothing_but_the_action_is_known(text: str, kinds: set[EffectKind]) -> None:
    assert concerned(text) == kinds


def test_the_starters_concern_programs_where_they_name_them() -> None:
    assert concerned("", "starter:two-person rm*") == LINES | {EffectKind.EXEC}
    assert concerned("", "starter:agents-observe") == ALL
    assert concerned("", "starter:hold-destructive") == LINES | {EffectKind.EXEC}
    workspace = concerned("", "starter:agents-in-workspace")
    assert workspace >= LINES | {EffectKind.EXEC, EffectKind.WRITE_OPEN}
