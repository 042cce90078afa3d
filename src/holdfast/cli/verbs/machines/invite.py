"""`hold invite`: a link with which a device joins that the host does not know yet.

The code in the link is printed once and kept nowhere; the host has only a proof of it.
"""

from __future__ import annotations

import contextlib
import sys
import time

from holdfast.cli.arguments import (
    MixedParser,
    Options,
    Parser,
    count,
    print_json,
    rate,
    seconds,
    utf8,
    verb_parser,
)
from holdfast.cli.first_link import OWN_DEVICE, say_if_only_here
from holdfast.cli.scope_options import Named, role_or_rights, scope_text, until_text
from holdfast.cli.text.qr_code import print_code
from holdfast.cli.text.table import ago, lasting, table
from holdfast.cli.text.unrecorded import tell_revocation_unrecorded
from holdfast.model.admission import InviteInfo
from holdfast.model.envelope import ROLES
from holdfast.model.errors import InvalidArgument, NotPermitted
from holdfast.sdk.client import Host
from holdfast.sdk.reach.host_relays import wait_until_reached
from holdfast.wire.messages import admission as ad

SUMMARY = "create an invite link for another device"

_RELAY_S = 5.0  # for a host that was started a moment ago, and its relay with it
_EXPIRES_S = 8 * 3600.0
_LASTS_S = 30 * 86400.0
_DELEGATIONS = 1  # a person's device may hand on to its agents, and they to nobody


