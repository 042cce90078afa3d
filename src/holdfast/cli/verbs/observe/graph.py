"""`hold graph`: what the kernel says a session is made of."""

from __future__ import annotations

import os
import shutil
import sys

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.graph import render
from holdfast.sdk.client import Host

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
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold graph") as host:
        graph = host.graph(options.session)
    if options.json:
        print_json(graph.pack())
        return
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _WIDTH_WITHOUT_TERMINAL
    print(render(graph, width=width, color=terminal and not os.environ.get("NO_COLOR")), end="")
