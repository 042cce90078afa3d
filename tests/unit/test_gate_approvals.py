"""Who may approve what a policy holds, apart from the right to approve in its session."""

from __future__ import annotations

import pytest

from holdfast.core.gate.approvals import Approval
from holdfast.model.actor import ActorKind
from holdfast.model.gate import Contributor, Part
from holdfast.model.ids import ActorId

_BOT, _JONAS, _ANY = (ActorId(letter * 26) for letter in "abc")


def held(*approvers: str) -> Approval:
    """A line of a bot that uses what Jonas set."""
    behind = (
        Contributor(_BOT, "bot", ActorKind.AGENT, Part.TRIGGER),
        Contributor(_JONAS, "jonas", ActorKind.HUMAN, Part.STATE, "var:PATH"),
    )
    return Approval("1a2b3c4d", "line", "make", _BOT, behind, "", "host", 1, approvers, 0.0, 60.0)


@pytest.mark.parametrize(
    ("approvers", "name", "kind", "may"),
    [
        ((), "maria", ActorKind.HUMAN, True),
        ((), "other-bot", ActorKind.AGENT, True),
        (("human",), "maria", ActorKind.HUMAN, True),
        # Whoever approves from the phone is a person with a device.
        (("human",), "marias-phone", ActorKind.DEVICE, True),
        (("human",), "other-bot", ActorKind.AGENT, False),
        (("device",), "maria", ActorKind.HUMAN, False),
        (("carol",), "marias-phone", ActorKind.DEVICE, False),
        (("carol", "agent"), "carol", ActorKind.HUMAN, True),
    ],
)
def test_a_policy_names_approvers_by_name_or_kind_and_a_device_counts_as_a_person(
    approvers: tuple[str, ...], name: str, kind: ActorKind, may: bool
) -> None:
    assert held(*approvers).may_approve(_ANY, name, kind) is may


@pytest.mark.parametrize("actor", [_BOT, _JONAS])
def test_nobody_approves_what_they_had_a_part_in(actor: ActorId) -> None:
    assert held().may_approve(actor, actor, ActorKind.HUMAN) is False
