"""`hold sshd`: sessions for any ssh client, and whose ssh keys are let in."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import MixedParser, Parser, add_json, utf8, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, table
from holdfast.model.errors import InvalidArgument

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from holdfast.ssh.authorized import Authorized

SUMMARY = "run an ssh gateway to sessions, and choose which keys it admits"

_FINGERPRINT = "SHA256:"


def parser() -> Parser:
    parser = verb_parser(
        "sshd",
        "Run an ssh gateway until it is stopped: `ssh SESSION@gateway` attaches any ssh client "
        "to that session, `ssh SESSION@gateway -- CMD` runs like `hold exec`. An ssh key acts as "
        "one actor, whose own key must be on this machine: `authorize` lets a key in, `ls` lists "
        "those that are, `remove` puts one out, at once. End-to-end protection ends at the "
        "gateway: it can read and type. Run it on the host, or on your own machine, where nobody "
        "else's hands are. Sessions go on when it ends.",
        "  hold actor add phone --kind device && hold grant phone execute build\n"
        "  hold sshd authorize phone.pub --as phone\n"
        "  hold sshd --listen 0.0.0.0:7422     and on the phone: ssh build@HERE -p 7422\n"
        "  hold sshd remove SHA256:Vf0a...",
        kind=MixedParser,
        usage="hold sshd [--listen ADDRESS:PORT] | authorize KEYFILE --as ACTOR | ls | remove KEY",
    )
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="default 127.0.0.1:7422")
    parser.add_argument(
        "--as", dest="actor", type=utf8, metavar="ACTOR", help="authorize: whom the key acts as"
    )
    add_json(parser)
    parser.add_argument(
        "action", nargs="?", choices=("serve", *_ACTIONS), default="serve", help="default: serve"
    )
    parser.add_argument(
        "key",
        nargs="?",
        default="",
        type=utf8,
        metavar="KEY",
        help="a public key file, or - for standard input; remove: or a fingerprint",
    )
    return parser


def run(options: argparse.Namespace) -> int:
    _check(options)
    if options.action == "serve":
        return _serve(options)
    return _ACTIONS[options.action](options)


def _check(options: argparse.Namespace) -> None:
    action = options.action
    if action != "serve" and options.listen is not None:
        raise InvalidArgument("--listen is for running the gateway")
    if action != "authorize" and options.actor is not None:
        raise InvalidArgument(
            "--as is for `hold sshd authorize`", hint="a gateway acts as whoever connects to it"
        )
    if action == "serve" and options.json:
        raise InvalidArgument("a running gateway prints no JSON")
    if action in ("serve", "ls") and options.key:
        raise InvalidArgument(f"`hold sshd {action}` takes no key")
    if action in ("authorize", "remove") and not options.key:
        raise InvalidArgument(f"which key? write `hold sshd {action} KEY`")
    if action == "authorize" and not options.actor:
        raise InvalidArgument("whom does the key act as? add `--as ACTOR`")


def _serve(options: argparse.Namespace) -> int:
    words = ["--listen", options.listen] if options.listen is not None else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "holdfast.ssh", *words])


def _authorize(options: argparse.Namespace) -> int:
    from holdfast.ssh import authorized

    entry = authorized.authorize(authorized.read_key(options.key), options.actor, time.time())
    if options.json:
        _print_json(_fields(entry))
    else:
        print(f"{entry.fingerprint} is let in and acts as {entry.acting} ({entry.actor[:8]})")
    return 0


def _ls(options: argparse.Namespace) -> int:
    from holdfast.ssh import authorized

    entries = authorized.load()
    if options.json:
        _print_json([_fields(entry) for entry in entries])
        return 0
    print(table(("FINGERPRINT", "ACTS AS", "KEY", "SINCE", "COMMENT"), [_row(e) for e in entries]))
    return 0


def _row(entry: Authorized) -> tuple[str, ...]:
    since = ago(time.time() - entry.since) + " ago"
    acts = f"{sanitize(entry.acting)} ({entry.actor[:8]})"
    return (entry.fingerprint, acts, entry.kind, since, sanitize(entry.comment))


def _remove(options: argparse.Namespace) -> int:
    from holdfast.ssh import authorized

    key: str = options.key
    given = key if key.startswith(_FINGERPRINT) else authorized.read_key(key).fingerprint
    entry = authorized.remove(given)
    if options.json:
        _print_json(_fields(entry))
    else:
        print(f"{entry.fingerprint} is no longer admitted; its connections are closed")
    return 0


def _fields(entry: Authorized) -> dict[str, Any]:
    return {"fingerprint": entry.fingerprint, **entry.pack()}


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=1))


_ACTIONS = {"authorize": _authorize, "ls": _ls, "remove": _remove}
