"""`hold reap`: evict or end the sessions that nobody uses."""

from __future__ import annotations

import time

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.table import ago, counted, table
from holdfast.model.info import IdleSession
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m

SUMMARY = "evict or end the sessions that nobody uses"


def parser() -> Parser:
    parser = verb_parser(
        "reap",
        "Evict or end the sessions that nobody has used for longer than config.toml says for their "
        "level (idle_movable_s, idle_contained_s, idle_plain_s). The host does this by itself, "
        "after a warning; this verb does not wait for it. A session is in use while somebody is "
        "attached, it printed or was written to, its programs work or use the processor, a server "
        "listens, a connection is forwarded, or an approval is open. A movable session is "
        "checkpointed, then asleep; others are ended only with idle_end.",
        "  hold reap --dry-run      which sessions are idle for too long, and what would be done\n"
        "  hold pin build           this one stays",
    )
    parser.add_flag("--dry-run", help="touch nothing; say what would be done")
    parser.add_json()
    return parser


def run(options: Options) -> None:
    with Host(client="hold reap") as host:
        found = host.ask(m.Reap(0, options.dry_run), m.Reaped, once=True).sessions
    if options.json:
        print_json({"dry_run": options.dry_run, "sessions": [each.pack() for each in found]})
        return
    if not found:
        print("no session is idle for too long")
        return
    now = time.time()
    rows = [
        (each.name, each.id[:8], each.level, ago(now - each.idle_since), _done(each), each.why)
        for each in found
    ]
    print(table(("NAME", "ID", "LEVEL", "IDLE", "ACTION", "WHY"), rows))
    if not options.dry_run:
        print(f"{counted(sum(each.reaped for each in found), 'session')} reaped")


def _done(each: IdleSession) -> str:
    return {"evict": "evict", "end": "end", "keep": "none"}.get(each.action, each.action)
