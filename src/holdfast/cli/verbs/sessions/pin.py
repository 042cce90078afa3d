"""`hold pin`: keep a session from being reaped."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.sdk.client import Host

SUMMARY = "keep a session from being reaped, however long it is idle"


def parser() -> Parser:
    parser = verb_parser(
        "pin",
        "Keep a live session from being reaped, however long nobody uses it. The host otherwise "
        "evicts sessions that are idle for too long to disk, where it can, and ends them where its "
        "settings say so. The record has who pinned it. This needs the right to write.",
        "  hold pin build\n  hold unpin build   it may be reaped again",
    )
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    set_pinned(options, True, "hold pin")


def set_pinned(options: Options, pinned: bool, client: str) -> None:
    with Host(client=client) as host:
        info = host.pin(options.session, pinned)
    if options.json:
        print_json(info.pack())
    else:
        said = "is pinned: it is not reaped" if info.pinned else "may be reaped when it is idle"
        print(f"{info.name} ({info.id[:8]}) {said}")
