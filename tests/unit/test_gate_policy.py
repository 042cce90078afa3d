"""Policies: what their rules say, what is refused as a policy, and what an error of one means."""

from __future__ import annotations

import pytest

from holdfast.adapters.cedar.engine import CedarPolicy
from holdfast.adapters.cedar.starters import NAMES, starter
from holdfast.adapters.cedar.toml_rules import to_cedar
from holdfast.core.gate.verdicts import narrowest, strictest
from holdfast.model.errors import PolicyInvalid
from holdfast.model.gate import ALLOWED, EffectKind, Outcome, Part, Verdict
from holdfast.model.gate_facts import Score
from unit.gating import asked, compiled, effect, part, started

BOT, BOT_STATE, ALICE = part("bot"), part("bot", Part.STATE), part("alice")
PERMIT = '@id("all") permit(principal, action, resource);\n'


def outcome(policy: CedarPolicy, text: str, *by: object, **more: object) -> Outcome:
    return asked(policy, effect(text, *by, **more)).outcome  # type: ignore[arg-type]


# -- starters -----------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_agents_observe_refuses_whatever_an_agent_had_a_part_in() -> None:
    policy = started("agents-observe")
    assert outcome(policy, "ls", ALICE) is Outcome.ALLOW
    assert outcome(policy, "ls", BOT) is Outcome.REFUSE
    for how in Part:
        assert outcome(policy, "ls", ALICE, part("bot", how)) is Outcome.REFUSE, how
    for kind in EffectKind:
        assert outcome(policy, "", BOT, kind=kind) is Outcome.REFUSE, kind
    said = asked(policy, effect("ls", ALICE, BOT_STATE))
    assert said.policy == "agents-observe" and "bot" in said.reason


@pytest.mark.requirement("A8")
def test_hold_destructive_holds_what_destroys_and_what_nobody_can_read() -> None:
    policy = started("hold-destructive")
    for line in ("rm -rf x", "bash -c 'rm x'", "$x", "eval $y", "if", "curl h | sh"):
        assert outcome(policy, line, BOT) is Outcome.HOLD, line
        assert outcome(policy, line, ALICE, BOT_STATE) is Outcome.HOLD, line
        assert outcome(policy, line, ALICE) is Outcome.ALLOW, line
    assert outcome(policy, "make test", BOT) is Outcome.ALLOW
    assert outcome(policy, "", BOT, text_known=False) is Outcome.HOLD
    assert outcome(policy, "DROP TABLE x", BOT, kind=EffectKind.INPUT) is Outcome.HOLD
    assert outcome(policy, "y", BOT, kind=EffectKind.INPUT) is Outcome.ALLOW
    assert (
        outcome(policy, "", BOT, kind=EffectKind.EXEC, argv=("rm", "-f", "a.o")) is Outcome.ALLOW
    ), "a build is not held at each file"
    assert outcome(policy, "", BOT, kind=EffectKind.EXEC, argv=("rm", "-rf", "/")) is Outcome.HOLD


@pytest.mark.requirement("A8")
def test_agents_in_workspace_lets_people_write_anywhere() -> None:
    policy = started("agents-in-workspace")
    for line in ("touch /etc/x", "cd ..; touch x", "echo x > $y", "$x", "python3 -c x"):
        assert outcome(policy, line, BOT) is Outcome.REFUSE, line
        assert outcome(policy, line, ALICE, BOT_STATE) is Outcome.REFUSE, line
        assert outcome(policy, line, ALICE) is Outcome.ALLOW, line
    assert outcome(policy, "touch x; cat /etc/passwd", BOT) is Outcome.ALLOW
    for kind in (EffectKind.WRITE_OPEN, EffectKind.UNLINK, EffectKind.RENAME):
        assert outcome(policy, "", BOT, kind=kind, path="/etc/x") is Outcome.REFUSE
        assert outcome(policy, "", BOT, kind=kind, path="/srv/work/x") is Outcome.ALLOW
        assert outcome(policy, "", BOT, kind=kind, path="/dev/null") is Outcome.ALLOW


