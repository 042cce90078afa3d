"""`hold actor`: the identities that may have a hand in sessions.

The private key of an actor made here is kept here, for `hold --as NAME`; the host gets the public
half and nothing else.
"""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import MixedParser, Parser, add_json, utf8, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, clock, table
from holdfast.model.actor import ActorKind, Colour, check_name
from holdfast.model.errors import HoldfastError, InvalidArgument, NoSuchActor
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import admission as ad

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from holdfast.cli.scope_options import Named
    from holdfast.model.actor import Actor
    from holdfast.model.admission import DeviceInfo
    from holdfast.sdk.identity import Identity

SUMMARY = "create, list, show and revoke actors"

_CARD_MAX_BYTES = 4096  # of what `export` prints
_KEY_DIGITS = 64


def parser() -> Parser:
    parser = verb_parser(
        "actor",
        "An actor is an identity with a key of its own: a human, an agent, a service or a device. "
        "`add` makes one that may do nothing yet (see `hold grant`); its private key stays here, "
        "and `hold --as NAME` acts as it. `ls` lists them, `show` shows one (default: "
        "yourself), `revoke` ends one at once and for ever, `export` prints what another host "
        "needs to know it: never the private key. `key` needs no host: it makes a key here, if "
        "there is none of that name, and prints the public half, for whoever is to admit it.",
        "  hold actor add bot --kind agent --colour cyan\n"
        "  hold grant bot execute build && hold --as bot send build --enter make\n"
        "  hold actor export bot | ssh there hold actor add bot --public-key -\n"
        "  hold actor revoke bot",
        kind=MixedParser,
        usage="hold actor add NAME [OPTIONS] | ls | show [NAME] | revoke NAME | export NAME | "
        "key NAME",
    )
    parser.add_argument("--kind", choices=list(ActorKind), help="default: agent")
    parser.add_argument("--display", type=utf8, metavar="TEXT", help="how it is shown to people")
    parser.add_argument("--colour", choices=list(Colour), help="default: chosen by its key")
    parser.add_argument(
        "--public-key",
        type=utf8,
        metavar="HEX",
        help="of an actor whose private key is on another machine; - reads what `export` printed",
    )
    add_json(parser)
    parser.add_argument("action", choices=(*_ACTIONS, "key"), help="what to do")
    parser.add_argument("actor", nargs="?", default="", type=utf8, metavar="NAME", help="of whom")
    return parser


def run(options: argparse.Namespace) -> int:
    _check(options)
    if options.action == "key":
        return _key_here(options)
    with Host(client="hold actor") as host:
        return _ACTIONS[options.action](host, options)


def _check(options: argparse.Namespace) -> None:
    if options.action != "add":
        given = (options.kind, options.display, options.colour, options.public_key)
        if any(value is not None for value in given):
            raise InvalidArgument(f"`hold actor {options.action}` takes no options but --json")
    if options.action == "ls" and options.actor:
        raise InvalidArgument("`hold actor ls` lists all", hint="`hold actor show NAME` shows one")
    if options.action in ("add", "revoke", "export", "key") and not options.actor:
        raise InvalidArgument(f"which actor? write `hold actor {options.action} NAME`")


# -- add --------------------------------------------------------------------------------------


def _add(host: Host, options: argparse.Namespace) -> int:
    name = check_name(options.actor, "actor")
    if options.public_key is not None:
        card = _card(options.public_key)
        shown = _register(host, options, name, _key(card.get("public_key")), card)
        return _added(shown.actor, "its private key is where it was made", options.json)
    from holdfast.sdk import identity

    own = _own_key(host, name)
    if own is not None:
        shown = _register(host, options, name, own.public, {})
        return _added(shown.actor, f"with the key in {identity.key_path(name)}", options.json)
    made = identity.make(name)
    shown = _register(host, options, name, made.public, {})
    try:
        path = identity.keep(made)
    except HoldfastError:
        # Nobody can ever act as it: take back what the host was told.
        host.ask(access_messages.RevokeActor(0, shown.actor.id), access_messages.ActorShown)
        raise
    return _added(shown.actor, f"its key is {path}", options.json)


def _own_key(host: Host, name: str) -> Identity | None:
    """A key of that name that is here already: made for another host, it is the same actor there
    and here. One that this host has revoked is replaced."""
    from holdfast.sdk import identity

    path = identity.key_path(name)
    if not os.path.exists(path):
        return None
    own = identity.load(name)
    try:
        known = host.ask(access_messages.ShowActor(0, own.actor), access_messages.ActorShown).actor
    except NoSuchActor:
        return own
    if known.revoked_at is None:
        raise InvalidArgument(f"there is already an actor {known.name!r}, with the key {path}")
    identity.set_aside(name)
    return None


def _register(
    host: Host, options: argparse.Namespace, name: str, key: bytes, card: dict[str, Any]
) -> access_messages.ActorShown:
    kind = options.kind or str(card.get("kind") or ActorKind.AGENT)
    display = options.display or str(card.get("display") or "")
    colour = options.colour or str(card.get("colour") or "")
    return host.ask(
        access_messages.AddActor(0, name, kind, key, display, colour), access_messages.ActorShown
    )


def _card(text: str) -> dict[str, Any]:
    """What `export` printed, from standard input; or a bare key."""
    if text != "-":
        return {"public_key": text}
    import json

    try:
        card = json.loads(sys.stdin.buffer.read(_CARD_MAX_BYTES))
    except ValueError:
        card = None
    if not isinstance(card, dict):
        raise InvalidArgument("standard input is not what `hold actor export` prints")
    return card


