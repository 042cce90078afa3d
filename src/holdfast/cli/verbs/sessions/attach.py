"""`hold attach`: this terminal on a session."""

from __future__ import annotations

import os
import termios

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.attach.attach import attach_terminal
from holdfast.cli.attach.predicted_typing import CHOICES
from holdfast.model.errors import InvalidArgument, NoSuchSession
from holdfast.model.ids import SessionId
from holdfast.model.info import SessionInfo
from holdfast.sdk.client import Host

SUMMARY = "attach this terminal to a session, or observe it"


def parser() -> Parser:
    parser = verb_parser(
        "attach",
        "Attach this terminal. C-\\ d detaches; closing the terminal does too. The session does "
        "not notice. If the daemon restarts, the attachment comes back by itself. If another actor "
        "has the turn, your first key asks for it; C-\\ ? shows the keys that ask, grant, yield, "
        "seize and halt, and those that go to another session. Without a name it is the only "
        "session, or the one started last; the beginning of a name will do. Exits with 0 after "
        "detaching, with the session's own status when it ends.",
        "  hold attach build\n  hold attach             the session that was started last\n"
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
    parser.add_session(optional=True)
    return parser


def run(options: Options) -> int:
    if options.relay is not None:
        if options.session is None:
            raise InvalidArgument("--relay needs the whole id of a session")
        os.environ["HOLDFAST_ON"] = f"{options.session}@{options.relay}"
    named = options.session or _latest()
    try:
        return _attach(options, named)
    except NoSuchSession:
        begun = _begun(named)
        if begun is None:
            raise
    print(f"[no session is called {named}; attaching to {begun.name}]", flush=True)
    # What was typed ahead was typed before anybody could see that.
    termios.tcflush(0, termios.TCIFLUSH)
    return _attach(options, begun.id)


def _attach(options: Options, session: str) -> int:
    return attach_terminal(
        session,
        observe=options.observe,
        predict=options.predict,
        prefix=options.prefix,
        scrollback=options.scrollback,
    )


def _latest() -> str:
    if not (live := _others()):
        raise NoSuchSession("no session runs here", hint="`hold run` starts one")
    return max(live, key=lambda each: each.created_at).id


def _begun(named: str) -> SessionInfo | None:
    """The one session whose name begins so. A person sees where the terminal is before anything is
    typed; other verbs that write take whole names only. An id means its own session or none."""
    if "@" in os.environ.get("HOLDFAST_ON", "") or _is_id(named):
        return None
    begun = [each for each in _others() if each.name.startswith(named)]
    return begun[0] if len(begun) == 1 else None


def _is_id(text: str) -> bool:
    try:
        SessionId(text)
    except ValueError:
        return False
    return True


def _others() -> list[SessionInfo]:
    """The live sessions, but not the one that this terminal is in."""
    with Host(client="hold attach") as host:
        sessions = host.sessions()
    here = os.environ.get("HOLDFAST_SESSION")
    return [each for each in sessions if each.ending is None and each.id != here]
