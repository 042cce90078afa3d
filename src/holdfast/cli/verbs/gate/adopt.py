"""`hold adopt`: I answer for this from now on."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.provenance import render
from holdfast.sdk.client import Host
from holdfast.wire.messages import gate_provenance as messages

SUMMARY = "take responsibility for what others left"


def parser() -> Parser:
    parser = verb_parser(
        "adopt",
        "Take responsibility for something that others left: you become its originator, and what "
        "uses it has your authority instead of theirs. Look at it first. The record says who "
        "adopted it. TARGET as for `hold why`.",
        "  hold adopt build var:PATH\n  hold adopt build file:/tmp/deploy.sh",
    )
    parser.add_json()
    parser.add_session()
    parser.add_value("target", "TARGET", "what is asked about, as above")
    return parser


def run(options: Options) -> None:
    with Host(client="hold adopt") as host:
        request = messages.Adopt(0, options.session, options.target)
        why = host.ask(request, messages.WhyShown).why
    if options.json:
        print_json(why.pack())
    else:
        print(render(why), end="")
