"""`hold device`: devices that joined by an invite or with a delegated grant."""

from __future__ import annotations

import time

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.scope_options import Named, ended_text, role_or_rights
from holdfast.cli.text.table import ago, table
from holdfast.cli.text.unrecorded import tell_revocation_unrecorded
from holdfast.model.admission import DeviceInfo
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import admission as ad

SUMMARY = "list devices that joined by an invite or a grant, or revoke one"


def parser() -> Parser:
    parser = verb_parser(
        "device",
        "`ls` lists devices that joined by an invite, or with a delegated grant: what each may "
        "do, where, since when, when it was last seen, and until when. `revoke` shuts one out, at "
        "once and forever, with everything it handed on and every invite it made. Who handed "
        "something on can take that back the same way; the actor itself stays then.",
        "  hold device ls\n  hold device revoke phone",
        kind=MixedParser,
        usage="hold device ls | revoke NAME [OPTIONS]",
    )
    parser.add_json()
    parser.add_argument("action", choices=("ls", "revoke"), help="what to do")
    parser.add_value("actor", "NAME", "to whom", nargs="?", default="")
    return parser


def run(options: Options) -> None:
    if (options.action == "revoke") is not bool(options.actor):
        raise InvalidArgument("write `hold device revoke NAME`, or `hold device ls`")
    with Host(client="hold device") as host:
        (_revoke if options.action == "revoke" else _ls)(host, options)


def _ls(host: Host, options: Options) -> None:
    answer = host.ask(ad.ListDevices(0), ad.Devices)
    if options.json:
        print_json([each.pack() for each in answer.devices])
        return
    named, now = Named(host), time.time()
    rows = [_row(each, answer.names, named, now) for each in answer.devices]
    print(table(("NAME", "ID", "MAY", "WHERE", "GIVEN BY", "SINCE", "SEEN", "UNTIL"), rows))


def _row(device: DeviceInfo, names: dict[str, str], named: Named, now: float) -> tuple[str, ...]:
    giver = names.get(device.given_by, device.given_by[:8] or "the host")
    return (
        device.name or device.actor[:8],
        device.actor[:8],
        role_or_rights(device.rights),
        named.reach(device.reach),
        f"{giver}, invite {device.invite[:8]}" if device.invite else giver,
        f"{ago(now - device.came_at)} ago",
        "now" if device.here else f"{ago(now - device.seen_at)} ago",
        ended_text(device.until, device.revoked_at, now) or f"{ago(device.until - now)} from now",
    )


def _revoke(host: Host, options: Options) -> None:
    answer = host.ask(ad.RevokeDevice(0, options.actor), ad.Devices)
    tell_revocation_unrecorded(answer.unrecorded)
    if options.json:
        print_json([each.pack() for each in answer.devices])
        return
    gone = list(dict.fromkeys(each.name or each.actor[:8] for each in answer.devices))
    print(f"{gone[0] if gone else options.actor}'s access is revoked")
    if len(gone) > 1:
        print(f"revoked with it, because they had it from there: {', '.join(gone[1:])}")
