"""`hold actor`: the identities that may act in sessions.

The private key of an actor made here is kept here, for `hold --as NAME`; the host gets the public
half and nothing else.
"""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.scope_options import (
    Named,
    ended_text,
    envelope_fields,
    envelope_text,
    role_or_rights,
    until_text,
)
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, clock, table
from holdfast.cli.text.unrecorded import tell_revocation_unrecorded
from holdfast.model.actor import Actor, ActorKind, Colour, check_name
from holdfast.model.admission import DeviceInfo
from holdfast.model.errors import HoldfastError, InvalidArgument, NoSuchActor
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import admission as ad

SUMMARY = "create, list, show and revoke actors"

_CARD_MAX_BYTES = 4096  # of what `export` prints
_KEY_DIGITS = 64


def parser() -> Parser:
    parser = verb_parser(
        "actor",
        "An actor is an identity with a key of its own: a human, an agent, a service or a device. "
        "`add` makes one that may do nothing yet (see `hold grant`); its private key stays here, "
        "and `hold --as NAME` acts as it. `ls` lists them, `show` shows one (default: "
        "yourself), `revoke` ends one at once and forever, `export` prints what another host "
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
    parser.add_value("--display", "TEXT", "how it is shown to people")
    parser.add_argument("--colour", choices=list(Colour), help="default: chosen by its key")
    parser.add_value(
        "--public-key",
        "HEX",
        "of an actor whose private key is on another machine; - reads what `export` printed",
    )
    parser.add_json()
    parser.add_argument("action", choices=(*_ACTIONS, "key"), help="what to do")
    parser.add_value("actor", "NAME", "of whom", nargs="?", default="")
    return parser


def run(options: Options) -> None:
    _check(options)
    if options.action == "key":
        _key_here(options)
        return
    with Host(client="hold actor") as host:
        _ACTIONS[options.action](host, options)


def _check(options: Options) -> None:
    if options.action != "add":
        given = (options.kind, options.display, options.colour, options.public_key)
        if any(value is not None for value in given):
            raise InvalidArgument(f"`hold actor {options.action}` takes no options but --json")
    if options.action == "ls" and options.actor:
        raise InvalidArgument("`hold actor ls` lists all", hint="`hold actor show NAME` shows one")
    if options.action in ("add", "revoke", "export", "key") and not options.actor:
        raise InvalidArgument(f"which actor? write `hold actor {options.action} NAME`")


# -- add --------------------------------------------------------------------------------------


def _add(host: Host, options: Options) -> None:
    name = check_name(options.actor, "actor")
    if options.public_key is not None:
        card = _card(options.public_key)
        actor = _register(host, options, name, _key(card.get("public_key")), card)
        where = "its private key is where it was made"
    elif (own := _own_key(host, name)) is not None:
        actor = _register(host, options, name, own.public, {})
        where = f"with the key in {identity.key_path(name)}"
    else:
        made = identity.make(name)
        actor = _register(host, options, name, made.public, {})
        try:
            where = f"its key is {identity.keep(made)}"
        except HoldfastError:
            # Nobody can ever act as it: take back what the host was told.
            host.ask(access_messages.RevokeActor(0, actor.id), access_messages.ActorShown)
            raise
    if options.json:
        print_json(_fields(actor))
    else:
        print(f"{actor.name} ({actor.kind}, {actor.id[:8]}) is known; {where}")
        print(f"it may do nothing yet: `hold grant {actor.name} execute NAME` lets it")


def _own_key(host: Host, name: str) -> identity.Identity | None:
    """A key of that name that is here already: made for another host, it is the same actor there
    and here. One that this host has revoked is replaced."""
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
    host: Host, options: Options, name: str, key: bytes, card: dict[str, object]
) -> Actor:
    kind = options.kind or str(card.get("kind") or ActorKind.AGENT)
    display = options.display or str(card.get("display") or "")
    colour = options.colour or str(card.get("colour") or "")
    request = access_messages.AddActor(0, name, kind, key, display, colour)
    return host.ask(request, access_messages.ActorShown).actor


