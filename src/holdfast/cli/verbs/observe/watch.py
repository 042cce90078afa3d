"""`hold watch`: states as they change."""

from __future__ import annotations

import sys
import time

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.cli.text.sanitize import sanitize
from holdfast.model.state import state_word
from holdfast.sdk.client import Host
from holdfast.sdk.client_core.client_machine import finish
from holdfast.sdk.client_core.event_reader import EventReader
from holdfast.wire.messages import session as m
from holdfast.wire.messages.gate_approvals import ApprovalMessage
from holdfast.wire.messages.moving import MigrationEvent

_TEXT_CHARS = 80  # of a line that waits for approval

SUMMARY = "print each change of state as it happens"


def parser() -> Parser:
    parser = verb_parser(
        "watch",
        "Print the present state of the session (or of all of yours), then each change, one per "
        "line. Ends with the session; without NAME it goes on until ^C.",
        "  hold watch build\n"
        "  hold watch --json | jq -c 'select(.state == \"input\") | [.name, .waiting_line]'",
    )
    parser.add_json()
    parser.add_session_or_all()
    return parser


def run(options: Options) -> None:
    with Host(client="hold watch") as host:
        reader = EventReader(host.io(), options.session)
        while True:
            event = finish(reader.next())
            if isinstance(event, m.EventsDropped) and event.count:
                print(f"hold: {event.count} events were left out", file=sys.stderr)
            elif isinstance(event, ApprovalMessage):
                print(_approval(event, options.json), flush=True)
            elif isinstance(event, m.RehomedEvent):
                print(_rehomed(event, options.json), flush=True)
            elif isinstance(event, MigrationEvent):
                print(_migration(event, options.json), flush=True)
            elif isinstance(event, m.ReapEvent):
                print(_reap(event, options.json), flush=True)
            elif isinstance(event, m.StateEvent):
                print(_line(event, options.json), flush=True)
                if options.session and event.ending is not None:
                    return


def _approval(event: ApprovalMessage, as_json: bool) -> str:
    if as_json:
        import json

        return json.dumps({**event.pack(), "name": event.approval.name})
    clock, approval = time.strftime("%H:%M:%S", time.localtime(event.at)), event.approval
    who = f" by {sanitize(event.actor)}" if event.actor else ""
    note = f": {sanitize(event.note)}" if event.note else ""
    what = sanitize(approval.text, _TEXT_CHARS) or approval.kind
    line = f"{clock}  {approval.name}  {event.session[:8]}  approval {approval.id}"
    return f"{line} {event.step}{who}{note}  {what}"


def _rehomed(event: m.RehomedEvent, as_json: bool) -> str:
    if as_json:
        import json

        return json.dumps(event.pack())
    clock = time.strftime("%H:%M:%S", time.localtime(event.at))
    line = f"{clock}  {event.name}  {event.session[:8]}  restored from {event.checkpoint}"
    return f"{line}: epoch {event.epoch}, {event.restore_ms:.0f} ms, {event.resets} peers reset"


def _migration(event: MigrationEvent, as_json: bool) -> str:
    if as_json:
        import json

        return json.dumps(event.pack())
    clock = time.strftime("%H:%M:%S", time.localtime(event.at))
    way = "to" if event.leaves else "from"
    said = f"its move {way} {sanitize(event.host)}: {event.phase or 'over'} ({event.superposition})"
    why = f": {sanitize(event.reason)}" if event.reason else ""
    return f"{clock}  {event.name}  {event.session[:8]}  {said}{why}"


def _reap(event: m.ReapEvent, as_json: bool) -> str:
    if as_json:
        import json

        return json.dumps(event.pack())
    clock, due = (time.strftime("%H:%M:%S", time.localtime(at)) for at in (event.at, event.due_at))
    done = {"evict": "evicted to disk", "end": "ended"}.get(event.action, event.action)
    when = f"will be {done} at {due}" if event.step == "warned" else f"is {done} now"
    line = f"{clock}  {event.name}  {event.session[:8]}  nobody uses it: it {when}"
    return f"{line} ({sanitize(event.why)})"


def _line(event: m.StateEvent, as_json: bool) -> str:
    if as_json:
        import json

        return json.dumps(event.pack())
    clock = time.strftime("%H:%M:%S", time.localtime(event.at))
    detail = str(event.ending) if event.ending is not None else event.waiting_line
    word = state_word(event.state, full_screen=event.full_screen)
    line = f"{clock}  {event.name}  {event.session[:8]}  {word}"
    return f"{line}: {detail}" if detail else line
