"""`hold turn`: who may write in a session, and passing that on."""

from __future__ import annotations

import time
from collections.abc import Iterator

from holdfast.cli.arguments import MixedParser, Options, Parser, print_json, seconds, verb_parser
from holdfast.cli.text.naming import called
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, clock
from holdfast.model.errors import InvalidArgument, TimedOut
from holdfast.model.turn_info import TurnInfo, WaitingInfo
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

SUMMARY = "ask for the turn, give it up, or show who holds it"

ACTIONS = (
    *("show", "request", "withdraw", "grant", "yield", "handoff", "revoke"),
    *("policy", "blind", "unblind"),
)
_OLD_WORDS = {"seen": "unblind"}
_SAYING = ("request", "handoff", "revoke")  # what takes --message
_NAMING = ("grant", "handoff", "policy")  # what takes a third word


def parser() -> Parser:
    parser = verb_parser(
        "turn",
        "The turn is the right to write now; one actor holds it at a time. A free one is taken by "
        "simply writing. `request` asks for it (with --wait until it is yours; with --hold no "
        "pause takes it from you for so long), `withdraw` waits "
        "no longer; its holder can `grant` it to a waiting actor, `yield` it, or hand it off to "
        "anybody. "
        "`revoke` takes it from the holder without taking it (right: seize). `policy` says who is "
        "next: queue, ask-holder, free-when-idle. `blind` keeps what is typed and printed out of "
        "every record and view until `unblind`, or until the turn moves.",
        "  hold turn build\n"
        '  hold turn build request --message "one fix" --wait 60 && hold exec build -- make\n'
        "  hold turn build grant                   to the first in the queue\n"
        "  hold turn build handoff bot --message 'please go on'\n"
        "  hold turn build policy ask-holder",
        kind=MixedParser,
        usage="hold turn NAME [show | request [--message M] [--wait S] [--hold S] |\n"
        "                       withdraw | grant [ACTOR] | yield | handoff ACTOR [--message M] |\n"
        "                       revoke [--message M] | policy POLICY | blind | unblind]",
    )
    parser.add_value("--message", "M", "for the others to read, and for the record")
    parser.add_value(
        "--wait", "S", "request: until the turn is yours, at most so long", type=seconds
    )
    parser.add_value(
        "--hold", "S", "request: no pause takes it from you for so long", type=seconds, default=0.0
    )
    parser.add_json()
    parser.add_session()
    parser.add_argument(
        "action",
        nargs="?",
        type=lambda word: _OLD_WORDS.get(word, word),
        choices=ACTIONS,
        default="show",
        help="default: show",
    )
    parser.add_value("to", "ACTOR", "or the policy", nargs="?", default="")
    return parser


def run(options: Options) -> None:
    _check(options)
    with Host(client="hold turn") as host:
        shown, you = _done(host, options), host.connection.actor
    if options.json:
        print_json({**shown.turn.pack(), "yours": shown.yours})
    elif options.action == "show":
        for name, value in _sheet(shown.turn, shown.yours, you):
            print(f"{name:<10}{value}")
    else:
        print(_sentence(shown, options))


def _check(options: Options) -> None:
    action = options.action
    if options.message is not None and action not in _SAYING:
        raise InvalidArgument(f"`hold turn NAME {action}` takes no --message")
    if options.wait is not None and action != "request":
        raise InvalidArgument("only `hold turn NAME request` can --wait")
    if options.hold and action != "request":
        raise InvalidArgument("only `hold turn NAME request` can --hold")
    if options.to and action not in _NAMING:
        raise InvalidArgument(f"`hold turn NAME {action}` takes nothing more")
    if not options.to and action in ("handoff", "policy"):
        missing = "ACTOR" if action == "handoff" else "POLICY"
        raise InvalidArgument(f"`hold turn NAME {action} {missing}` needs one more word")


