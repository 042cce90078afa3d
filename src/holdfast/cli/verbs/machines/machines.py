"""`hold machines`: the machines this user has joined."""

from __future__ import annotations

import time

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, utf8, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, table
from holdfast.model.errors import HoldfastError, InvalidArgument
from holdfast.sdk.reach import machines

SUMMARY = "list the machines you have joined, or forget one"


def parser() -> Parser:
    parser = verb_parser(
        "machines",
        "List the machines that were joined with `hold join`: whether each can be reached now, how "
        "many sessions it has, and through which relays. `forget` drops one from the list; what "
        "its host allows this device stays until it ends or is revoked there (`hold device`).",
        "  hold machines\n  hold machines forget build\n  hold --on build run -d make",
        MixedParser,
    )
    parser.add_argument("what", nargs="?", choices=("ls", "forget"), default="ls")
    parser.add_argument("machine", nargs="?", default="", type=utf8, metavar="NAME")
    parser.add_json()
    return parser


def run(options: Options) -> None:
    if options.what == "forget":
        if not options.machine:
            raise InvalidArgument("which machine?", hint="`hold machines forget NAME`")
        machines.forget(options.machine)
        return
    known = machines.machines()
    reached = _reached() if known else {}
    if options.json:
        rows = [
            {
                "name": each.name,
                "host": each.host,
                "relays": list(each.relays),
                "reached": isinstance(reached[each.name], int),
                "sessions": reached[each.name] if isinstance(reached[each.name], int) else None,
                "joined_at": each.joined_at,
            }
            for each in known
        ]
        print_json(rows)
        return
    if not known:
        print("no machines; `hold join LINK` adds one, which `hold up` prints there")
        return
    now = time.time()
    lines = []
    for each in known:
        found = reached[each.name]
        state = f"{found} session{'' if found == 1 else 's'}" if isinstance(found, int) else found
        lines.append(
            (each.name, sanitize(each.host), state, ago(now - each.joined_at), each.relays[0])
        )
    print(table(("NAME", "HOST", "STATE", "JOINED", "RELAY"), lines))


def _reached() -> dict[str, int | str]:
    """How many sessions each has, or why that is not known."""
    from holdfast.sdk.reach.all_machines import ask_all

    answers = ask_all(lambda host: len(host.sessions()), "hold machines")
    return {
        name: f"not reached: {found.message}" if isinstance(found, HoldfastError) else found
        for name, found in answers
    }
