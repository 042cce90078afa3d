"""`hold delegate`: hand a part of one's own grant on, to an agent, for minutes.

It needs no host: the holder's key signs one more link, and the host judges the whole chain when it
is shown. Only a session given by its name is looked up.
"""

from __future__ import annotations

import os
import time

from holdfast.cli.arguments import Options, Parser, count, rate, seconds, utf8, verb_parser
from holdfast.cli.scope_options import role_or_rights, until_text
from holdfast.cli.text.table import ago
from holdfast.model.actor import check_name
from holdfast.model.envelope import ROLES
from holdfast.model.errors import InvalidArgument, StorageFailed
from holdfast.model.grant import Grant, GrantChain, Reach
from holdfast.model.ids import SessionId
from holdfast.sdk import identity

SUMMARY = "delegate part of your grant to an agent, for a short time"

_LASTS_S = 15 * 60.0
_KEY_DIGITS = 64


def parser() -> Parser:
    parser = verb_parser(
        "delegate",
        "Make a grant for another actor out of your own: no more than you have, and ending with "
        "it. Your own is HOLDFAST_GRANT, or what you got when you joined the machine (--on). The "
        "host need not be reached, and need not know the other: print what it gets, and give it to "
        "it as HOLDFAST_GRANT, together with its own key. When yours is revoked, so is this; `hold "
        "device revoke` takes back this one alone.",
        "  hold --on buildbox delegate bot --session build --role execute --for 15m\n"
        "  HOLDFAST_AS=bot HOLDFAST_GRANT=$(hold --as me delegate bot ...) hold ls\n"
        "  hold --as me delegate 9f...e1 --session build --role read --output bot.grant",
        usage="hold delegate ACTOR-KEY|NAME [--session S | --label L] --role ROLE [OPTIONS]",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--session", type=utf8, metavar="S", help="in this session only")
    where.add_argument("--label", type=utf8, metavar="L", help="in sessions with this label only")
    parser.add_argument("--role", choices=tuple(ROLES), required=True, help="what it may do")
    parser.add_value(
        "--for", "T", "for so long (default: 15m)", type=seconds, dest="lasts", default=_LASTS_S
    )
    parser.add_value(
        "--delegations",
        "N",
        "how often it may be handed on again (default: 0)",
        type=count,
        default=0,
    )
    parser.add_value("--inputs-per-s", "N", "at most so many inputs", type=rate)
    parser.add_value("--bytes-per-s", "N", "at most so many bytes", type=rate)
    parser.add_value("--output", "FILE", "write it to this file, readable for you alone")
    parser.add_json()
    parser.add_value("to", "ACTOR-KEY|NAME", "a public key, or whose key is here")
    return parser


def run(options: Options) -> None:
    from holdfast.wire.grants import chain_text, extend

    chain, holder = _own()
    grant = _grant(options, chain, holder)
    made = extend(chain, grant, holder.sign)
    text = chain_text(made)
    if options.output:
        _write(options.output, text)
    if options.json:
        _print_json(grant, text)
    elif options.output:
        print(_said(options, grant))
    else:
        print(text)


def _own() -> tuple[GrantChain, identity.Identity]:
    """What there is to hand on, and the key that does it."""
    from holdfast.wire.grants import decode_chain

    held, holder = identity.grant(), identity.chosen()
    if not held:
        from holdfast.sdk.reach import machines

        machine = machines.chosen()
        if machine is not None and machine.grant:
            held = identity.grant(machine.grant)
            holder = holder or identity.load(machine.identity)
    if not held or holder is None:
        raise InvalidArgument(
            "there is no grant of yours to hand on",
            hint="say the machine you joined (--on MACHINE), or set HOLDFAST_AS and "
            "HOLDFAST_GRANT; a unix user's own actor uses `hold grant ... --expires`",
        )
    chain = decode_chain(held)
    if chain.last.holder != holder.public:
        raise InvalidArgument(
            f"the grant is not {holder.name}'s", hint="act as the actor it was given to (--as)"
        )
    return chain, holder


def _grant(options: Options, chain: GrantChain, holder: identity.Identity) -> Grant:
    from holdfast.model.grant import SERIAL_BYTES, Grant

    own, now = chain.last, int(time.time())
    if own.expires <= now:
        raise InvalidArgument("your own grant has expired", hint="ask the issuer for a new one")
    expires = now + int(options.lasts)
    if expires > own.expires:
        raise InvalidArgument(
            f"your own grant ends in {ago(own.expires - now)}; what is handed on ends no later",
            hint="--for a shorter time",
        )
    return Grant(
        holder.public,
        _key(options.to),
        chain.links[-1].id,
        _reach(options, own.reach),
        tuple(sorted(str.__str__(right) for right in ROLES[options.role])),
        now,
        expires,
        os.urandom(SERIAL_BYTES),
        _rate(options.inputs_per_s, own.inputs_per_s),
        _rate(options.bytes_per_s, own.bytes_per_s),
        options.delegations,
    ).checked()


def _rate(asked: float | None, own: float | None) -> float | None:
    """As fast as one may oneself, unless something else was said."""
    return own if asked is None else asked


def _key(text: str) -> bytes:
    if len(text) == _KEY_DIGITS and set(text.lower()) <= set("0123456789abcdef"):
        return bytes.fromhex(text)
    return identity.load(text).public


def _reach(options: Options, own: Reach) -> Reach:
    step = ""
    if options.label is not None:
        step = f"label:{check_name(options.label, 'label')}"
    elif options.session:
        step = f"session:{_session(options.session)}"
    return own if not step or step in own.steps else own.within(step)


def _session(text: str) -> str:
    """An id is taken as it is, so that no host is needed."""
    try:
        return SessionId(text)
    except ValueError:
        from holdfast.sdk.client import Host

        with Host(client="hold delegate") as host:
            return host.show(text, exact=True).id


def _write(path: str, text: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(text + "\n")
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}") from error


def _said(options: Options, grant: Grant) -> str:
    where = "everywhere you may" if not grant.reach.steps else str(grant.reach)
    until = until_text(grant.expires, time.time())
    return f"{options.to[:40]} has {role_or_rights(grant.rights)} in {where}, {until}"


def _print_json(grant: Grant, text: str) -> None:
    import json

    fields = {
        "grant": text,
        "holder": grant.holder.hex(),
        "reach": str(grant.reach),
        "rights": list(grant.rights),
        "expires": grant.expires,
        "delegations": grant.delegations,
    }
    print(json.dumps(fields, indent=1))
