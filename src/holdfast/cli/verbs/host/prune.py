"""`hold prune`: remove from disk what ended long ago."""

from __future__ import annotations

import time

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.table import ago, amount, counted, table
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m

SUMMARY = "remove from disk the sessions that ended long ago"


def parser() -> Parser:
    parser = verb_parser(
        "prune",
        "Remove journal and output of ended sessions from disk, as retention_days and "
        "retention_bytes in config.toml say. The host does this by itself once an hour. Each "
        "session leaves a signed statement, which `hold show` and `hold verify` report. Live "
        "sessions stay, and so do lost ones that nobody has acknowledged.",
        "  hold prune --dry-run      what would be removed, and how much that frees\n"
        "  hold prune --json | jq .bytes",
    )
    parser.add_flag("--dry-run", help="remove nothing; say what would be removed")
    parser.add_json()
    return parser


def run(options: Options) -> None:
    with Host(client="hold prune") as host:
        sessions = host.ask(m.Prune(0, options.dry_run), m.Pruned).sessions
    freed = sum(each.bytes for each in sessions)
    if options.json:
        rows = [each.pack() for each in sessions]
        print_json({"dry_run": options.dry_run, "bytes": freed, "sessions": rows})
        return
    if not sessions:
        print("nothing to prune")
        return
    now = time.time()
    rows_text = [
        (each.name, each.id[:8], f"{ago(now - each.ended_at)} ago", amount(each.bytes), each.why)
        for each in sessions
    ]
    print(table(("NAME", "ID", "ENDED", "SIZE", "WHY"), rows_text))
    done = "that would free" if options.dry_run else "that freed"
    print(f"{counted(len(sessions), 'session')}; {done} {amount(freed)}")
