"""`hold graph`: what the kernel says a session is made of."""

from __future__ import annotations

import sys

from holdfast.cli.arguments import Parser, add_json, add_session, verb_parser
from holdfast.sdk.client import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "show a session's processes, files, sockets and terminal"

_WIDTH_WITHOUT_TERMINAL = 10_000  # a file or pipe has no edge to cut lines at


def parser() -> Parser:
    parser = verb_parser(
        "graph",
        "Show the session's live graph, read from the kernel now: its process tree, what each "
        "process waits for, and the files, pipes and sockets it holds.",
        "  hold graph build\n"
        "  hold graph web --json | jq '.processes[].sockets[] | select(.state == \"listen\")'",
    )
    add_json(parser)
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold graph") as host:
        graph = host.graph(options.session)
    if options.json:
        import json

        print(json.dumps(graph.pack(), indent=1))
        return 0
    import os
    import shutil

    from holdfast.cli.text.graph import render

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _WIDTH_WITHOUT_TERMINAL
    print(render(graph, width=width, color=terminal and not os.environ.get("NO_COLOR")), end="")
    return 0
