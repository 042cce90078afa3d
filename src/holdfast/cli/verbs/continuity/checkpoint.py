"""`hold checkpoint`: write a session's processes to disk, as they are."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.progress import progress_line
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import amount
from holdfast.sdk.client import Host
from holdfast.wire.messages.checkpoints import CheckpointMade, MakeCheckpoint

SUMMARY = "checkpoint a session: it can be restored from there"


def parser() -> Parser:
    parser = verb_parser(
        "checkpoint",
        "Write the processes of a session to disk, with their memory, files, terminal and pending "
        "input. The session is frozen for a moment and runs on; input that comes meanwhile is "
        "kept and delivered in order. If that fails, the session runs on all the same. With --end "
        "it does not run on: it is asleep until `hold restore`. Needs level movable, and the right "
        "`checkpoint`.",
        "  hold checkpoint build --note 'before the upgrade'\n"
        "  hold checkpoint build --end && hold restore build",
    )
    parser.add_flag("--end", help="end the session with it, once it is safely stored")
    parser.add_value("--note", "TEXT", "what it is for, shown by `hold checkpoints`", default="")
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with progress_line() as told, Host(client="hold checkpoint", on_progress=told) as host:
        request = MakeCheckpoint(0, options.session, options.end, options.note)
        made = host.ask(request, CheckpointMade, once=True).checkpoint
    if options.json:
        print_json(made.pack())
        return
    print(
        f"{made.id}  {made.name} ({made.session[:8]}), {amount(made.bytes)}, "
        f"frozen for {made.frozen_ms:.0f} ms"
    )
    for each in made.copied_at_once:
        print(f"copied while frozen: {sanitize(each)}")
    if made.files:
        print(f"  files captured: {made.files}, {amount(made.file_bytes)}")
    for left in made.left_out:
        print(f"  not captured: {sanitize(left.path)}: {sanitize(left.why)}")
    if others := made.left_out_count - len(made.left_out):
        print(f"  not captured: {others} others")
    if options.end:
        print(f"{made.name} is asleep; `hold restore {made.name}` restores it")
