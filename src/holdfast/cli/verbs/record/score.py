"""`hold score`: how an actor's structured actions went."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, count, print_json, verb_parser
from holdfast.cli.text.action import score_text
from holdfast.sdk.client import Host
from holdfast.wire.messages.gate_actions import GetScore, ScoreShown

SUMMARY = "show how an actor's actions went, day by day"

_DAYS = 30


def parser() -> Parser:
    parser = verb_parser(
        "score",
        "Show how the structured actions (`hold submit`) of an actor went on this host: how many "
        "were valid, succeeded, and had no undeclared effect; each day, and in all. docs/agents.md "
        "has the formula. Policies can judge by the same numbers.",
        "  hold score otto\n  hold score otto --days 7 --json | jq .score",
    )
    parser.add_value("--days", "N", "so many days up to today (30)", type=count, default=_DAYS)
    parser.add_json()
    parser.add_value("actor", "ACTOR", "an actor's name or id")
    return parser


def run(options: Options) -> None:
    with Host(client="hold score") as host:
        score = host.ask(GetScore(0, options.actor, options.days), ScoreShown).score
    if options.json:
        print_json(score.pack())
    else:
        print(score_text(score))
