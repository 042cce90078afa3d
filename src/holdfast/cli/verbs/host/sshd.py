"""`hold sshd`: sessions for any ssh client, and which ssh keys are admitted."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, table
from holdfast.model.errors import InvalidArgument
from holdfast.ssh import authorized

SUMMARY = "run an ssh gateway to sessions, and choose which keys it admits"

_FINGERPRINT = "SHA256:"


def parser() -> Parser:
    parser = verb_parser(
        "sshd",
        "Run an ssh gateway until it is stopped: `ssh SESSION@gateway` attaches any ssh client "
        "to that session, `ssh SESSION@gateway -- CMD` runs like `hold exec`. An ssh key acts as "
        "one actor, whose own key must be on this machine: `authorize` admits a key, `ls` lists "
        "the admitted ones, `remove` disconnects and refuses one at once. End-to-end protection "
        "ends at the gateway: it can read and type. Run it on the host, or on your own machine, "
        "where nobody else has access. Sessions go on when it ends.",
        "  hold actor add phone --kind device && hold grant phone execute build\n"
        "  hold sshd authorize phone.pub --as phone\n"
        "  hold sshd --listen 0.0.0.0:7422     and on the phone: ssh build@HERE -p 7422\n"
        "  hold sshd remove SHA256:Vf0a...",
        kind=MixedParser,
        usage="hold sshd [--listen ADDRESS:PORT] | authorize KEYFILE --as ACTOR | ls | remove KEY",
    )
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="default 127.0.0.1:7422")
    parser.add_value("--as", "ACTOR", "authorize: whom the key acts as", dest="actor")
    parser.add_json()
    parser.add_argument(
        "action", nargs="?", choices=tuple(_ACTIONS), default="serve", help="default: serve"
    )
    parser.add_value(
        "key",
        "KEY",
        "a public key file, or - for standard input; remove: or a fingerprint",
        nargs="?",
        default="",
    )
    return parser


def run(options: Options) -> None:
    _check(options)
    _ACTIONS[options.action](options)


def _check(options: Options) -> None:
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


def _serve(options: Options) -> None:
    words = ["--listen", options.listen] if options.listen is not None else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "holdfast.ssh", *words])


def _authorize(options: Options) -> None:
    entry = authorized.authorize(authorized.read_key(options.key), options.actor, time.time())
    if options.json:
        print_json(_fields(entry))
    else:
        print(f"{entry.fingerprint} is admitted and acts as {entry.acting} ({entry.actor[:8]})")


def _ls(options: Options) -> None:
    entries = authorized.load()
    if options.json:
        print_json([_fields(entry) for entry in entries])
        return
    print(table(("FINGERPRINT", "ACTS AS", "KEY", "SINCE", "COMMENT"), [_row(e) for e in entries]))


def _row(entry: authorized.Authorized) -> tuple[str, ...]:
    since = ago(time.time() - entry.since) + " ago"
    acts = f"{sanitize(entry.acting)} ({entry.actor[:8]})"
    return (entry.fingerprint, acts, entry.kind, since, sanitize(entry.comment))


def _remove(options: Options) -> None:
    key: str = options.key
    given = key if key.startswith(_FINGERPRINT) else authorized.read_key(key).fingerprint
    entry = authorized.remove(given)
    if options.json:
        print_json(_fields(entry))
    else:
        print(f"{entry.fingerprint} is no longer admitted; its connections are closed")


def _fields(entry: authorized.Authorized) -> dict[str, object]:
    return {"fingerprint": entry.fingerprint, **entry.pack()}


_ACTIONS = {"serve": _serve, "authorize": _authorize, "ls": _ls, "remove": _remove}
