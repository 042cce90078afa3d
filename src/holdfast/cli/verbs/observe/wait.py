"""`hold wait`: until a session does what is waited for."""

from __future__ import annotations

import time

from holdfast.cli.arguments import Parser, add_session, count, seconds, utf8, verb_parser
from holdfast.model.errors import InvalidArgument, SessionEnded, TimedOut
from holdfast.model.state import SessionState
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.event_reader import wait_for_state
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import re
    from collections.abc import Callable

    Wait = Callable[[Host, argparse.Namespace, "float | None"], int]

SUMMARY = "wait for a prompt, a question, a text or the end of a session"

STATES = {
    "prompt": SessionState.PROMPT,
    "input": SessionState.INPUT,
    "secret": SessionState.SECRET,
    "stopped": SessionState.STOPPED,
    "exit": SessionState.ENDED,
}


def parser() -> Parser:
    parser = verb_parser(
        "wait",
        "Wait until the session is at its shell's prompt, or a program in it waits for input or "
        "for a secret (echo off), or is stopped, or the session ends, or a text appears. Exits "
        "with 0 then, 124 after the timeout, 74 when the session ends first.",
        "  hold wait build --for prompt --timeout 10m\n"
        "  hold wait build --for exit --status       exits with the session's own status\n"
        "  hold wait web --for 'text:Listening on .*:3000'\n"
        '  hold wait deploy --for secret && hold send deploy --enter "$TOKEN"',
    )
    parser.add_argument(
        "--for",
        dest="wanted",
        required=True,
        type=utf8,
        metavar="WHAT",
        help="prompt, input, secret, stopped, exit, or text:REGEX (Python syntax, by lines)",
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="give up after this long")
    parser.add_argument(
        "--since",
        type=count,
        metavar="OFFSET",
        help="with text: look in the output from here on, not at the screen",
    )
    parser.add_argument(
        "--status", action="store_true", help="with exit: exit with its status, 128+N for a signal"
    )
    add_session(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    wait = _chosen(options)
    deadline = None if options.timeout is None else time.monotonic() + options.timeout
    with Host(client="hold wait") as host:
        try:
            return wait(host, options, deadline)
        except TimedOut:
            raise TimedOut(
                f"{options.session} did not reach {options.wanted!r} within {options.timeout:g} s",
                hint=f"`hold show {options.session}` shows what it does",
            ) from None


def _chosen(options: argparse.Namespace) -> Wait:
    """What to wait with. A mistake in it is reported before anything is waited for."""
    if options.wanted.startswith("text:"):
        from holdfast.sdk.client_core.text_wait import pattern

        regex = pattern(options.wanted[5:])
        return lambda host, opts, deadline: _for_text(host, opts, regex, deadline)
    if options.wanted not in STATES:
        raise InvalidArgument(
            f"cannot wait for {options.wanted[:40]!r}",
            hint=f"one of {', '.join(STATES)}, text:REGEX",
        )
    return _for_state


def _for_text(
    host: Host, options: argparse.Namespace, regex: re.Pattern[str], deadline: float | None
) -> int:
    from holdfast.sdk.client_core.text_wait import wait_for_text

    info = host.show(options.session)
    if info.ending is not None:
        raise SessionEnded(f"{info.name} has ended: {info.ending}")
    finish(wait_for_text(host.io(deadline), info.id, regex, options.since))
    return 0


def _for_state(host: Host, options: argparse.Namespace, deadline: float | None) -> int:
    wanted = STATES[options.wanted]
    event = finish(wait_for_state(host.io(deadline), options.session, (wanted,)))
    if event.state is not wanted:
        raise SessionEnded(f"{event.name} ended before that: {event.ending}")
    return _ending(event, options.status) if event.ending is not None else 0


def _ending(event: m.StateEvent, with_status: bool) -> int:
    assert event.ending is not None
    print(event.ending)
    if not with_status:
        return 0
    from holdfast.cli.attach.attach import exit_status

    return exit_status(event.ending)
