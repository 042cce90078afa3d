"""`hold revoke`: leave an actor no rights in one place, or anywhere."""

from __future__ import annotations

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.scope_options import Named, add_scope, envelope_fields, scope_text
from holdfast.cli.text.unrecorded import tell_revocation_unrecorded
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages

SUMMARY = "take an actor's rights away, in one session or everywhere"


def parser() -> Parser:
    parser = verb_parser(
        "revoke",
        "Leave an actor nothing it may do in one session, in all with a label, or anywhere. At "
        "once: what it is attached to is closed, its turn moves on, its next input is refused. "
        "The identity stays; `hold actor revoke` ends that too.",
        "  hold revoke bot build\n  hold revoke bot --label prod\n  hold revoke bot --all",
        kind=MixedParser,
        usage="hold revoke ACTOR (NAME | --label L | --all) [OPTIONS]",
    )
    add_scope(parser)
    parser.add_json()
    parser.add_value("actor", "ACTOR", "from whom")
    parser.add_value("session", "NAME", "in this session", nargs="?", default="")
    return parser


def run(options: Options) -> None:
    scope = scope_text(options, options.session)
    if not scope or (options.session and not scope.startswith("session:")):
        raise InvalidArgument(
            f"where is {options.actor} to have no rights?",
            hint="one of a session's name, --label L, --all",
        )
    with Host(client="hold revoke") as host:
        answer = host.ask(
            access_messages.RevokeEnvelope(0, options.actor, scope), access_messages.Envelopes
        )
        tell_revocation_unrecorded(answer.unrecorded)
        (envelope,) = answer.envelopes
        name = answer.names.get(envelope.actor, envelope.actor)
        if options.json:
            print_json({**envelope_fields(envelope, name), "unrecorded": answer.unrecorded})
        else:
            print(f"{name} has no rights in {Named(host).place(envelope.scope)} now")
