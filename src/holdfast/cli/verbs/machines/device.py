"""`hold device`: who came in by an invite, or with what somebody handed on."""

from __future__ import annotations

import time

from holdfast.cli.arguments import MixedParser, Parser, add_json, utf8, verb_parser
from holdfast.cli.scope_options import Named, role_or_rights
from holdfast.cli.text.table import ago, table
from holdfast.model.errors import InvalidArgument
from holdfast.sdk.client import Host
from holdfast.wire.messages import admission as ad

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from holdfast.model.admission import DeviceInfo

SUMMARY = "list devices that joined by an invite or a grant, or revoke one"


def parser() -> Parser:
    parser = verb_parser(
        "device",
        "`ls` lists devices that joined by an invite, or with a delegated grant: what each may "
        "do, where, since when, when it was last seen, and until when. `revoke` shuts one out, at "
        "once and for ever, with everything it handed on and every invite it made. Who handed "
        "something on can take that back the same way; the actor itself stays then.",
        "  hold device ls\n  hold device revoke phone",
        kind=MixedParser,
        usage="hold device ls | revoke NAME [OPTIONS]",
    )
    add_json(parser)
    parser.add_argument("action", choices=("ls", "revoke"), help="what to do")
    parser.add_argument("actor", nargs="?", default="", type=utf8, metavar="NAME", help="to whom")
    return parser


def run(options: argparse.Namespace) -> int:
    if (options.action == "revoke") is not bool(options.actor):
        raise InvalidArgument("write `hold device revoke NAME`, or `hold device ls`")
    with Host(client="hold device") as host:
        return (_revoke if options.action == "revoke" else _ls)(host, options)


def _ls(host: Host, options: argparse.Namespace) -> int:
    answer = host.ask(ad.ListDevices(0), ad.Devices)
    if options.json:
        _print_json([each.pack() for each in answer.devices])
        return 0
    named, now = Named(host), time.time()
    rows = [_row(each, answer.names, named, now) for each in answer.devices]
    print(table(("NAME", "ID", "MAY", "WHERE", "GIVEN BY", "SINCE", "SEEN", "UNTIL"), rows))
    return 0


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
        _until(device, now),
    )


def _until(device: DeviceInfo, now: float) -> str:
    if device.revoked_at is not None:
        return f"revoked {ago(now - device.revoked_at)} ago"
    left = device.until - now
    return f"{ago(left)} from now" if left > 0 else f"expired {ago(-left)} ago"


def _revoke(host: Host, options: argparse.Namespace) -> int:
    answer = host.ask(ad.RevokeDevice(0, options.actor), ad.Devices)
    if options.json:
        _print_json([each.pack() for each in answer.devices])
        return 0
    gone = list(dict.fromkeys(each.name or each.actor[:8] for each in answer.devices))
    print(f"{gone[0] if gone else options.actor}'s access is revoked")
    if len(gone) > 1:
        print(f"revoked with it, because they had it from there: {', '.join(gone[1:])}")
    return 0


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=1))
