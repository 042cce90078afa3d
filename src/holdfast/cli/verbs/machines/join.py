"""`hold join`: from the link of an invite to a machine that can be reached."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.wire.messages.admission import InviteSeen

SUMMARY = "join a machine with an invite link"


def parser() -> Parser:
    parser = verb_parser(
        "join",
        "Join with a link that `hold invite` made on another machine. A key is made for this "
        "device if it has none; what it may do there, and until when, the invite says. The link is "
        "secret until it is used. '-' reads it from standard input, so that it is in no history.",
        "  hold join 'https://relay.example/i#…'\n"
        "  hold join - --as laptop --machine build < link.txt\n"
        "  hold attach build/main",
    )
    parser.add_value("link", "LINK", "the whole link, in quotes; or -")
    parser.add_value(
        "--as",
        "NAME",
        "what this device is called there; default: this machine's name",
        dest="name",
        default="",
    )
    parser.add_value(
        "--machine",
        "NAME",
        "what the machine is called here; default: what it calls itself",
        default="",
    )
    parser.add_value(
        "--key",
        "NAME",
        "the actor's key to join with; default: `device`, made when it is not there",
        default="",
    )
    parser.add_flag("--look", help="say who invites to what, and do not join; the link stays good")
    return parser


def run(options: Options) -> None:
    from holdfast.sdk.reach.join import join, see_invite

    link = options.link
    if link == "-":
        import sys

        link = sys.stdin.readline()
    if options.look:
        print(_invitation(see_invite(link, device=options.key)))
        return
    machine = join(link, device=options.key, name=options.name, machine=options.machine)
    print(f"{machine.name} is known here now (it calls itself {machine.host}).")
    print("  hold ls                       its sessions, with all others")
    print(f"  hold attach {machine.name}/NAME")


def _invitation(seen: InviteSeen) -> str:
    import time

    from holdfast.cli.scope_options import role_or_rights, until_text
    from holdfast.cli.text.sanitize import sanitize
    from holdfast.cli.text.table import lasting

    steps = [step.partition(":") for step in seen.reach]
    places = [
        f"{kind} {seen.names.get(value, value)}" for kind, _, value in steps if kind != "host"
    ]
    where = " of ".join(places) or "all sessions"
    left = "one device" if seen.uses_left == 1 else f"{seen.uses_left} devices"
    return (
        f"{sanitize(seen.inviter)} invites you to {sanitize(where)} on {sanitize(seen.host_name)}\n"
        f"with {role_or_rights(seen.rights)}, for {lasting(seen.lasts_s)} from when you join\n"
        f"the link is for {left}, {until_text(seen.expires_at, time.time())}"
    )
