"""`hold ls`: the sessions of this host, and of every machine this user has joined."""

from __future__ import annotations

import os
import sys
import time

from holdfast.cli.arguments import Options, Parser, print_json, utf8, verb_parser
from holdfast.cli.text.in_flight import lost_lines
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import ago, amount, table
from holdfast.model.errors import HoldfastError
from holdfast.model.home import machines_of
from holdfast.model.info import SessionInfo
from holdfast.model.state import SessionState, state_word
from holdfast.sdk.client import Host

SUMMARY = "list sessions with what each is doing"

_COMMAND_CHARS = 60
_HEADING = (
    "Lost, and not acknowledged (`hold revive NAME` starts a successor; `hold acknowledge NAME`, "
    "or --all):"
)


def parser() -> Parser:
    parser = verb_parser(
        "ls",
        "List your sessions, here and on the machines you have joined: what each does, as seen by "
        "the kernel. A machine that cannot be reached is named, and the others are listed. "
        "Sessions that were lost are listed with what was in flight, until `hold acknowledge`.",
        "  hold ls\n  hold ls --all      the recently ended too\n"
        "  hold ls --long     with memory, processes, descriptors and disk\n"
        "  hold ls --label prod\n  hold --on build ls      one machine only\n"
        "  hold ls --json | jq '.[] | select(.state == \"input\") | .name'",
    )
    parser.add_flag("-a", "--all", help="ended ones too")
    parser.add_flag("-l", "--long", help="also what each costs: memory, processes, disk")
    parser.add_argument("--label", default="", type=utf8, help="only those with this label")
    parser.add_json()
    return parser


def run(options: Options) -> int:
    found, unreached = _found(options.all, options.long)
    if options.label:
        found = [each for each in found if options.label in each[1].labels]
    status = _say_unreached(unreached)
    if options.json:
        rows = [{**info.pack(), **({"machine": where} if where else {})} for where, info in found]
        print_json(rows)
        return status
    if not found:
        if not unreached:  # a machine that did not answer may have some
            print("no sessions; start one with `hold run`")
        return status
    now = time.time()
    lost = [(where, info) for where, info in found if _is_lost(info)]
    found = [each for each in found if each not in lost]
    if found:
        _print_table(found, now)
    if lost:
        print(_HEADING)
    for where, info in lost:
        _print_lost(where, info, now)
    return status


def _print_table(found: list[tuple[str, SessionInfo]], now: float) -> None:
    sessions = [info for _, info in found]
    columns = {
        "NAME": [f"{where}/{info.name}" if where else info.name for where, info in found],
        "ID": [info.id[:8] for info in sessions],
        "STATE": [_state(info) for info in sessions],
        "TURN": [sanitize(info.holder) for info in sessions],
        "AGE": [ago(now - info.created_at) for info in sessions],
        "OPERATORS": [str(info.operators) for info in sessions],
        "LAST OUTPUT": [_last_output(info, now) for info in sessions],
        **_costs(sessions),
        "LABELS": [",".join(info.labels) for info in sessions],
        "COMMAND": [sanitize(" ".join(info.argv), _COMMAND_CHARS) for info in sessions],
    }
    # Who has the turn, and labels, only where there are any.
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    print(table(tuple(shown), list(zip(*shown.values(), strict=True))))


def _is_lost(info: SessionInfo) -> bool:
    """And nobody has acknowledged that."""
    return info.state is SessionState.LOST and info.acknowledged_at is None


def _print_lost(where: str, info: SessionInfo, now: float) -> None:
    assert info.ending is not None
    name = f"{where}/{info.name}" if where else info.name
    print(f"{name}  {info.id[:8]}  {sanitize(info.ending.sentence())}{_when(info, now)}")
    for line in lost_lines(info):
        print(f"    {line}")


def _when(info: SessionInfo, now: float) -> str:
    return f", {ago(now - info.ended_at)} ago" if info.ended_at else ""


def _found(
    ended: bool, long: bool
) -> tuple[list[tuple[str, SessionInfo]], dict[str, HoldfastError]]:
    """Sessions with the machine each is on ("": this one), and the machines that did not answer."""
    if os.environ.get("HOLDFAST_ON") or not os.path.exists(machines_of(os.environ)):
        with Host(client="hold ls") as host:
            return [("", info) for info in _ask(host, ended, long)], {}
    from holdfast.sdk.reach.all_machines import ask_all

    answers = ask_all(lambda host: _ask(host, ended, long), "hold ls")
    found = [
        (where, info)
        for where, answer in answers
        if not isinstance(answer, HoldfastError)
        for info in answer
    ]
    return found, {where: answer for where, answer in answers if isinstance(answer, HoldfastError)}


def _ask(host: Host, ended: bool, long: bool) -> tuple[SessionInfo, ...]:
    return host.sessions(ended=ended, residency=long, lost=True)


def _say_unreached(unreached: dict[str, HoldfastError]) -> int:
    for where, error in unreached.items():
        print(f"hold: {where or 'this machine'}: {error.message} ({error.code})", file=sys.stderr)
    return max((error.exit_status for error in unreached.values()), default=0)


def _costs(sessions: list[SessionInfo]) -> dict[str, list[str]]:
    """Empty columns, which are not shown, unless they were asked for."""
    used = [info.residency for info in sessions]
    live = [one if info.ending is None else None for info, one in zip(sessions, used, strict=True)]
    return {
        "MEMORY": ["" if one is None else amount(one.memory_bytes) for one in live],
        "PROCESSES": ["" if one is None else str(one.processes) for one in live],
        "DESCRIPTORS": ["" if one is None else str(one.descriptors) for one in live],
        "DISK": ["" if one is None else amount(one.disk_bytes) for one in used],
    }


def _state(info: SessionInfo) -> str:
    if info.ending is not None:
        return info.ending.sentence()
    word = state_word(info.state, full_screen=info.full_screen)
    if info.held:
        return f"{word}: a line waits for approval {info.held}"
    return f"{word}: {sanitize(info.waiting_line, 40)}" if info.waiting_line else word


def _last_output(info: SessionInfo, now: float) -> str:
    return f"{ago(now - info.last_output_at)} ago" if info.last_output_at else "-"
