"""`hold halt`: freeze a session's tree, leaving the turn where it is."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.text import halt_receipt
from holdfast.sdk.client import Host
from holdfast.wire.messages import turn as turn_messages

SUMMARY = "freeze everything in a session until it is resumed"


def parser() -> Parser:
    parser = verb_parser(
        "halt",
        "Freeze every process of the session, and return when the kernel says they are; no "
        "process can refuse. Input is refused meanwhile, not kept for later. A halt outlives the "
        "daemon. With --only-actor, only what that actor started is frozen (level contained and "
        "up). Fails with halt_failed when the kernel did not confirm it.",
        "  hold halt build\n  hold halt build --only-actor bot --reason 'runaway download'",
    )
    parser.add_value("--only-actor", "X", "freeze only what X started", default="")
    parser.add_value("--reason", "R", "for the record", default="")
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with Host(client="hold halt") as host:
        request = turn_messages.Halt(0, options.session, options.only_actor, options.reason)
        receipt = host.ask(request, turn_messages.Halted).receipt
        you = host.connection.actor
    halt_receipt.tell(receipt, options.session, you=you, seized=False, as_json=options.json)
