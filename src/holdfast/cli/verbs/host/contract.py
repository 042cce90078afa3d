"""`hold contract`: what this host promises, and what is left to the application."""

from __future__ import annotations

import textwrap

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.model.contract import CONTRACT, PromiseHere, on_host
from holdfast.sdk.client import Host

SUMMARY = "show what this host promises, and what is left to the application"

_WIDTH = 100


def parser() -> Parser:
    parser = verb_parser(
        "contract",
        "Show every promise of the contract by its id, and what it is worth on this host: held, "
        "not available at this level, or handed to the application. `hold doctor` says how to "
        "reach a higher level.",
        "  hold contract\n"
        "  hold contract --json | jq -r '.promises[] | select(.state != \"held\") | .id'",
    )
    parser.add_json()
    return parser


def run(options: Options) -> None:
    with Host(client="hold contract") as host:
        level = host.host().level
    here = [on_host(promise, level) for promise in CONTRACT]
    if options.json:
        print_json({"level": level.value, "promises": [each.pack() for each in here]})
        return
    print(f"this host gives level {level.value}")
    for each in here:
        print(*_lines(each), sep="\n")


def _lines(here: PromiseHere) -> list[str]:
    lines = [f"{here.id:<4} {here.state.value}", *_wrapped(here.promise)]
    if here.note:
        lines += _wrapped(f"here: {here.note}")
    if here.handed:
        lines += _wrapped(f"the application's: {here.handed}")
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * 5, subsequent_indent=" " * 7)