def _card(text: str) -> dict[str, object]:
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


def _key_here(options: Options) -> None:
    """The public key, for another host to add or a grant to name, before anybody knows of it."""
    name = check_name(options.actor, "actor")
    try:
        own = identity.load(name)
    except NoSuchActor:
        own = identity.make(name)
        identity.keep(own)
    if options.json:
        print_json({"name": name, "id": own.actor, "public_key": own.public.hex()})
    else:
        print(own.public.hex())


# -- the others -------------------------------------------------------------------------------


def _ls(host: Host, options: Options) -> None:
    actors = host.ask(access_messages.ListActors(0), access_messages.Actors).actors
    if options.json:
        print_json([_fields(actor) for actor in actors])
        return
    print(table(("NAME", "ID", "KIND", "COLOUR", "SINCE", "SHOWN AS"), [_row(a) for a in actors]))


def _row(actor: Actor) -> tuple[str, ...]:
    now = time.time()
    since = ago(now - actor.created_at) + " ago"
    if actor.revoked_at is not None:
        since = f"revoked {ago(now - actor.revoked_at)} ago"
    kind = f"{actor.kind}, local" if actor.local else str(actor.kind)
    return (actor.name, actor.id[:8], kind, str(actor.colour), since, sanitize(actor.display))


def _show(host: Host, options: Options) -> None:
    shown = host.ask(access_messages.ShowActor(0, options.actor), access_messages.ActorShown)
    actor = shown.actor
    came = host.ask(ad.ListDevices(0), ad.Devices)
    grants = [each for each in came.devices if each.actor == actor.id]
    if options.json:
        fields = [envelope_fields(each, actor.name) for each in shown.envelopes]
        came_with = [each.pack() for each in grants]
        print_json({**_fields(actor), "envelopes": fields, "grants": came_with})
        return
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
    lines += [("may", envelope_text(each, named, now)) for each in envelopes]
    lines += [("came with", _grant_text(each, came.names, named, now)) for each in grants]
    if not envelopes and all(ended_text(each.until, each.revoked_at, now) for each in grants):
        lines.append(("may", "nothing"))
    for name, value in lines:
        print(f"{name:<10}{value}")


def _grant_text(grant: DeviceInfo, names: dict[str, str], named: Named, now: float) -> str:
    """One grant it joined with; it counts while it is shown."""
    giver = names.get(grant.given_by, grant.given_by[:8] or "the host")
    end = ended_text(grant.until, grant.revoked_at, now) or until_text(grant.until, now)
    may = f"{role_or_rights(grant.rights)} in {named.reach(grant.reach)}"
    return f"{may}; from {giver}{f', invite {grant.invite[:8]}' if grant.invite else ''}; {end}"


def _revoke(host: Host, options: Options) -> None:
    answer = host.ask(access_messages.RevokeActor(0, options.actor), access_messages.ActorShown)
    tell_revocation_unrecorded(answer.unrecorded)
    actor = answer.actor
    if options.json:
        print_json({**_fields(actor), "unrecorded": answer.unrecorded})
    else:
        print(f"{actor.name} ({actor.id[:8]}) is revoked for good: it may do nothing")


def _export(host: Host, options: Options) -> None:
    """As the host knows it, so that it can be exported where its private key is not."""
    actor = host.ask(access_messages.ShowActor(0, options.actor), access_messages.ActorShown).actor
    print_json(
        {
            "name": actor.name,
            "id": actor.id,
            "kind": str(actor.kind),
            "display": actor.display,
            "colour": str(actor.colour),
            "public_key": actor.key.hex(),
        }
    )


def _fields(actor: Actor) -> dict[str, object]:
    return {**actor.pack(), "key": actor.key.hex()}


_ACTIONS = {"add": _add, "ls": _ls, "show": _show, "revoke": _revoke, "export": _export}