@pytest.mark.requirement("A8")
def test_two_person_waits_for_another_person() -> None:
    policy = started("two-person terraform apply")
    line = "terraform apply -auto-approve"
    held = asked(policy, effect(line, ALICE))
    assert (held.outcome, held.quorum, held.approvers) == (Outcome.HOLD, 1, ("human",))
    assert outcome(policy, line, ALICE, approved=("bob",)) is Outcome.ALLOW
    assert outcome(policy, line, ALICE, approved=("bot",)) is Outcome.HOLD, "not a person"
    for sneaky in ("terraform $x", "t=terraform; $t apply", "sh -c 'terraform apply'", "!ter"):
        assert outcome(policy, sneaky, ALICE) is Outcome.HOLD, sneaky
    assert outcome(policy, "terraform plan", ALICE) is Outcome.ALLOW
    program = EffectKind.EXEC
    apply, other = ("terraform", "apply"), ("sh", "-c", "$x")
    assert outcome(policy, "", ALICE, kind=program, argv=apply) is Outcome.HOLD, "in a script"
    assert outcome(policy, "", ALICE, kind=program, argv=other) is Outcome.ALLOW
    assert started("two-person:terraform apply").patterns == policy.patterns
    assert outcome(started('two-person a "b" \\*'), "a '\"b\"' \\\\x", ALICE) is Outcome.HOLD


@pytest.mark.parametrize("name", ["", "no-such", "two-person", "two-person  ", "two-person \x1b"])
def test_a_starter_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(PolicyInvalid):
        started(name)


def test_every_starter_is_valid() -> None:
    for name in NAMES:
        assert CedarPolicy(to_cedar(starter(name))).rules > 1


def test_a_rule_may_ask_for_the_turn_the_epoch_and_the_environment() -> None:
    policy = CedarPolicy(
        """permit(principal, action, resource)
        when { context.turnHolder == context.actor && context.epoch > 1 &&
               !context.environment.contains("LD_PRELOAD") };"""
    )
    given = effect("ls", ALICE).replace(epoch=2, turn_holder=ALICE.actor)
    assert asked(policy, given).outcome is Outcome.ALLOW
    for other in (
        given.replace(turn_holder=BOT.actor),
        given.replace(epoch=1),
        given.replace(environment=("LD_PRELOAD=/tmp/x.so",)),
    ):
        assert asked(policy, other).outcome is Outcome.REFUSE


# -- Cedar --------------------------------------------------------------------------------------


def test_without_a_rule_that_permits_everything_is_refused() -> None:
    policy = CedarPolicy('permit(principal is Human, action == Action::"line", resource);')
    assert outcome(policy, "ls", ALICE) is Outcome.ALLOW
    assert outcome(policy, "ls", ALICE, BOT_STATE) is Outcome.REFUSE, "each must be permitted"
    assert outcome(policy, "", ALICE, kind=EffectKind.SIGNAL) is Outcome.REFUSE


@pytest.mark.requirement("A8")
def test_a_rule_that_fails_refuses_although_cedar_skips_it() -> None:
    """The sum overflows: Cedar leaves the forbid out, and its own decision is to allow."""
    forbids = PERMIT + (
        "forbid(principal, action, resource) "
        "when { context.score + 9223372036854775807 > context.actions };"
    )
    policy = CedarPolicy(forbids)
    assert asked(policy, effect("ls"), Score(0, 0)).outcome is Outcome.REFUSE
    failed = asked(policy, effect("ls"), Score(1, 0))
    assert failed.outcome is Outcome.REFUSE and failed.policy == "error"
    assert "overflow" in failed.reason
    held = CedarPolicy(forbids.replace("forbid", '@hold("") forbid'))
    assert asked(held, effect("ls"), Score(1, 0)).policy == "error", "a hold that fails, too"
    permits = CedarPolicy(forbids.replace("forbid", '@id("x") permit'))
    assert asked(permits, effect("ls"), Score(1, 0)).outcome is Outcome.REFUSE


@pytest.mark.requirement("A8")
def test_whatever_an_engine_raises_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    import cedarpy

    policy = CedarPolicy(PERMIT)

    def broken(*_: object) -> object:
        raise ValueError("broken")

    monkeypatch.setattr(cedarpy, "is_authorized_batch", broken)
    assert outcome(policy, "ls") is Outcome.REFUSE
    monkeypatch.setattr(cedarpy, "is_authorized_batch", lambda *_: [])
    assert outcome(policy, "ls") is Outcome.REFUSE


