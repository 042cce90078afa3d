"""`hold show`: one session on one sheet."""

from __future__ import annotations

import time
from collections.abc import Iterator

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.in_flight import last_known_lines, lost_lines
from holdfast.cli.text.sanitize import sanitize as _plain
from holdfast.cli.text.table import ago, amount, clock, residency_text
from holdfast.model.info import CommandRecord, SessionInfo
from holdfast.model.state import state_word
from holdfast.sdk.client import Host

SUMMARY = "show one session in detail"


def parser() -> Parser:
    parser = verb_parser(
        "show",
        "Show one session, live, ended or lost, in detail: its identity, what it does or waits "
        "for, what output is held, the last command its shell ran, how it ended.",
        "  hold show build\n  hold show build --json | jq .last_command.status",
    )
    parser.add_json()
    parser.add_session(reads=True)
    return parser


def run(options: Options) -> None:
    with Host(client="hold show") as host:
        info = host.show(options.session)
    if options.json:
        print_json(info.pack())
        return
    for name, value in _sheet(info, time.time()):
        print(f"{name:<10}{value}")


def _sheet(info: SessionInfo, now: float) -> Iterator[tuple[str, str]]:
    yield "name", info.name
    yield "id", info.id
    yield "state", _state(info, now)
    yield "command", _plain(" ".join(info.argv))
    yield "cwd", _plain(info.cwd)
    if info.workspace:
        yield "workspace", _plain(info.workspace)
    if info.ungated:
        yield "exec gate", f"none: {info.ungated}"
    if info.pid:
        yield "pid", str(info.pid)
    yield "user", info.user
    yield "level", f"{info.level}, epoch {info.epoch}"
    yield "lease", _lease(info)
    yield "created", f"{clock(info.created_at)}, {ago(now - info.created_at)} ago"
    yield "terminal", f"{info.size}{f', titled {_plain(info.title)}' if info.title else ''}"
    if info.labels:
        yield "labels", ", ".join(info.labels)
    if info.ending is None:
        yield "operators", _operators(info)
        yield "turn", _turn(info)
    yield "output", _output(info, now)
    if info.residency is not None and info.ending is None:
        yield "uses", residency_text(info.residency)
    elif info.residency is not None:
        yield "uses", f"{amount(info.residency.disk_bytes)} of disk"
    for line in lost_lines(info):
        yield "in flight", line
    yield from last_known_lines(info)
    if info.acknowledged_at is not None:
        when = f"{clock(info.acknowledged_at)}, {ago(now - info.acknowledged_at)} ago"
        yield "loss", f"acknowledged by {_plain(info.acknowledged_by)}, {when}"
    if info.pruned_at is not None:
        when = f"{clock(info.pruned_at)}, {ago(now - info.pruned_at)} ago"
        yield "pruned", f"{when}: journal and output are gone; `hold verify` shows what is proven"
    if info.unrecorded:
        yield "journal", f"does not have all that happened: {_plain(info.unrecorded)}"
    if info.shell:
        yield "shell", _shell(info)
    if info.last_command is not None:
        yield "last", _command(info.last_command, now, ended=info.ending is not None)


def _shell(info: SessionInfo) -> str:
    if not info.shaped_by:
        return f"{info.shell}, reports its commands"
    by = ", ".join(map(_plain, info.shaped_by))
    return f"{info.shell}, does not report: its state counts as shaped by {by}"


def _state(info: SessionInfo, now: float) -> str:
    if info.ending is not None:
        when = f", {ago(now - info.ended_at)} ago" if info.ended_at else ""
        return f"{_plain(info.ending.sentence())}{when}"
    word = state_word(info.state, full_screen=info.full_screen)
    return f"{word}: {_plain(info.waiting_line)}" if info.waiting_line else word


def _lease(info: SessionInfo) -> str:
    lease = info.lease
    if lease is None:
        return "pinned to this host"
    if info.ending is not None:
        return "re-homeable"
    if lease.state == "held":
        return f"re-homeable, held: {lease.left_s:.1f} s left of {lease.length_s:g} s"
    if lease.state == "taken":
        return f"re-homeable, taken: it lives on another host, in epoch {lease.later_epoch}"
    if lease.why:
        return f"re-homeable, fenced: the lease is held, but {_plain(lease.why)}"
    return "re-homeable, fenced: it is frozen until this host has its lease again"


def _operators(info: SessionInfo) -> str:
    if not info.operators:
        return "nobody is attached"
    named = [f"{_plain(one.name)}{' (observing)' if one.observe else ''}" for one in info.present]
    more = info.operators - len(named)
    return ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])


def _turn(info: SessionInfo) -> str:
    holder = f"{_plain(info.holder)} holds it" if info.holder else "free"
    return f"{holder}; waiting: {', '.join(map(_plain, info.waiting))}" if info.waiting else holder


def _output(info: SessionInfo, now: float) -> str:
    held = info.output_offset - info.held_from
    last = f", the last {ago(now - info.last_output_at)} ago" if info.last_output_at else ""
    rolled = f", {info.held_from} rolled off" if info.held_from else ""
    return f"{info.output_offset} bytes, {held} held{rolled}{last}"


def _command(command: CommandRecord, now: float, *, ended: bool) -> str:
    text = _plain(command.text)
    if command.actor:
        text = f"{text}  by {_plain(command.actor)}"
    if command.status is None and ended:
        return f"{text}  (it had not ended when the session did)"
    if command.status is None or command.ended_at is None:
        return f"{text}  (runs, since {ago(now - command.began_at)})"
    seconds = command.ended_at - command.began_at
    return f"{text}  (status {command.status}, {seconds:.1f} s, {ago(now - command.ended_at)} ago)"
