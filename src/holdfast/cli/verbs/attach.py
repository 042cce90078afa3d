"""`hold attach`: this terminal on a session."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, add_session, verb_parser
from holdfast.cli.attaching import attach_terminal
from holdfast.cli.prefix_keys import HINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "attach this terminal to a session, or observe it"


def parser() -> Parser:
    parser = verb_parser(
        "attach",
        f"Attach this terminal. {HINT}; closing the terminal does too. The session does not "
        "notice. If the daemon restarts, the attachment comes back by itself. If another actor has "
        "the turn, your first key asks for it; C-\\ ? shows the keys that ask, grant, yield, seize "
        "and halt. Exits with 0 after detaching, with the session's own status when it ends.",
        "  hold attach build\n  hold attach k3v9            an id's beginning will do\n"
        "  hold attach build --observe   watch only: no keys, no resizing",
    )
    parser.add_argument("--observe", action="store_true", help="watch without touching anything")
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    return attach_terminal(options.session, observe=options.observe)
