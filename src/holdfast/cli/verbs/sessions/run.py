"""`hold run`: start a session."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError

from holdfast.cli.arguments import Options, Parser, count, seconds, size, utf8, verb_parser
from holdfast.cli.start_host import started_host
from holdfast.model.errors import InvalidArgument, SessionEnded
from holdfast.model.state import Level
from holdfast.sdk.client import Host

SUMMARY = "start a session and attach to it"


def parser() -> Parser:
    parser = verb_parser(
        "run",
        "Start a session running CMD (default: your shell) with this environment and directory, "
        "and attach to it. The session is nobody's: closing this terminal only detaches.",
        "  hold run                          your shell, attached\n"
        "  hold run --name build -d -- make  in the background; prints the session's id\n"
        "  hold run --size 120x40 --env DEBUG=1 -- ./server --port 3000\n"
        "  hold run --label prod --label db  what `hold grant --label prod` is about",
        usage="hold run [OPTIONS] [-- CMD...]",
    )
    parser.add_value("--name", "NAME", "a name; default: made from the command", type=_name)
    parser.add_flag("-d", "--detach", help="do not attach; print the id")
    parser.add_argument("--user", default="", help="run as this unix user (root only)")
    parser.add_argument("--cwd", default="", help="working directory; default: this one")
    parser.add_argument(
        "--env", action="append", default=[], metavar="K=V", help="set a variable; may be repeated"
    )
    parser.add_argument("--size", type=size, help="terminal size, COLSxROWS")
    parser.add_argument(
        "--level", choices=[str(level) for level in Level], help="default: the highest there is"
    )
    parser.add_values("--label", "L", "a label, for envelopes; may be repeated")
    parser.add_value(
        "--after", "NAME", "an ended session that this one follows; its record says so", default=""
    )
    parser.add_flag(
        "--rehomeable",
        help="another host may take it over; it is frozen while this one cannot renew its lease",
    )
    parser.add_flag(
        "--with-keys",
        help="let its programs see your actors' keys and the host's state, hidden otherwise at "
        "level contained; whoever writes there can use them",
    )
    parser.add_argument(
        "--gate",
        choices=["on", "off"],
        default="on",
        help="off: without the exec gate's system call filter, so that policies judge only lines; "
        "default: on, at level contained",
    )
    parser.add_value(
        "--workspace",
        "DIR",
        "the directory that policies call its workspace; default: its working directory. Given "
        "here, it is captured with checkpoints",
        default="",
    )
    parser.add_values(
        "--capture", "DIR", "capture this directory with checkpoints; may be repeated"
    )
    parser.add_value(
        "--checkpoint-every",
        "TIME",
        "have it checkpointed so often, as 5m, when something happened; level movable",
        type=seconds,
        default=0.0,
    )
    parser.add_value("--ring", "BYTES", "output to hold", type=count, default=0)
    parser.runs_command = True
    parser.add_argument("command", nargs="*", metavar="CMD", help="the program and its arguments")
    return parser


def _name(text: str) -> str:
    """An empty one is a mistake, often a variable that is not set: not a wish for any name."""
    if not text:
        raise ArgumentTypeError("a name is not empty; leave --name out to get one made")
    return utf8(text)


def run(options: Options) -> int:
    from holdfast.cli.attach.raw_terminal import terminal_size

    with started_host("hold run") as host:
        info = host.run(
            options.command,
            name=options.name or "",
            cwd=_directory(options),
            env=_environment(options),
            size=options.size or terminal_size(),
            user=options.user,
            level=Level(options.level) if options.level else None,
            ring_bytes=options.ring,
            labels=options.label,
            predecessor=options.after,
            rehomeable=options.rehomeable,
            with_keys=options.with_keys,
            gate=options.gate == "on",
            workspace=_absolute(options.workspace),
            checkpoint_every_s=options.checkpoint_every,
            capture=[_absolute(each) for each in options.capture],
        )
        if options.detach or not (sys.stdin.isatty() and sys.stdout.isatty()):
            print(info.id)
            return 0
    from holdfast.cli.attach.attach import attach_terminal

    try:
        return attach_terminal(info.id)
    except SessionEnded:
        return _show_ended(info.id)


def _show_ended(session: str) -> int:
    """A command so short that it ended before we were attached: its output, and how it ended."""
    from holdfast.cli.attach.attach import exit_status
    from holdfast.cli.text import raw_stdout
    from holdfast.sdk.client_core.client_machine import finish
    from holdfast.sdk.client_core.output_reader import OutputReader
    from holdfast.wire.messages.session import Closed
    from holdfast.wire.terminal_queries import strip_queries

    with Host(client="hold run") as host:
        output = OutputReader(host.io(), session, 0)
        while not isinstance(piece := finish(output.next()), Closed):
            if piece is not None:
                raw_stdout.write(strip_queries(piece.data))
    print(f"[{output.name} {piece.ending.sentence()}]")
    return exit_status(piece.ending)


def _directory(options: Options) -> str:
    """ "": the user's home. This directory means nothing to another user or machine."""
    if os.environ.get("HOLDFAST_ON"):
        return str(options.cwd)
    if options.user and not options.cwd:
        return ""
    try:
        return os.path.abspath(str(options.cwd))
    except FileNotFoundError:
        raise InvalidArgument(
            "this directory was deleted", hint="cd to another one, or give --cwd DIR"
        ) from None


def _absolute(directory: str) -> str:
    if os.environ.get("HOLDFAST_ON") or not directory:
        return directory
    return os.path.abspath(directory)


def _environment(options: Options) -> dict[str, str]:
    base = {} if options.user else dict(os.environ)
    if os.environ.get("HOLDFAST_ON"):  # what is set here is nobody's business there
        base = {name: value for name, value in base.items() if name.startswith(("LANG", "LC_"))}
    # Whom this command acts as is not whom everybody in the session acts as.
    for name in ("HOLDFAST_AS", "HOLDFAST_GRANT"):
        base.pop(name, None)
    for pair in options.env:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise InvalidArgument(f"not K=V: {pair[:80]!r}")
        base[key] = value
    return base
