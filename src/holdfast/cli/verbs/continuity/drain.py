"""`hold drain`: every session of this host is moved to others, or put to sleep."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.requirement_options import add_requirements, requirements
from holdfast.cli.text.progress import progress_line
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import counted
from holdfast.model.errors import HoldfastError, SessionNotMoved
from holdfast.sdk.client import Host
from holdfast.sdk.moving import check_known, move
from holdfast.wire.messages.checkpoints import CheckpointMade, MakeCheckpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.model.host_requirement import HostRequirement
    from holdfast.model.info import SessionInfo

SUMMARY = "move every session of this host to others, or put it to sleep"


def parser() -> Parser:
    parser = verb_parser(
        "drain",
        "Move every session of this host to the first of the other hosts that takes it. One that "
        "none takes, or all of them without --to, are checkpointed and asleep afterwards: `hold "
        "restore` brings them back. What can be neither moved nor checkpointed runs on, is named "
        "with the reason, and the command fails.",
        "  hold drain --to laptop\n  hold drain --to laptop --to server\n  hold drain",
    )
    parser.add_argument(
        "--to",
        metavar="HOST",
        action="append",
        default=[],
        help="a machine you have joined, or another host of this machine by the path of its socket "
        "or home; may be given several times",
    )
    add_requirements(parser)
    parser.add_json()
    return parser


def run(options: Options) -> None:
    found: list[dict[str, object]] = []
    require = requirements(options)
    for name in options.to:  # a slip of the pen puts nothing to sleep
        check_known(name)
    with progress_line() as told, Host(client="hold drain", on_progress=told) as host:
        for info in host.sessions():
            if info.ending is not None:
                continue
            became = _drained(host, info, tuple(options.to), require)
            found.append({"id": info.id, "name": info.name, **became})
            if not options.json:
                print(_line(info.name, became), flush=True)
    stayed = [each for each in found if each["became"] == "stayed"]
    if options.json:
        print_json({"sessions": found, "stayed": len(stayed)})
    elif found:
        print(_summary(found))
    else:
        print("there is no session here")
    if stayed:
        names = ", ".join(sanitize(str(each["name"])) for each in stayed)
        raise SessionNotMoved(
            f"{counted(len(stayed), 'session')} stayed here: {names}",
            hint="the reasons are above; `hold can-move NAME` says what would help",
        )


def _drained(
    host: Host, info: SessionInfo, to: tuple[str, ...], require: Sequence[HostRequirement]
) -> dict[str, object]:
    reasons: list[str] = []
    for name in to:
        try:
            moved = move(host, info.id, name, require)
        except HoldfastError as error:
            reasons.append(f"{name}: {error.message}")
            continue
        return {"became": "moved", "host": moved.host, "downtime_s": moved.downtime_s}
    try:
        asked = MakeCheckpoint(0, info.id, end=True, note="drained")
        made = host.ask(asked, CheckpointMade, once=True).checkpoint
    except HoldfastError as error:
        if not any(error.message in each for each in reasons):
            reasons.append(error.message)
        return {"became": "stayed", "reasons": reasons}
    return {"became": "asleep", "checkpoint": made.id, "reasons": reasons}


def _line(name: str, became: dict[str, object]) -> str:
    reasons = became.get("reasons")
    because = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
    match became["became"]:
        case "moved":
            said = f"moved to {became['host']}, stood still for {became['downtime_s']:.1f} s"
        case "asleep":
            said = f"asleep in {became['checkpoint']}" + (f" ({because})" if because else "")
        case _:
            said = f"stays: {because}"
    return f"{sanitize(name)}: {sanitize(said)}"


def _summary(found: list[dict[str, object]]) -> str:
    rows = []
    for became, words in (("moved", "moved"), ("asleep", "asleep"), ("stayed", "stayed here")):
        count = sum(each["became"] == became for each in found)
        rows.append(f"{words:<12}{count:>5}")
    return "\n" + "\n".join(rows)
