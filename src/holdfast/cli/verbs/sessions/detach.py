"""`hold detach`: other terminals leave a session."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.table import counted
from holdfast.sdk.client import Host

SUMMARY = "detach the terminals that are attached to a session"


def parser() -> Parser:
    parser = verb_parser(
        "detach",
        "Detach the terminals that are attached to a session: your own, and with the right to "
        "seize also those of others. Nothing else changes: programs run on, and whoever was "
        "detached can come back. Browsers and programs that read the session stay. In an attached "
        "terminal C-\\ d detaches that one, C-\\ D all others.",
        "  hold detach build            every terminal\n"
        "  hold detach build --others   all but the one that was used last",
    )
    parser.add_flag("--others", help="leave the terminal attached that was used last")
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with Host(client="hold detach") as host:
        done = host.detach_terminals(options.session, others=options.others)
    if options.json:
        print_json({"detached": done.detached, "left": done.left})
        return
    left = f"; {done.left} still attached" if done.left else ""
    print(f"detached {counted(done.detached, 'terminal')} from {options.session}{left}")