def _key(text: object) -> bytes:
    if isinstance(text, str) and len(text) == _KEY_DIGITS and text.isascii():
        try:
            return bytes.fromhex(text)
        except ValueError:
            pass
    raise InvalidArgument(
        f"not a public key: {str(text)[:80]!r}", hint=f"{_KEY_DIGITS} hexadecimal digits"
    )


def _added(actor: Actor, where: str, as_json: bool) -> int:
    if as_json:
        _print_json(_fields(actor))
    else:
        print(f"{actor.name} ({actor.kind}, {actor.id[:8]}) is known; {where}")
        print(f"it may do nothing yet: `hold grant {actor.name} execute NAME` lets it")
    return 0


def _key_here(options: argparse.Namespace) -> int:
    """The public key, for another host to add or a grant to name, before anybody knows of it."""
    from holdfast.sdk import identity

    name = check_name(options.actor, "actor")
    try:
        own = identity.load(name)
    except NoSuchActor:
        own = identity.make(name)
        identity.keep(own)
    if options.json:
        _print_json({"name": name, "id": own.actor, "public_key": own.public.hex()})
    else:
        print(own.public.hex())
    return 0


# -- the others -------------------------------------------------------------------------------


def _ls(host: Host, options: argparse.Namespace) -> int:
    actors = host.ask(access_messages.ListActors(0), access_messages.Actors).actors
    if options.json:
        _print_json([_fields(actor) for actor in actors])
        return 0
    print(table(("NAME", "ID", "KIND", "COLOUR", "SINCE", "SHOWN AS"), [_row(a) for a in actors]))
    return 0


def _row(actor: Actor) -> tuple[str, ...]:
    now = time.time()
    since = ago(now - actor.created_at) + " ago"
    if actor.revoked_at is not None:
        since = f"revoked {ago(now - actor.revoked_at)} ago"
    kind = f"{actor.kind}, local" if actor.local else str(actor.kind)
    return (actor.name, actor.id[:8], kind, str(actor.colour), since, sanitize(actor.display))


def _show(host: Host, options: argparse.Namespace) -> int:
    shown = host.ask(access_messages.ShowActor(0, options.actor), access_messages.ActorShown)
    actor = shown.actor
    came = host.ask(ad.ListDevices(0), ad.Devices)
    grants = [each for each in came.devices if each.actor == actor.id]
    from holdfast.cli.scope_options import Named, bounds_text, envelope_fields, rights_text

    if options.json:
        fields = [envelope_fields(each, actor.name) for each in shown.envelopes]
        came_with = [each.pack() for each in grants]
        _print_json({**_fields(actor), "envelopes": fields, "grants": came_with})
        return 0
    named, now = Named(host), time.time()
    local = ", the unix user's own" if actor.local else ""
    lines = [
        ("name", actor.name),
        ("id", actor.id),
        ("kind", f"{actor.kind}{local}"),
        ("shown as", f"{sanitize(actor.display)}, in {actor.colour}"),
        ("key", actor.key.hex()),
        ("since", f"{clock(actor.created_at)}, {ago(now - actor.created_at)} ago"),
    ]
    if actor.revoked_at is not None:
        lines.append(("revoked", f"{clock(actor.revoked_at)}, {ago(now - actor.revoked_at)} ago"))
    envelopes = () if actor.revoked_at is not None else shown.envelopes
    for each in envelopes:
        bounds = bounds_text(each, now)
        may = f"{rights_text(each)} in {named.place(each.scope)}"
        lines.append(("may", f"{may}; {bounds}" if bounds else may))
    lines += [("came with", _grant_text(each, came.names, named, now)) for each in grants]
    if not envelopes and not any(_is_valid(each, now) for each in grants):
        lines.append(("may", "nothing"))
    for name, value in lines:
        print(f"{name:<10}{value}")
    return 0


def _grant_text(grant: DeviceInfo, names: dict[str, str], named: Named, now: float) -> str:
    """One grant by which it came in: worth something while it shows it."""
    from holdfast.cli.scope_options import role_or_rights

    giver = names.get(grant.given_by, grant.given_by[:8] or "the host")
    if grant.revoked_at is not None:
        end = f"revoked {ago(now - grant.revoked_at)} ago"
    elif _is_valid(grant, now):
        end = f"until {clock(grant.until)}, {ago(grant.until - now)} from now"
    else:
        end = f"expired {ago(now - grant.until)} ago"
    may = f"{role_or_rights(grant.rights)} in {named.reach(grant.reach)}"
    return f"{may}; from {giver}{f', invite {grant.invite[:8]}' if grant.invite else ''}; {end}"


def _is_valid(grant: DeviceInfo, now: float) -> bool:
    return grant.revoked_at is None and now < grant.until


def _revoke(host: Host, options: argparse.Namespace) -> int:
    actor = host.ask(
        access_messages.RevokeActor(0, options.actor), access_messages.ActorShown
    ).actor
    if options.json:
        _print_json(_fields(actor))
    else:
        print(f"{actor.name} ({actor.id[:8]}) is revoked for good: it may do nothing")
    return 0


def _export(host: Host, options: argparse.Namespace) -> int:
    """As the host knows it, so that it can be exported where its private key is not."""
    actor = host.ask(access_messages.ShowActor(0, options.actor), access_messages.ActorShown).actor
    _print_json(
        {
            "name": actor.name,
            "id": actor.id,
            "kind": str(actor.kind),
            "display": actor.display,
            "colour": str(actor.colour),
            "public_key": actor.key.hex(),
        }
    )
    return 0


def _fields(actor: Actor) -> dict[str, Any]:
    return {**actor.pack(), "key": actor.key.hex()}


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=1))


_ACTIONS = {"add": _add, "ls": _ls, "show": _show, "revoke": _revoke, "export": _export}