def test_a_refusal_beats_a_hold_and_approvals_lift_only_holds() -> None:
    policy = CedarPolicy(
        PERMIT + '@id("h") @hold("") @quorum("2") forbid(principal, action, resource) '
        'when { context.commands.contains("sudo") };\n'
        '@id("r") forbid(principal, action, resource) when { context.commands.contains("rm") };\n'
    )
    assert outcome(policy, "sudo ls", ALICE) is Outcome.HOLD
    assert outcome(policy, "sudo ls", ALICE, approved=("bob",)) is Outcome.HOLD
    assert outcome(policy, "sudo ls", ALICE, approved=("bob", "carol")) is Outcome.ALLOW
    assert outcome(policy, "sudo rm x", ALICE, approved=("bob", "carol")) is Outcome.REFUSE


def test_of_two_holds_the_one_that_is_left_is_asked_for_next() -> None:
    policy = CedarPolicy(
        PERMIT
        + '@id("one") @hold("") @approvers("bob") forbid(principal, action, resource);\n'
        + '@id("two") @hold("") @approvers("carol, bot") forbid(principal, action, resource);\n'
    )
    assert asked(policy, effect("ls")).outcome is Outcome.HOLD
    assert asked(policy, effect("ls", approved=("bob",))).policy == "two"
    assert asked(policy, effect("ls", approved=("carol",))).policy == "one"
    assert asked(policy, effect("ls", approved=("bob", "carol"))).outcome is Outcome.ALLOW


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "no rule"),
        ("// only words\n", 1, "no rule"),
        ("permit(principal, action, resource)", 1, "not a statement"),
        (f"{PERMIT}\n// x\n\nforbid(principal, action);", 5, "not a statement"),
        (f"{PERMIT}\nforbid(principal, action, resource) when {{ context.argvOs }};", 3, "argvOs"),
        ('permit(principal, action == Action::"lin", resource);', 1, "lin"),
        ("permit(principal is Robot, action, resource);", 1, "Robot"),
        ("permit(principal, action, resource) when { 1 };", 1, "Bool"),
        ("permit(principal == ?principal, action, resource);", 1, "template"),
        ('@qourum("2") permit(principal, action, resource);', 1, "@qourum"),
        ('@hold("") permit(principal, action, resource);', 1, "@hold"),
        ('@quorum("2") forbid(principal, action, resource);', 1, "@hold"),
        ('@hold("") @quorum("0") forbid(principal, action, resource);', 1, "quorum"),
        ('@hold("") @quorum("99") forbid(principal, action, resource);', 1, "quorum"),
        ('@id("a b") permit(principal, action, resource);', 1, "not an id"),
        ('@id("(otherwise)") permit(principal, action, resource);', 1, "not an id"),
        (PERMIT + PERMIT, 2, "already a rule 'all', in line 1"),
        ("((((((", 1, "not a statement"),
    ],
)
def test_a_bad_policy_is_refused_with_its_line_and_the_reason(
    text: str, line: int, why: str
) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        CedarPolicy(text)
    assert refused.value.message.startswith(f"line {line}: ") and why in refused.value.message


def test_semicolons_in_texts_and_comments_end_nothing() -> None:
    policy = CedarPolicy(
        '// a; "b\n@id("a") @reason("x; \\" // y")\nforbid(principal, action, resource)\n'
        'when { context.text == "a;\\"b" }; // c;\n' + PERMIT
    )
    assert policy.rules == 2
    assert outcome(policy, 'a;"b') is Outcome.REFUSE and outcome(policy, "a") is Outcome.ALLOW


# -- TOML ---------------------------------------------------------------------------------------


def test_toml_says_who_what_and_then() -> None:
    policy = compiled(
        """
        default = "refuse"
        [[rule]]
        name = "look"
        who = ["agent", "service"]
        commands = ["ls", "cat"]
        then = "allow"
        [[rule]]
        who = "human"
        then = "allow"
        [[rule]]
        name = "deploy"
        labels = ["prod"]
        lines = ["kubectl apply*"]
        quorum = 2
        then = "hold"
        """
    )
    assert outcome(policy, "ls", BOT) is Outcome.ALLOW
    assert outcome(policy, "make", BOT) is Outcome.REFUSE
    assert outcome(policy, "$x ls", BOT) is Outcome.REFUSE, "to be allowed it must be read"
    assert outcome(policy, "kubectl apply -f x", ALICE) is Outcome.ALLOW
    held = asked(policy, effect("kubectl apply -f x", ALICE, labels=("prod",)))
    assert (held.outcome, held.quorum, held.policy) == (Outcome.HOLD, 2, "deploy")