def parser() -> Parser:
    parser = verb_parser(
        "invite",
        "Make a link for a device that this host does not know: whoever opens it first, with `hold "
        "join` or in a browser, may do what its role says, where and for as long as you said. "
        "Nobody invites to more than it may do itself. The relay in the link never learns the "
        "code. `ls` lists invites that can be used (--ended: also the others), `revoke` takes one "
        "back; devices that joined by it stay, unless --devices is given.",
        "  hold invite --all --role admin     one more device of your own\n"
        "  hold invite --session build --role read\n"
        "  hold invite --label ci --role execute --uses 3 --for 7d\n"
        "  hold invite ls\n"
        "  hold invite revoke 3f9a --devices",
        kind=MixedParser,
        usage="hold invite (--session S | --label L | --all) --role ROLE [OPTIONS]\n"
        "       hold invite ls [--ended] | revoke ID [--devices]",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--session", type=utf8, metavar="S", help="to this session")
    where.add_argument(
        "--label", type=utf8, metavar="L", help="to every session with this label, now and later"
    )
    where.add_argument("--all", action="store_true", help="to every session, now and later")
    parser.add_argument("--role", choices=tuple(ROLES), help="the role granted to whoever joins")
    parser.add_value("--expires", "T", "how long the link is good (default: 8h)", type=seconds)
    parser.add_value("--uses", "N", "for so many devices (default: 1)", type=count)
    parser.add_value(
        "--for",
        "T",
        "how long a device may do so from when it joins (default: 30d)",
        type=seconds,
        dest="lasts",
    )
    parser.add_value(
        "--delegations",
        "N",
        "how often it may be handed on, as `hold delegate` does (default: 1)",
        type=count,
    )
    parser.add_value("--inputs-per-s", "N", "at most so many inputs", type=rate)
    parser.add_value("--bytes-per-s", "N", "at most so many bytes", type=rate)
    parser.add_flag("--no-qr", help="print no QR code")
    parser.add_flag("--ended", help="with ls: also those that ended")
    parser.add_flag("--devices", help="with revoke: also revoke the devices that joined by it")
    parser.add_json()
    parser.add_argument("action", nargs="?", choices=("ls", "revoke"), help="instead of making one")
    parser.add_value("invite", "ID", "which one", nargs="?", default="")
    return parser


def run(options: Options) -> None:
    _check(options)
    with Host(client="hold invite") as host:
        _ACTIONS[options.action](host, options)


_MAKING = ("session", "label", "role", "expires", "uses", "lasts", "delegations")
_RATES = ("inputs_per_s", "bytes_per_s")


def _check(options: Options) -> None:
    given = [name for name in (*_MAKING, *_RATES) if getattr(options, name) is not None]
    if options.action is None:
        if options.ended or options.devices:
            raise InvalidArgument("--ended is for `hold invite ls`, --devices for `revoke`")
        if not options.role or not scope_text(options, options.session or ""):
            raise InvalidArgument(
                "where to, and what for?",
                hint="one of --session S, --label L, --all; and --role read, execute, approve or "
                f"admin. For a device of your own: `{OWN_DEVICE}`",
            )
        return
    if given or options.all or options.no_qr:
        raise InvalidArgument(f"`hold invite {options.action}` makes no invite: too many options")
    if (options.action == "revoke") is not bool(options.invite):
        raise InvalidArgument("write `hold invite revoke ID`, or `hold invite ls`")
    if options.ended and options.action != "ls":
        raise InvalidArgument("--ended is for `hold invite ls`")
    if options.devices and options.action != "revoke":
        raise InvalidArgument("--devices is for `hold invite revoke`")


# -- making one -------------------------------------------------------------------------------


def _make(host: Host, options: Options) -> None:
    scope = scope_text(options, options.session or "")
    request = ad.MakeInvite(
        0,
        () if scope == "all" else (scope,),
        (options.role,),
        _EXPIRES_S if options.expires is None else options.expires,
        _LASTS_S if options.lasts is None else options.lasts,
        1 if options.uses is None else options.uses,
        _DELEGATIONS if options.delegations is None else options.delegations,
        options.inputs_per_s,
        options.bytes_per_s,
    )
    with contextlib.suppress(NotPermitted):  # to ask about relays; they may be there all the same
        wait_until_reached(host, _RELAY_S)
    made = host.ask(request, ad.InviteMade)
    if options.json:
        print_json({**made.invite.pack(), "link": made.link})
        return
    print(made.link)
    if sys.stdout.isatty() and not options.no_qr:
        print_code(made.link)
    _explain(host, made.invite)
    say_if_only_here(made.link)


def _explain(host: Host, invite: InviteInfo) -> None:
    now = time.time()
    who = "one device" if invite.uses == 1 else f"{invite.uses} devices"
    print(f"lets {who} in, {until_text(invite.expires_at, now)}")
    where = Named(host).reach(invite.reach)
    each = "" if invite.uses == 1 else " each"
    print(f"with {role_or_rights(invite.rights)} in {where}, for {lasting(invite.lasts_s)}{each}")
    print("the first to open this link joins: give it to nobody else")
    print(f"`hold invite revoke {invite.invite[:8]}` takes it back")


# -- the others -------------------------------------------------------------------------------


def _ls(host: Host, options: Options) -> None:
    answer = host.ask(ad.ListInvites(0), ad.Invites)
    now = time.time()
    found = [each for each in answer.invites if options.ended or not _ended(each, now)]
    if options.json:
        print_json([each.pack() for each in found])
        return
    named = Named(host)
    rows = [_row(each, answer.names, named, now) for each in found]
    print(table(("ID", "WHERE", "MAY", "USED", "BY", "LINK"), rows))


def _row(invite: InviteInfo, names: dict[str, str], named: Named, now: float) -> tuple[str, ...]:
    return (
        invite.invite[:8],
        named.reach(invite.reach),
        role_or_rights(invite.rights),
        f"{len(invite.joined)} of {invite.uses}",
        names.get(invite.created_by, invite.created_by[:8]),
        _ended(invite, now) or f"good for {ago(invite.expires_at - now)}",
    )


def _ended(invite: InviteInfo, now: float) -> str:
    """Why nobody can join with it; "": somebody may."""
    from holdfast.model.limits import INVITE_WRONG_MAX

    if invite.revoked_at is not None:
        return f"revoked {ago(now - invite.revoked_at)} ago"
    if invite.wrong_codes >= INVITE_WRONG_MAX:
        return "closed: too many wrong codes"
    if invite.expires_at <= now:
        return f"expired {ago(now - invite.expires_at)} ago"
    return "used" if len(invite.joined) >= invite.uses else ""


def _revoke(host: Host, options: Options) -> None:
    answer = host.ask(ad.RevokeInvite(0, options.invite, options.devices), ad.Invites)
    tell_revocation_unrecorded(answer.unrecorded)
    (invite,) = answer.invites
    if options.json:
        print_json({**invite.pack(), "unrecorded": answer.unrecorded})
        return
    print(f"the invite {invite.invite[:8]} is revoked")
    if invite.joined:
        came = ", ".join(answer.names.get(each, each[:8]) for each in invite.joined)
        what = "are revoked" if options.devices else "stay; --devices revokes them"
        print(f"devices that joined by it {what}: {came}")


_ACTIONS = {None: _make, "ls": _ls, "revoke": _revoke}
