"""`hold grant`: what an actor may do, and where."""

from __future__ import annotations

import time

from holdfast.cli.arguments import MixedParser, Parser, add_json, seconds, utf8, verb_parser
from holdfast.cli.scope_options import Named, add_scope, bounds_text, envelope_fields, rights_text
from holdfast.cli.scope_options import scope_text as _scope_text
from holdfast.cli.session_address import select_machine
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from holdfast.model.envelope import Envelope

SUMMARY = "set what an actor may do, where, and for how long"


def parser() -> Parser:
    parser = verb_parser(
        "grant",
        "Set what an actor may do in one session, in all with a label, or everywhere. It replaces "
        "what that actor was granted there before, and takes effect at once, also for connections "
        "that are open. "
        "The narrowest that fits a session counts alone: session, then label, then all. Roles: "
        "read, execute, approve, admin. Rights: observe input signal resize turn.request "
        "turn.grant seize halt approve fork checkpoint move grant end.",
        "  hold grant bot execute build                   in the session build\n"
        "  hold grant bot read --all\n"
        "  hold grant bot execute halt --label ci --expires 8h --inputs-per-s 5\n"
        "  hold grant --ls build                          who may do what in it",
        kind=MixedParser,
        usage="hold grant ACTOR ROLE-OR-RIGHT... (NAME | --label L | --all) [OPTIONS]\n"
        "       hold grant --ls [NAME]",
    )
    parser.add_argument("--ls", action="store_true", help="list what was granted instead")
    add_scope(parser)
    parser.add_argument("--expires", type=seconds, metavar="T", help="for so long (90s, 2m, 8h)")
    parser.add_argument("--inputs-per-s", type=float, metavar="N", help="at most so many inputs")
    parser.add_argument("--bytes-per-s", type=float, metavar="N", help="at most so many bytes")
    add_json(parser)
    parser.add_argument("actor", nargs="?", default="", type=utf8, metavar="ACTOR", help="to whom")
    parser.add_argument(
        "rights", nargs="*", type=utf8, metavar="RIGHT", help="roles and rights; then the session"
    )
    return parser


def run(options: argparse.Namespace) -> int:
    if options.ls:
        return _list(options)
    session = (
        ""
        if _beyond_one_session(options) or not options.rights
        else select_machine(options.rights.pop())
    )
    scope = _scope_text(options, session)
    if not (options.actor and options.rights and scope):
        raise InvalidArgument(
            "who may do what, and where?",
            hint="`hold grant ACTOR RIGHT... NAME`, or --label L or --all in place of NAME",
        )
    expires = None if options.expires is None else time.time() + options.expires
    with Host(client="hold grant") as host:
        request = access_messages.GrantEnvelope(
            0,
            options.actor,
            scope,
            tuple(options.rights),
            expires,
            options.inputs_per_s,
            options.bytes_per_s,
        )
        _say(host, host.ask(request, access_messages.Envelopes), options.json)
    return 0


def _beyond_one_session(options: argparse.Namespace) -> bool:
    return options.all or options.label is not None


def _say(host: Host, answer: access_messages.Envelopes, as_json: bool) -> None:
    (envelope,) = answer.envelopes
    name = answer.names.get(envelope.actor, envelope.actor)
    if as_json:
        import json

        print(json.dumps(envelope_fields(envelope, name), indent=1))
        return
    bounds = bounds_text(envelope, time.time())
    place = Named(host).place(envelope.scope)
    print(f"{name} has {rights_text(envelope)} in {place}{f'; {bounds}' if bounds else ''}")


def _list(options: argparse.Namespace) -> int:
    if options.rights or _beyond_one_session(options):
        raise InvalidArgument("--ls takes a session's name or nothing")
    session = select_machine(options.actor)
    with Host(client="hold grant") as host:
        answer = host.ask(access_messages.ListEnvelopes(0, session), access_messages.Envelopes)
        named = Named(host)
    if options.json:
        import json

        rows = [
            envelope_fields(each, answer.names.get(each.actor, "")) for each in answer.envelopes
        ]
        print(json.dumps(rows, indent=1))
        return 0
    from holdfast.cli.text.table import table

    rows_text = [_row(each, answer.names, named) for each in answer.envelopes]
    print(table(("ACTOR", "WHERE", "MAY", "BOUNDS"), rows_text))
    return 0


def _row(envelope: Envelope, names: dict[str, str], named: Named) -> tuple[str, ...]:
    return (
        names.get(envelope.actor, envelope.actor),
        named.place(envelope.scope),
        rights_text(envelope),
        bounds_text(envelope, time.time()) or "-",
    )
