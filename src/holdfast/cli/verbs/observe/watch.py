"""`hold watch`: states as they change."""

from __future__ import annotations

import sys
import time

from holdfast.cli.arguments import Parser, add_json, utf8, verb_parser
from holdfast.cli.resuming import come_back
from holdfast.model.errors import HostLost
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

SUMMARY = "print each change of state as it happens"


def parser() -> Parser:
    parser = verb_parser(
        "watch",
        "Print the present state of the session (or of all of yours), then each change, one per "
        "line. Ends with the session; without NAME it goes on until ^C.",
        "  hold watch build\n"
        "  hold watch --json | jq -c 'select(.state == \"input\") | [.name, .waiting_line]'",
    )
    add_json(parser)
    parser.add_argument(
        "session",
        metavar="NAME",
        nargs="?",
        default="",
        type=utf8,
        help="a session's name, id or start of its id; default: all",
    )
    return parser


def run(options: argparse.Namespace) -> int:
    with Host(client="hold watch") as host:
        _Watch(host, options.session, options.json).run()
    return 0


class _Watch:
    """What was told last of each session, so that coming back repeats nothing."""

    def __init__(self, host: Host, session: str, as_json: bool) -> None:
        self._host = host
        self._session = session
        self._json = as_json
        self._told: dict[str, m.StateEvent] = {}

    def run(self) -> None:
        self._host.watch(self._session)
        while True:
            try:
                event = self._host.connection.receive()
            except HostLost:
                self._come_back()
                continue
            if isinstance(event, m.EventsDropped):
                print(f"hold: {event.count} events were left out", file=sys.stderr)
            elif isinstance(event, m.StateEvent):
                self._tell(event)
                if self._session and event.ending is not None:
                    return
                self._session = self._session and event.session

    def _come_back(self) -> None:
        come_back(self._host)
        self._host.watch(self._session)
        if self._session:
            return
        living = {info.id for info in self._host.sessions()}
        for missed in [told for session, told in self._told.items() if session not in living]:
            info = self._host.show(missed.session)
            self._tell(
                m.StateEvent(
                    info.id, info.name, info.state, info.ended_at or time.time(), "", info.ending
                )
            )

    def _tell(self, event: m.StateEvent) -> None:
        last = self._told.get(event.session)
        if last is not None and last.replace(at=event.at) == event:
            return
        self._told[event.session] = event
        if event.ending is not None:
            del self._told[event.session]
        print(self._line(event), flush=True)

    def _line(self, event: m.StateEvent) -> str:
        if self._json:
            import json

            return json.dumps(event.pack())
        clock = time.strftime("%H:%M:%S", time.localtime(event.at))
        detail = str(event.ending) if event.ending is not None else event.waiting_line
        line = f"{clock}  {event.name}  {event.session[:8]}  {event.state}"
        return f"{line}: {detail}" if detail else line
