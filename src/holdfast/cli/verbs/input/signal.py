"""`hold signal`: a signal for what runs in the foreground."""

from __future__ import annotations

from argparse import ArgumentTypeError

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.sdk.client import Host

SUMMARY = "send a signal to the foreground job"


def parser() -> Parser:
    parser = verb_parser(
        "signal",
        "Send a signal to the session's foreground job, as the kernel names it now: what ^C and ^Z "
        "would reach, also when the program does not listen to the terminal.",
        "  hold signal build INT\n  hold signal build SIGTERM\n  hold signal build 9",
    )
    parser.add_session()
    parser.add_value("signal", "SIG", "a name or a number", type=_number)
    return parser


def run(options: Options) -> None:
    with Host(client="hold signal") as host:
        host.signal(options.session, options.signal)


def _number(text: str) -> int:
    from signal import SIGRTMAX, Signals

    name = text.upper()
    known = Signals.__members__.get(name if name.startswith("SIG") else f"SIG{name}")
    if known is not None:
        return int(known)
    if text.isdecimal() and 1 <= int(text) <= SIGRTMAX:
        return int(text)
    raise ArgumentTypeError(f"no signal is called {text[:40]!r}")
