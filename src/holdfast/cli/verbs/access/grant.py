"""`hold grant`: what an actor may do, and where."""

from __future__ import annotations

import sys
import time

from holdfast.cli.arguments import (
    MixedParser,
    Options,
    Parser,
    print_json,
    rate,
    seconds,
    verb_parser,
)
from holdfast.cli.scope_options import (
    Named,
    add_scope,
    bounds_text,
    envelope_fields,
    envelope_text,
    role_or_rights,
    scope_text,
)
from holdfast.cli.session_address import select_machine
from holdfast.cli.text.table import ago, table
from holdfast.cli.text.unrecorded import tell_revocation_unrecorded
from holdfast.model.envelope import Envelope
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages

_CLOCKS_DIFFER_S = 5  # less than that nobody plans by

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
    parser.add_flag("--ls", help="list what was granted instead")
    add_scope(parser)
    parser.add_value("--expires", "T", "for so long (90s, 2m, 8h)", type=seconds)
    parser.add_value("--inputs-per-s", "N", "at most so many inputs", type=rate)
    parser.add_value("--bytes-per-s", "N", "at most so many bytes", type=rate)
    parser.add_json()
    parser.add_value("actor", "ACTOR", "to whom", nargs="?", default="")
    parser.add_value("rights", "RIGHT", "roles and rights; then the session", nargs="*")
    return parser


def run(options: Options) -> None:
    if options.ls:
        _list(options)
        return
    session = ""
    if options.rights and not _beyond_one_session(options):
        session = select_machine(options.rights.pop())
    scope = scope_text(options, session)
    if not (options.actor and options.rights and scope):
        raise InvalidArgument(
            "who may do what, and where?",
            hint="`hold grant ACTOR RIGHT... NAME`, or --label L or --all in place of NAME",
        )
    # For a host that knows no `lasts_s`; others reckon by their own clock.
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
            options.expires,
        )
        _say(host, host.ask(request, access_messages.Envelopes), options.json)


def _beyond_one_session(options: Options) -> bool:
    return options.all or options.label is not None


def _say(host: Host, answer: access_messages.Envelopes, as_json: bool) -> None:
    tell_revocation_unrecorded(answer.unrecorded)
    (envelope,) = answer.envelopes
    name = answer.names.get(envelope.actor, envelope.actor)
    if as_json:
        print_json(envelope_fields(envelope, name))
        return
    print(f"{name} has {envelope_text(envelope, Named(host), envelope.granted_at)}")
    ahead = round(envelope.granted_at - time.time())
    if envelope.expires_at is not None and abs(ahead) > _CLOCKS_DIFFER_S:
        differs = f"{ago(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} yours"
        print(f"hold: by the host's clock, which is {differs}", file=sys.stderr)


def _list(options: Options) -> None:
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
        return
    now = answer.now or time.time()
    rows_text = [_row(each, answer.names, named, now) for each in answer.envelopes]
    print(table(("ACTOR", "WHERE", "MAY", "BOUNDS"), rows_text))


def _row(envelope: Envelope, names: dict[str, str], named: Named, now: float) -> tuple[str, ...]:
    return (
        names.get(envelope.actor, envelope.actor),
        named.place(envelope.scope),
        role_or_rights(envelope.rights),
        bounds_text(envelope, now) or "-",
    )
