"""`hold revive`: a session that follows a lost one."""

from __future__ import annotations

import time

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.sanitize import quoted, sanitize
from holdfast.model.errors import InvalidArgument, session_over
from holdfast.model.limits import COMMAND_TEXT_MAX_BYTES
from holdfast.model.state import SessionState
from holdfast.sdk.client import Host

SUMMARY = "start a session that follows a lost one"

_PROMPT_S = 20.0  # for its shell to be ready for the command line
_CHARS = 200  # of it, shown


def parser() -> Parser:
    parser = verb_parser(
        "revive",
        "Start a session that follows one that was lost with its host or keeper: the same command, "
        "name, labels, level, workspace, policies and envelopes, in the directory and with the "
        "environment of its shell's last prompt. It is a new session, whose journal names the lost "
        "one, and the lost one's id leads to it. No process comes back, and the command line that "
        "was running is not run again: whether it took effect is not known. What is left behind is "
        "listed. The loss counts as acknowledged. This needs the right to end the session.",
        "  hold ls                         what was lost, and what was in flight\n"
        "  hold revive build\n  hold revive build --run-again   and enter what was running",
    )
    parser.add_flag(
        "--run-again", help="enter the command line that was running, as your own, at its prompt"
    )
    parser.add_json()
    parser.add_session()
    return parser


def run(options: Options) -> None:
    with Host(client="hold revive") as host:
        revived = host.revive(options.session)
        again = ""
        if options.run_again and revived.running:
            again = _run_again(host, revived.info.id, revived.running)
    if options.json:
        print_json(
            {
                **revived.info.pack(),
                "predecessor": revived.predecessor,
                "left_behind": list(revived.left_behind),
                "running": revived.running,
                "run_again": bool(again),
            }
        )
        return
    print(f"{revived.info.name} ({revived.info.id[:8]}) follows {revived.predecessor[:8]}")
    print(f"in {sanitize(revived.info.cwd)}; not brought back:")
    for each in revived.left_behind:
        print(f"    {sanitize(each)}")
    if again:
        print(f"entered again: {quoted(again.encode(), _CHARS)}")


def _run_again(host: Host, session: str, line: str) -> str:
    """Entered like any other line of this actor: judged, attributed, recorded."""
    from holdfast.sdk.client_core.client_machine import finish
    from holdfast.sdk.client_core.event_reader import wait_for_state

    if len(line.encode()) >= COMMAND_TEXT_MAX_BYTES:
        raise InvalidArgument(
            "the session is revived, but the command line was too long to be kept whole",
            hint=f"enter it yourself: `hold attach {session[:8]}`",
        )
    deadline = time.monotonic() + _PROMPT_S
    event = finish(wait_for_state(host.io(deadline), session, (SessionState.PROMPT,)))
    if event.ending is not None:
        raise session_over(event.name, event.ending, how="ended before the line was entered")
    host.send(session, line)
    return line
