"""`hold policy`: by which rules effects are judged before they commit."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.session_address import select_machine
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import clock
from holdfast.model.actor import ActorKind
from holdfast.model.errors import InvalidArgument
from holdfast.model.gate_policy import Explanation, JudgedLine, PolicyInfo
from holdfast.sdk.client import Host
from holdfast.wire.messages import gate_policy

SUMMARY = "set, show and try the rules by which lines are judged"

ACTIONS = ("show", "set", "check", "explain", "off")
_STARTER = "starter:"
_LINE_CHARS = 100
_SCOPED = ("set", "off")  # what takes --label and --floor
_LINES_MAX = 5000  # of one check, as the host allows


def parser() -> Parser:
    parser = verb_parser(
        "policy",
        "A policy says what is allowed, refused, or held until somebody approves it. It is judged "
        "before Enter reaches the shell, for everybody who had a part in the line. The policy of a "
        "session counts there, else those of its labels, else that of the host; the host's floor "
        "always counts, and nothing below can widen it.\n\n"
        "`show` prints those in force; `set` puts one in force: a file in TOML or Cedar, - for "
        "standard input, or a starter; `check` says what a policy would have done to the past "
        "lines of a session, or to the lines of standard input; "
        "`explain` says why a line was judged as "
        "it was: by the number of its entry in `hold log`; `off` takes one out of force.\n\n"
        "Starters: agents-observe, hold-destructive, agents-in-workspace, two-person PATTERN.",
        "  hold policy set starter:hold-destructive --label prod\n"
        "  hold policy set starter:two-person 'terraform apply' --session deploy\n"
        "  hold policy set rules.toml --floor\n"
        "  hold policy check rules.toml --session build --json\n"
        "  echo 'rm -rf /' | hold policy check starter:hold-destructive\n"
        "  hold policy explain build 412\n"
        "  hold policy off --label prod",
        kind=MixedParser,
        usage="hold policy show [NAME] |\n"
        "                   set FILE|starter:NAME [--session S | --label L | --floor] |\n"
        "                   check FILE|starter:NAME [--session S] | explain NAME SEQ |\n"
        "                   off [--session S | --label L | --floor]",
    )
    parser.add_value("--session", "S", "only of this session")
    parser.add_value("--label", "L", "only of sessions with this label")
    parser.add_flag("--floor", help="set, off: the floor of the whole host")
    parser.add_value(
        "--kind",
        "KIND",
        "check: what kind of actor the lines of standard input are judged for; default: agent",
        choices=list(map(str, ActorKind)),
        default="agent",
    )
    parser.add_json()
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="show", help="default: show")
    parser.add_value("words", "WORD", "a file, a starter, a session, a number", nargs="*")
    return parser


def run(options: Options) -> int:
    _check(options)
    match options.action:
        case "set":
            return _set(options)
        case "check":
            return _tried(options)
        case "explain":
            return _explained(options)
        case "off":
            return _off(options)
    return _show(options)


def _check(options: Options) -> None:
    action, words = options.action, options.words
    if action in ("set", "check") and words and words[0].startswith(_STARTER):
        words[:] = [" ".join(words)]  # a pattern need not be quoted
    wanted = {"show": (0, 1), "set": (1, 1), "check": (1, 1), "explain": (2, 2), "off": (0, 0)}
    few, many = wanted[action]
    if not few <= len(words) <= many:
        example = {"set": " FILE", "check": " FILE", "explain": " NAME SEQ", "show": " [NAME]"}
        raise InvalidArgument(
            f"it is `hold policy {action}{example.get(action, '')}`",
        )
    if (options.label is not None or options.floor) and action not in _SCOPED:
        raise InvalidArgument(f"`hold policy {action}` takes no --label and no --floor")
    if sum((options.label is not None, options.session is not None, options.floor)) > 1:
        raise InvalidArgument("one of --session, --label and --floor")
    if options.session is not None and action == "explain":
        raise InvalidArgument("`hold policy explain NAME SEQ` takes no --session")


# -- the actions ------------------------------------------------------------------------------


def _show(options: Options) -> int:
    name = select_machine(options.words[0]) if options.words else options.session or ""
    with Host(client="hold policy") as host:
        shown = host.ask(gate_policy.ShowPolicy(0, name), gate_policy.Policies)
    _print(shown, options, one_session=bool(name))
    return 0


def _set(options: Options) -> int:
    text, source, form = _given(options.words[0])
    with Host(client="hold policy") as host:
        shown = host.ask(
            gate_policy.SetPolicy(
                0, text, source, form, options.session or "", options.label or "", options.floor
            ),
            gate_policy.Policies,
        )
    if options.json:
        _print_json(shown)
        return 0
    print(f"in force for {_where(options)}: {sanitize(source)}")
    if shown.ungated:
        print(f"no exec gate, so only lines are judged there: {', '.join(shown.ungated)}")
    return 0


def _off(options: Options) -> int:
    with Host(client="hold policy") as host:
        shown = host.ask(
            gate_policy.EndPolicy(0, options.session or "", options.label or "", options.floor),
            gate_policy.Policies,
        )
    if options.json:
        _print_json(shown)
        return 0
    print(f"no longer in force for {_where(options)}")
    return 0


def _tried(options: Options) -> int:
    text, source, form = _given(options.words[0])
    session = options.session or ""
    lines = () if session else tuple(_stdin_lines(options.words[0]))
    cwd = "" if session or os.environ.get("HOLDFAST_ON") else os.getcwd()
    with Host(client="hold policy") as host:
        checked = host.ask(
            gate_policy.CheckPolicy(0, text, source, form, session, lines, cwd, options.kind),
            gate_policy.PolicyChecked,
        )
    if options.json:
        fields = checked.pack()
        fields.pop("id")
        print_json(fields)
        return 0
    rules = "1 rule" if checked.rules == 1 else f"{checked.rules} rules"
    print(f"valid: {rules}")
    if checked.judged or checked.skipped:
        skipped = (
            f"; {checked.skipped} that nobody typed were not judged" if checked.skipped else ""
        )
        print(
            f"{checked.judged} lines: {checked.refused} refused, {checked.held} held, "
            f"{checked.judged - checked.refused - checked.held} allowed{skipped}"
        )
    for each in checked.findings:
        print(_finding(each))
    return 0


def _explained(options: Options) -> int:
    name, number = select_machine(options.words[0]), options.words[1]
    if not number.isdecimal() or len(number) > 18:
        raise InvalidArgument(
            f"not a number of an entry: {number[:40]!r}", hint="`hold log NAME` lists them"
        )
    with Host(client="hold policy") as host:
        found = host.ask(
            gate_policy.ExplainPolicy(0, name, int(number)), gate_policy.PolicyExplained
        ).explanation
    if options.json:
        print_json(found.pack())
        return 0
    for name, value in _sheet(found):
        print(f"{name:<13}{value}")
    return 0


# -- what is given ----------------------------------------------------------------------------


def _given(word: str) -> tuple[str, str, str]:
    """Text, source and format."""
    if word.startswith(_STARTER):
        return "", word, ""
    try:
        if word == "-":
            text, source = sys.stdin.read(), "standard input"
        else:
            with open(word, encoding="utf-8") as file:
                text, source = file.read(), os.path.basename(word)
    except OSError as error:
        raise InvalidArgument(
            f"cannot read {word}: {error.strerror}", hint="a file, - or starter:NAME"
        ) from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{word} is not UTF-8") from None
    suffix = source.rpartition(".")[2]
    return text, source, suffix if suffix in ("toml", "cedar") else ""


def _stdin_lines(word: str) -> Iterator[str]:
    """The lines to judge, unless standard input is a terminal or the policy itself."""
    if word == "-" or sys.stdin.isatty():
        return
    for number, line in enumerate(sys.stdin):
        if number >= _LINES_MAX:
            raise InvalidArgument(f"at most {_LINES_MAX} lines are judged at once")
        if line.strip():
            yield line.rstrip("\n")


# -- what is printed --------------------------------------------------------------------------


def _where(options: Options) -> str:
    if options.session:
        return f"session {options.session}"
    if options.label:
        return f"label {options.label}"
    return "the whole host, as its floor" if options.floor else "the whole host"


def _print_json(shown: gate_policy.Policies) -> None:
    policies = [
        {**each.pack(), "set_by_name": shown.names.get(each.set_by, "")} for each in shown.policies
    ]
    print_json({"policies": policies, "damaged": shown.damaged})


def _print(shown: gate_policy.Policies, options: Options, *, one_session: bool) -> None:
    if options.json:
        _print_json(shown)
        return
    if shown.damaged:
        print(f"everything gated is refused: {sanitize(shown.damaged)}")
    if not shown.policies:
        print("no policy applies there" if one_session else "no policy is in force")
    for each in shown.policies:
        print(_heading(each, shown.names))
        if not each.counts:
            print("  (a narrower policy counts in this session instead)")
        for line in each.text.splitlines():
            print(f"  {sanitize(line)}".rstrip())


def _heading(policy: PolicyInfo, names: dict[str, str]) -> str:
    where = f"session {policy.session}" if policy.session else policy.scope.replace(":", " ", 1)
    where = "floor of the host" if policy.floor else where
    rules = "1 rule" if policy.rules == 1 else f"{policy.rules} rules"
    by = sanitize(names.get(policy.set_by, policy.set_by[:8]))
    return (
        f"{where}: {sanitize(policy.source)}, {rules}, {policy.format}, set by {by} at "
        f"{clock(policy.set_at)}"
    )


def _finding(line: JudgedLine) -> str:
    number = f"#{line.seq}  " if line.seq else ""
    word = f"held for {line.quorum}" if line.outcome == "hold" else "refused"
    text = sanitize(line.text, _LINE_CHARS)
    return f"{number}{word}  {text}\n    {sanitize(line.policy)}: {sanitize(line.reason)}"


def _sheet(found: Explanation) -> Iterator[tuple[str, str]]:
    yield "line", sanitize(found.text, 1000) or "(the shell did not say)"
    yield "entry", f"#{found.seq}, {found.kind}, {clock(found.at)}"
    for part in found.contributors:
        what = f" {sanitize(part.what)}" if part.what else ""
        command = f" (command #{part.command})" if part.command else ""
        yield "by", f"{sanitize(part.name)}, {part.kind}: {part.part}{what}{command}"
    if found.recorded:
        yield "decided", f"{found.recorded}: {sanitize(found.recorded_reason) or 'no rule'}"
        yield "rule", sanitize(found.recorded_policy) or "-"
    yield "now", found.outcome + (f": {sanitize(found.reason)}" if found.reason else "")
    if found.policy:
        yield "rule now", sanitize(found.policy)
    yield from _facts(found)


def _facts(found: Explanation) -> Iterator[tuple[str, str]]:
    facts = found.facts
    if not facts.parsed:
        yield "not read", sanitize(facts.problem)
    for name in ("dynamic", "opaque", "nested"):
        if getattr(facts, name):
            yield "is", name
    for name in ("commands", "destructive", "writes_outside", "hosts", "assigned", "functions"):
        if values := getattr(facts, name):
            yield name.replace("_outside", " outside"), sanitize(", ".join(values), 400)
    if facts.writes_unknown:
        yield "writes", "somewhere that is known only when it runs"
