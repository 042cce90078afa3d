"""`hold up`: start a host."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import Parser, verb_parser
from holdfast.cli.starting import start_host
from holdfast.model.home import home_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "start the host: keeper and daemon"


def parser() -> Parser:
    parser = verb_parser(
        "up",
        "Start this user's host. It belongs to no terminal: it stays when you log out, and "
        "sessions end only by their own end or `hold end`. `hold run` starts one by itself if "
        "none runs.",
        "  hold up -d           start and return\n"
        "  hold up              start, then follow its log; ^C stops following, not the host\n"
        "  HOLDFAST_HOME=/tmp/x hold up -d     a second one beside it",
    )
    parser.add_argument("-d", "--detach", action="store_true", help="return once it serves")
    return parser


def run(options: argparse.Namespace) -> int:
    home = home_of(os.environ, os.getuid())
    start_host(home)
    if options.detach:
        return 0
    print(f"the host is up; its log ({home.log}) follows, ^C leaves it running", file=sys.stderr)
    _follow(home.log)
    return 0


def _follow(path: str) -> None:
    with open(path, encoding="utf-8", errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while True:
            line = log.readline()
            if line:
                print(line, end="", flush=True)
            else:
                time.sleep(0.25)
