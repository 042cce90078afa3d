"""`hold join`: from the link of an invite to a machine that can be reached."""

from __future__ import annotations

from holdfast.cli.arguments import Parser, utf8, verb_parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "join a machine with an invite link"


def parser() -> Parser:
    parser = verb_parser(
        "join",
        "Come in by a link that `hold invite` made on another machine. A key is made for this "
        "device if it has none; what it may do there, and until when, the invite says. The link is "
        "secret until it is used. '-' reads it from standard input, so that it is in no history.",
        "  hold join 'https://relay.example/i#…'\n"
        "  hold join - --as laptop --machine build < link.txt\n"
        "  hold attach build/main",
    )
    parser.add_argument("link", metavar="LINK", type=utf8, help="the whole link, in quotes; or -")
    parser.add_argument(
        "--as", dest="name", metavar="NAME", default="", type=utf8,
        help="what this device is called there; default: this machine's name",
    )  # fmt: skip
    parser.add_argument(
        "--machine", metavar="NAME", default="", type=utf8,
        help="what the machine is called here; default: what it calls itself",
    )  # fmt: skip
    parser.add_argument(
        "--key", metavar="NAME", default="", type=utf8,
        help="the actor's key to come in with; default: `device`, made when it is not there",
    )  # fmt: skip
    return parser


def run(options: argparse.Namespace) -> int:
    from holdfast.sdk.reach.join import join

    link = options.link
    if link == "-":
        import sys

        link = sys.stdin.readline()
    machine = join(link, device=options.key, name=options.name, machine=options.machine)
    print(f"{machine.name} is known here now (it calls itself {machine.host}).")
    print("  hold ls                       its sessions, with all others")
    print(f"  hold attach {machine.name}/NAME")
    return 0
