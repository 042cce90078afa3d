"""What each scenario of the gate is held against: it springs without a gate, it is refused with its
originator's name under a policy that says so, and it runs under one that allows it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from holdfast.model.errors import HoldfastError
from process.gate_policies import POLICIES
from process.gate_stage import AGENT, HUMAN, Scenario, Stage, Theatre, log

ALLOWING = "everything"


def springs_with_the_gate_off(theatre: Theatre, scenario: Scenario) -> None:
    with theatre.stage(scenario, gated=not scenario.closed) as stage:
        laid(stage, scenario)
        set_off(stage, scenario)
        assert stage.until(stage.sprung)


def is_refused_and_then_allowed(theatre: Theatre, scenario: Scenario) -> None:
    """Everything that is wrong is told at once: a hole in the gate, and what else it shows."""
    wrong: list[str] = []
    with theatre.stage(scenario) as stage:
        in_force(stage, ALLOWING)
        laid(stage, scenario)
        in_force(stage, scenario.policy)
        if not scenario.ambient and not scenario.restaged:
            wrong += innocent_is_refused(stage)
        begin = last_entry(stage)
        set_off(stage, scenario)
        stage.run(scenario.after, HUMAN)
        named = originators(stage, begin)
        denied(stage)
        if stage.sprung():
            wrong.append("the trap sprang")
        if AGENT not in named and not scenario.closed:
            wrong.append(f"its originator is not named, only {sorted(named)}")
        if scenario.why and AGENT not in why(stage, scenario.why):
            wrong.append(f"`hold why` names {sorted(why(stage, scenario.why))}")
        if not scenario.restaged:
            stage.reset()
            wrong += springs_when_allowed(stage, scenario)
    if scenario.restaged:
        with theatre.stage(scenario) as stage:
            in_force(stage, ALLOWING)
            laid(stage, scenario)
            wrong += springs_when_allowed(stage, scenario)
    assert not wrong, "; ".join(wrong)


def laid(stage: Stage, scenario: Scenario) -> None:
    stage.run(scenario.prepared, HUMAN)
    stage.run(scenario.staged, AGENT)
    assert not stage.refusals, stage.refusals
    assert not stage.sprung(), "it springs by itself"


def set_off(stage: Stage, scenario: Scenario) -> None:
    stage.run(scenario.triggered, HUMAN)
    stage.run(scenario.by_agent, AGENT)


def springs_when_allowed(stage: Stage, scenario: Scenario) -> list[str]:
    in_force(stage, ALLOWING)
    stage.run(scenario.instead or scenario.triggered, HUMAN)
    stage.run(scenario.by_agent, AGENT)
    stage.run(scenario.after, HUMAN)
    if scenario.closed:
        return ["what nobody may do was done"] if stage.sprung() else []
    if stage.refusals:
        return [f"refused under a policy that allows it: {stage.refusals}"]
    return [] if stage.until(stage.sprung) else ["it does not run under a policy that allows it"]


def innocent_is_refused(stage: Stage) -> list[str]:
    """Being foreign is not itself a refusal: what rob had no part in goes on."""
    with stage.acting(HUMAN) as session:
        session.submit(":", timeout=10)
    said = [str(each) for each in stage.refusals]
    stage.refusals.clear()
    return [f"an innocent line was refused: {each}" for each in said]


# -- what the product says --------------------------------------------------------------------


def in_force(stage: Stage, policy: str) -> None:
    source = POLICIES[policy]
    if not source.startswith("starter:"):
        suffix = "toml" if source.startswith("default") else "cedar"
        path = stage.theatre.base / f"{policy}.{suffix}"
        path.write_text(source)
        source = str(path)
    stage.theatre.hold.ok("policy", "set", source, "--session", stage.session)


def last_entry(stage: Stage) -> int:
    found: int = log(stage)[-1]["seq"]
    return found


def originators(stage: Stage, since: int) -> set[str]:
    """Everybody the product names where it refused or held something."""
    names = actor_names(stage)
    found: set[str] = {
        name for name in names.values() for each in stage.refusals if name in str(each)
    }
    for entry in log(stage, "--since", str(since + 1), "--kind", "judged"):
        if entry["body"]["outcome"] != "allow":
            found |= mentioned(entry["body"], names)
    for approval in approvals(stage):
        found |= mentioned(approval, names)
    return found


def mentioned(value: Any, names: dict[str, str]) -> set[str]:
    """Actors whose id or name stands in a field of its own."""
    if isinstance(value, dict):
        return set().union(*(mentioned(each, names) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(mentioned(each, names) for each in value))
    return {name for key, name in names.items() if value in (key, name)}


def actor_names(stage: Stage) -> dict[str, str]:
    return {each["id"]: each["name"] for each in stage.theatre.hold.json("actor", "ls")}


def why(stage: Stage, target: str) -> set[str]:
    done = stage.theatre.hold("why", stage.session, stage.fill(target), "--json")
    if done.returncode:
        return {done.stderr.strip()}
    return mentioned(json.loads(done.stdout)["originators"], actor_names(stage))


def approvals(stage: Stage) -> list[dict[str, Any]]:
    """Those of this session that wait for a decision."""
    found = stage.theatre.hold.json("approvals")
    here = [each for each in found if each["session"] == stage.session]
    return [each for each in here if each["status"] == "pending"]


def denied(stage: Stage) -> None:
    for approval in approvals(stage):
        with contextlib.suppress(HoldfastError):
            stage.theatre.hold("deny", approval["id"])
