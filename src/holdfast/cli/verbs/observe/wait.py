"""`hold wait`: until a session does what is waited for."""

from __future__ import annotations

import time

from holdfast.cli.arguments import Options, Parser, count, seconds, verb_parser
from holdfast.model.errors import InvalidArgument, TimedOut, session_over
from holdfast.model.state import SessionState
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.event_reader import wait_for_state
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client_core.text_wait import TextPattern

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
        "with 0 then, 124 after the timeout, 74 when the session ends first, 72 when it was lost.",
        "  hold wait build --for prompt --timeout 10m\n"
        "  hold wait build --for exit --status       exits with the session's own status\n"
        "  hold wait web --for 'text:Listening on .*:3000'\n"
        '  hold wait deploy --for secret && hold send deploy --enter "$TOKEN"',
    )
    parser.add_value(
        "--for",
        "WHAT",
        "prompt, input, secret, stopped, exit, or text:REGEX (Python syntax, by lines)",
        dest="wanted",
        required=True,
    )
    parser.add_value("--timeout", "S", "give up after this long", type=seconds)
    parser.add_value(
        "--since",
        "OFFSET",
        "with text: look in the output from here on, not at the screen",
        type=count,
    )
    parser.add_flag("--status", help="with exit: exit with its status, 128+N for a signal")
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> int:
    regex = _checked(options.wanted)
    deadline = None if options.timeout is None else time.monotonic() + options.timeout
    with Host(client="hold wait") as host:
        try:
            if regex is None:
                return _for_state(host, options, deadline)
            _for_text(host, options, regex, deadline)
        except TimedOut:
            raise TimedOut(
                f"{options.session} did not reach {options.wanted!r} within {options.timeout:g} s",
                hint=f"`hold show {options.session}` shows what it does",
            ) from None
    return 0


def _checked(wanted: str) -> TextPattern | None:
    """The text to wait for; None: a state. A mistake is reported before anything is waited for."""
    if wanted.startswith("text:"):
        from holdfast.sdk.client_core.text_wait import pattern

        return pattern(wanted[5:])
    if wanted not in STATES:
        raise InvalidArgument(
            f"cannot wait for {wanted[:40]!r}", hint=f"one of {', '.join(STATES)}, text:REGEX"
        )
    return None


def _for_text(host: Host, options: Options, regex: TextPattern, deadline: float | None) -> None:
    from holdfast.sdk.client_core.text_wait import wait_for_text

    info = host.show(options.session)
    if info.ending is not None:
        raise session_over(info.name, info.ending)
    finish(wait_for_text(host.io(deadline), info.id, regex, options.since))


def _for_state(host: Host, options: Options, deadline: float | None) -> int:
    wanted = STATES[options.wanted]
    event = finish(wait_for_state(host.io(deadline), options.session, (wanted,)))
    if event.state is not wanted:
        raise session_over(event.name, event.ending, how="ended before that")
    return _ending(event, options.status) if event.ending is not None else 0


def _ending(event: m.StateEvent, with_status: bool) -> int:
    assert event.ending is not None
    print(event.ending)
    if not with_status:
        return 0
    from holdfast.cli.attach.attach import exit_status

    return exit_status(event.ending)
