"""`hold up`: start a host."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import Options, Parser, utf8, verb_parser
from holdfast.cli.first_link import how_to_listen, say_how, show_link
from holdfast.cli.host_check import check_answers, check_works
from holdfast.cli.hung_daemon import daemon_pid
from holdfast.cli.start_host import RELAY_VARIABLE, start_host
from holdfast.model.errors import AlreadyUp
from holdfast.model.home import home_of
from holdfast.model.listening import OFF, listening
from holdfast.sdk.client import Host

SUMMARY = "start the host: supervisor, daemon and relay"


def parser() -> Parser:
    parser = verb_parser(
        "up",
        "Start this user's host. It belongs to no terminal: it stays when you log out, and "
        "sessions end only by their own end or `hold end`. `hold run` starts one by itself if "
        "none runs. It has a relay of its own, on this machine only unless --listen says "
        "otherwise, and prints a link with which another device joins.",
        "  hold up -d           start and return\n"
        "  hold up              start, then follow its log; ^C stops following, not the host\n"
        "  hold up --listen 0.0.0.0            also for the network this machine is in, with TLS\n"
        "  HOLDFAST_HOME=/tmp/x hold up -d     a second one beside it",
    )
    parser.add_flag("-d", "--detach", help="return once it serves")
    relay = parser.add_mutually_exclusive_group()
    relay.add_argument(
        "--listen",
        metavar="ADDRESS[:PORT]",
        type=utf8,
        help="where its relay listens (default: 127.0.0.1; port 7420, or one that is free)",
    )
    relay.add_argument("--no-relay", action="store_true", help="without a relay of its own")
    return parser


def run(options: Options) -> None:
    home = home_of(os.environ, os.getuid())
    _choose_relay(options)
    try:
        start_host(home)
    except AlreadyUp as error:
        check_answers(home, daemon_pid(home))
        if options.listen:  # only a host that is started hears of it
            error.hint = f"to have its relay listen there, {how_to_listen(options.listen)}"
        raise
    with_relay = os.environ.get(RELAY_VARIABLE) != OFF
    with Host(home.socket, client="hold up") as host:
        check_works(host)
    if options.detach:
        if with_relay:
            say_how(home)
        return
    show_link(home)
    print(f"the host is up; its log ({home.log}) follows, ^C leaves it running", file=sys.stderr)
    _follow(home.log)


def _choose_relay(options: Options) -> None:
    """Told to the daemon, and to each that follows it, by the environment."""
    if options.no_relay:
        os.environ[RELAY_VARIABLE] = OFF
    elif options.listen:
        listening(options.listen)  # what makes no sense is said before anything is started
        os.environ[RELAY_VARIABLE] = options.listen


def _follow(path: str) -> None:
    with open(path, encoding="utf-8", errors="replace") as log:
        log.seek(0, os.SEEK_END)
        while True:
            line = log.readline()
            if line:
                print(line, end="", flush=True)
            else:
                if os.fstat(log.fileno()).st_size < log.tell():
                    log.seek(0)  # the log was started again
                time.sleep(0.25)