def _done(host: Host, options: Options) -> turn_messages.TurnShown:
    session, said = options.session, options.message or ""
    match options.action:
        case "request":
            asked = turn_messages.RequestTurn(0, session, said, options.hold)
            if options.wait is not None:
                return _wait(host, asked, options.wait)
            request: m.Request = asked
        case "withdraw":
            request = turn_messages.WithdrawTurn(0, session)
        case "grant":
            request = turn_messages.GrantTurn(0, session, options.to)
        case "yield":
            request = turn_messages.YieldTurn(0, session)
        case "handoff":
            request = turn_messages.HandOffTurn(0, session, options.to, said)
        case "revoke":
            request = turn_messages.RevokeTurn(0, session, said)
        case "policy":
            request = turn_messages.SetTurnPolicy(0, session, options.to)
        case "blind" | "unblind":
            request = turn_messages.SetBlind(0, session, options.action == "blind")
        case _:
            request = turn_messages.GetTurn(0, session)
    return host.ask(request, turn_messages.TurnShown)


def _wait(host: Host, request: turn_messages.RequestTurn, wait_s: float) -> turn_messages.TurnShown:
    from holdfast.sdk.client_core.client_machine import finish
    from holdfast.sdk.client_core.turn_wait import wait_for_turn, withdraw

    info = host.show(request.session, exact=True)
    request = request.replace(session=info.id)  # the name may be another session's later
    try:
        return finish(wait_for_turn(host.io(time.monotonic() + wait_s), request))
    except (TimedOut, KeyboardInterrupt) as error:
        shown = finish(withdraw(host.io(), info.id))
        if shown.yours:
            return shown
        if isinstance(error, KeyboardInterrupt):
            raise
        raise TimedOut(
            f"the turn of {info.name} did not come within {wait_s:g} s; "
            f"{shown.turn.holder_name or 'nobody'} holds it",
            hint=f"`hold seize {info.name}` takes it, if you may",
        ) from None


def _sentence(shown: turn_messages.TurnShown, options: Options) -> str:
    """What came of it."""
    turn, session = shown.turn, options.session
    if options.action == "policy":
        return f"the turn of {session} goes by {turn.policy} from now on"
    if options.action in ("blind", "unblind"):
        return (
            f"blind: what is typed and printed in {session} is kept nowhere, until "
            f"`hold turn {session} unblind`"
            if turn.blind
            else f"what is typed and printed in {session} is kept again"
        )
    if options.action == "request" and shown.yours:
        return f"the turn is yours; `hold catchup {session}` shows what happened meanwhile"
    if options.action == "request":
        return f"asked; {turn.holder_name} holds the turn, and {_count(len(turn.queue))} for it"
    if shown.yours:
        return "the turn is yours"
    return f"{turn.holder_name} holds the turn" if turn.holder else "the turn is free"


def _count(waiting: int) -> str:
    return "1 actor waits" if waiting == 1 else f"{waiting} actors wait"


def _sheet(turn: TurnInfo, yours: bool, you: str) -> Iterator[tuple[str, str]]:
    now = time.time()
    if turn.holder:
        you = ", that is you" if yours else ""
        yield "holder", f"{turn.holder_name} ({turn.holder_kind}){you}"
        yield "since", f"{clock(turn.since)}, {ago(now - turn.since)} ago"
    else:
        yield "holder", "nobody: the first to write takes it"
    if turn.held_until > now:
        yield "held", f"until {clock(turn.held_until)}: a pause does not pass it on"
    if turn.seized:
        yield "seized", "yes: only its holder, or another seizure, moves it"
    if turn.blind:
        yield "blind", "yes: what is typed and printed is kept nowhere"
    yield "policy", turn.policy
    for one in turn.queue:
        yield "waiting", _waiting(one, you, now)


def _waiting(one: WaitingInfo, you: str, now: float) -> str:
    said = f": {sanitize(one.message)}" if one.message else ""
    return f"{called(one.name, you)}, for {ago(now - one.since)}{said}"
