"""`hold attach`: this terminal on a session."""

from __future__ import annotations

import os

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.attach.attach import attach_terminal
from holdfast.cli.attach.predicted_typing import CHOICES

SUMMARY = "attach this terminal to a session, or observe it"


def parser() -> Parser:
    parser = verb_parser(
        "attach",
        "Attach this terminal. C-\\ d detaches; closing the terminal does too. The session does "
        "not notice. If the daemon restarts, the attachment comes back by itself. If another actor "
        "has the turn, your first key asks for it; C-\\ ? shows the keys that ask, grant, yield, "
        "seize and halt. Exits with 0 after detaching, with the session's own status when it ends.",
        "  hold attach build\n  hold attach k3v9            an id's beginning will do\n"
        "  hold attach build --observe   watch only: no keys, no resizing\n"
        "  hold attach ID --relay https://relay.example   known by nothing but its whole id",
    )
    parser.add_value(
        "--relay", "URL", "ask this relay where the session is: NAME is its whole id, as in ID@URL"
    )
    parser.add_flag("--observe", help="watch without touching anything")
    parser.add_argument(
        "--predict",
        choices=CHOICES,
        help="draw keys, underlined, before their echo is here; default: auto, where that is late",
    )
    parser.add_value(
        "--prefix", "KEY", "the key before a command of this client, such as C-a; default: C-\\"
    )
    parser.add_flag(
        "--scrollback", help="write the lines above the session's screen into this terminal first"
    )
    parser.add_session()
    return parser


def run(options: Options) -> int:
    if options.relay is not None:
        os.environ["HOLDFAST_ON"] = f"{options.session}@{options.relay}"
    return attach_terminal(
        options.session,
        observe=options.observe,
        predict=options.predict,
        prefix=options.prefix,
        scrollback=options.scrollback,
    )
