"""`hold seize`: take the turn, whoever holds it."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.text import halt_receipt
from holdfast.sdk.client import Host
from holdfast.wire.messages import turn as turn_messages

SUMMARY = "take the turn now, and optionally halt what runs"


def parser() -> Parser:
    parser = verb_parser(
        "seize",
        "Take the turn now, whoever holds it and whatever the policy; it needs no cooperation. "
        "With --halt the whole tree is frozen too, and the kernel's word for that is waited for; "
        "with --only-actor, only what that actor started. Prints what was already committed: a "
        "seizure bounds what comes next, it undoes nothing. Fails with halt_failed when a halt "
        "was asked for and not confirmed.",
        '  hold seize build --halt --reason "it loops"\n'
        "  hold seize build --only-actor bot\n"
        "  hold seize build --halt --json | jq .frozen",
    )
    parser.add_flag("--halt", help="freeze the tree as well")
    parser.add_value("--only-actor", "X", "freeze only what X started", default="")
    parser.add_value("--reason", "R", "for the record", default="")
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with Host(client="hold seize") as host:
        request = turn_messages.Seize(
            0, options.session, options.halt, options.only_actor, options.reason
        )
        receipt = host.ask(request, turn_messages.Halted).receipt
        you = host.connection.actor
    halt_receipt.tell(receipt, options.session, you=you, seized=True, as_json=options.json)
