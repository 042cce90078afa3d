"""Who may set a policy and see it, and what nobody starts without the right to change it."""

from __future__ import annotations

import pytest

from holdfast.core.access import policy_rules
from holdfast.core.access.authority import Authority
from holdfast.core.access.envelope_book import Live
from holdfast.model.actor import Actor
from holdfast.model.envelope import ALL, Envelope, Right, Scope
from holdfast.model.errors import NotPermitted
from holdfast.model.ids import HOST_ACTOR
from unit.granting import ADA, AGENT, NOW, OTHER, SESSION

HOST_UID = 990
LIVE: list[Live] = [(SESSION, ("prod",), 1000), (OTHER, (), 1000)]


def authority(*rights: Right, scope: Scope = ALL) -> tuple[Authority, Actor]:
    actor = Actor.of(AGENT.key, "bot", "agent", uid=1000, created_at=0.0)
    envelope = Envelope(actor.id, scope, rights, granted_by=HOST_ACTOR)
    return Authority([actor], [envelope]), actor


@pytest.mark.parametrize(
    ("set_by", "session_of", "applies"),
    [
        (1000, 1000, True),
        (1000, 1001, False),
        (0, 1001, True),
        (HOST_UID, 1001, True),
        (1000, None, True),  # a session that is not known is not let out of a policy's reach
    ],
)
def test_a_label_policy_applies_to_the_sessions_of_whoever_set_it(
    set_by: int, session_of: int | None, applies: bool
) -> None:
    assert policy_rules.label_reaches(set_by, session_of, HOST_UID) is applies


def test_a_policy_for_a_label_is_seen_by_its_user_and_root() -> None:
    for uid, sees in ((1000, True), (1001, False), (0, True)):
        asker = Actor.of(ADA.key, "ada", "human", uid=uid, created_at=0.0)
        assert policy_rules.may_see_label_policy(asker, 1000) is sees


def test_setting_a_policy_takes_the_right_to_grant_throughout_its_scope() -> None:
    granting, bot = authority(Right.OBSERVE, Right.GRANT, scope=Scope.session(SESSION))
    policy_rules.check_for_session(granting, bot, SESSION, ("prod",), NOW)
    with pytest.raises(NotPermitted):
        policy_rules.check_for_session(granting, bot, OTHER, (), NOW)
    with pytest.raises(NotPermitted):
        policy_rules.check_for_label(granting, bot, Scope.label("prod"), NOW, LIVE)
    granting, bot = authority(Right.OBSERVE, Right.GRANT, scope=Scope.label("prod"))
    policy_rules.check_for_label(granting, bot, Scope.label("prod"), NOW, LIVE)
    with pytest.raises(NotPermitted):
        policy_rules.check_for_host(granting, bot, 1000, HOST_UID, NOW)


@pytest.mark.parametrize(
    ("gated", "stays_inside", "hint"),
    [(False, True, "--gate off"), (True, False, "--workspace")],
)
def test_nobody_starts_what_a_policy_would_not_reach_without_the_right_to_change_it(
    gated: bool, stays_inside: bool, hint: str
) -> None:
    def start(rights: tuple[Right, ...], *, gated: bool, stays_inside: bool) -> None:
        known, bot = authority(*rights)
        policy_rules.check_may_start(
            known, bot, SESSION, (), NOW, gated=gated, stays_inside=stays_inside
        )

    start((Right.OBSERVE, Right.INPUT), gated=True, stays_inside=True)
    start((Right.OBSERVE, Right.GRANT), gated=gated, stays_inside=stays_inside)
    with pytest.raises(NotPermitted) as refused:
        start((Right.OBSERVE, Right.INPUT), gated=gated, stays_inside=stays_inside)
    assert hint in refused.value.hint
