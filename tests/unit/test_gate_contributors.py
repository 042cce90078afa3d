"""How the gate names who is behind an effect: now, and again from a journal."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.host.gate import past_lines
from holdfast.host.gate.judged_entry import judged_entry
from holdfast.host.gate.past_lines import PastSession
from holdfast.host.gate.session_gate import SessionGate
from holdfast.journal.entries import CommandBegan, Entry, JudgedEntry
from holdfast.model.actor import ActorKind
from holdfast.model.errors import GateRefused
from holdfast.model.gate import Contributor, EffectKind, Outcome, Part, ProposedEffect, Verdict
from holdfast.model.ids import ActorId
from unit.gating import ACTORS, SESSION, actor_of, asked, effect, part, started

ALICE, BOT = ACTORS["alice"].id, ACTORS["bot"].id
GONE = ActorId.of_key(b"g" * 32)  # no host knows it
PAST = PastSession(SESSION, "work", (), "plain", 1, "/srv/work", "/srv/work")


class AgentsObserve:
    """A host's judge whose policy refuses whatever an agent had a part in."""

    async def judge(self, proposed: ProposedEffect) -> Verdict:
        return asked(started("agents-observe"), proposed)


def gate(recorded: list[JudgedEntry]) -> SessionGate:
    """One that has what judging a signal takes."""
    core = SimpleNamespace(
        inputs=SimpleNamespace(policy_in_force=True), check_right=lambda *_: None
    )
    record = SimpleNamespace(
        record=lambda _, body: recorded.append(body),
        record_best_effort=lambda _, body: recorded.append(body),
    )
    provenance = SimpleNamespace(check=lambda _: None)

    def facts(
        kind: EffectKind, actor: ActorId, contributors: tuple[Contributor, ...]
    ) -> ProposedEffect:
        return effect("", *contributors, kind=kind)

    nothing: Any = None
    return SessionGate(
        cast(Any, core),
        nothing,
        cast(Any, record),
        actor_of,
        cast(Any, AgentsObserve()),
        cast(Any, provenance),
        -1,
        facts=facts,
        offset=nothing,
        activity=nothing,
        handle=nothing,
        save=nothing,
        type_as_host=nothing,
        spawn=nothing,
    )


def test_an_actor_that_is_not_known_any_longer_counts_as_an_agent_at_the_gate() -> None:
    recorded: list[JudgedEntry] = []
    asyncio.run(gate(recorded).check(EffectKind.SIGNAL, ALICE, "INT"))
    with pytest.raises(GateRefused):
        asyncio.run(gate(recorded).check(EffectKind.SIGNAL, GONE, "INT"))
    assert [each.contributors[0].kind for each in recorded] == [ActorKind.HUMAN, ActorKind.AGENT]
    assert recorded[1].outcome == Outcome.REFUSE


def began(authors: tuple[ActorId, ...], originators: tuple[ActorId, ...]) -> Entry:
    body = CommandBegan(1, "deploy", "/srv", 0, authors, originators, ("var:PATH@3",))
    return Entry(5, 1.0, 1, authors[-1], 1, body, b"")


def test_whoever_shaped_the_state_that_a_past_command_used_had_a_part_in_it() -> None:
    entry = began((ALICE,), (ALICE, BOT))
    assert isinstance(entry.body, CommandBegan)
    found = past_lines.command(entry, entry.body, PAST, actor_of)
    assert found is not None
    assert [(each.name, each.part) for each in found.effect.contributors] == [
        ("alice", Part.TRIGGER),
        ("bot", Part.STATE),
    ]
    assert found.effect.cwd == "/srv"
    assert asked(started("agents-observe"), found.effect).outcome is Outcome.REFUSE


def test_an_effect_comes_back_from_the_journal_with_all_that_it_was_judged_by() -> None:
    proposed = effect("rm -rf x", part("bot"), cwd="/srv/work/sub").replace(
        kind=EffectKind.EXEC, argv=("rm", "-rf", "x"), path="/bin/rm"
    )
    verdict = asked(started("hold-destructive"), proposed)
    again = past_lines.judged(judged_entry(proposed, verdict), PAST)
    assert verdict.outcome is Outcome.HOLD
    assert (again.argv, again.path, again.cwd) == (proposed.argv, "/bin/rm", "/srv/work/sub")
    assert asked(started("hold-destructive"), again) == verdict