def test_toml_can_hold_whatever_it_does_not_allow() -> None:
    policy = compiled('default = "hold"\n[[rule]]\ncommands = "ls"\nthen = "allow"\n')
    assert outcome(policy, "ls") is Outcome.ALLOW
    assert outcome(policy, "make") is Outcome.HOLD
    assert outcome(policy, "make", approved=("bob",)) is Outcome.ALLOW


@pytest.mark.requirement("G5")
def test_a_rule_may_go_by_an_actors_record() -> None:
    policy = compiled(
        '[[rule]]\nwho = "agent"\nscore_below = 90\nthen = "hold"\n'
        '[[rule]]\nwho = "agent"\nscore_from = 90\nactions_from = 10\nthen = "allow"\n'
    )
    assert asked(policy, effect("ls", BOT)).outcome is Outcome.HOLD, "nothing is known of it"
    assert asked(policy, effect("ls", BOT), Score(95, 20)).outcome is Outcome.ALLOW
    assert asked(policy, effect("ls", BOT), Score(80, 20)).outcome is Outcome.HOLD


def test_a_rule_of_what_a_line_does_matches_one_that_could_not_be_read() -> None:
    rule = '[[rule]]\nnetwork = true\nthen = "refuse"\n'
    assert outcome(compiled(rule), "curl h/x") is Outcome.REFUSE
    assert outcome(compiled(rule), "$x") is Outcome.REFUSE
    assert outcome(compiled(f"{rule}unread = false\n"), "$x") is Outcome.ALLOW
    assert outcome(compiled(rule), "ls") is Outcome.ALLOW


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("x", 1, "not TOML"),
        ('default = "allow"\n= 1', 2, "not TOML"),
        ('defualt = "allow"', 1, "defualt"),
        ('default = "maybe"', 1, "default is"),
        ("rule = 1", 1, "[[rule]]"),
        ("\n[[rule]]\n", 2, "then is"),
        ('[[rule]]\nthen = "no"\n', 1, "then is"),
        ('[[rule]]\nthen = "allow"\n\n[[rule]]\nwho = "agnet"\nthen = "hold"', 4, "agnet"),
        ('[[rule]]\nthen = "hold"\nwhat = "lien"', 1, "lien"),
        ('[[rule]]\nthen = "hold"\ncomands = "ls"', 1, "comands"),
        ('[[rule]]\nthen = "hold"\ncommands = []', 1, "empty"),
        ('[[rule]]\nthen = "hold"\ncommands = [1]', 1, "list of texts"),
        ('[[rule]]\nthen = "hold"\ndestructive = "yes"', 1, "true or false"),
        ('[[rule]]\nthen = "hold"\nquorum = "2"', 1, "number"),
        ('[[rule]]\nthen = "refuse"\nquorum = 2', 1, "hold"),
        ('[[rule]]\nthen = "hold"\nname = "a.b"', 1, "name"),
        ('[[rule]]\nthen = "hold"\nscore_below = -1', 1, "number"),
    ],
)
def test_bad_toml_is_refused_with_its_line_and_the_reason(text: str, line: int, why: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        compiled(text)
    assert refused.value.message.startswith(f"line {line}: ") and why in refused.value.message


def test_texts_of_toml_become_texts_of_cedar_and_nothing_else() -> None:
    tricky = '"]) || true; // '
    policy = compiled(
        f"[[rule]]\nlines = '{tricky}'\nreason = '{tricky}'\nthen = \"refuse\"\nunread = false\n"
    )
    assert policy.patterns == (tricky,) and policy.rules == 2
    assert outcome(policy, "ls") is Outcome.ALLOW


# -- several ------------------------------------------------------------------------------------


def test_the_strictest_of_several_counts() -> None:
    refuse, hold, more = (
        Verdict(Outcome.REFUSE),
        Verdict(Outcome.HOLD, quorum=1),
        Verdict(Outcome.HOLD, quorum=2),
    )
    assert strictest([]) == ALLOWED and strictest([ALLOWED, hold]) == hold
    assert strictest([hold, refuse, more]) == refuse and strictest([hold, more, hold]) == more


def test_the_narrowest_scope_counts() -> None:
    assert narrowest(["host", "label:a", "label:b", "session:x"]) == ("session:x",)
    assert narrowest(["label:b", "host", "label:a"]) == ("label:b", "label:a")
    assert narrowest(["host"]) == ("host",) and narrowest([]) == ()
