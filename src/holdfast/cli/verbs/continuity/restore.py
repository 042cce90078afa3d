"""`hold restore`: bring a session back from a checkpoint."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.text.progress import progress_line
from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import counted
from holdfast.model.captured_files import RestoreFiles
from holdfast.model.errors import InvalidArgument
from holdfast.model.restore import ContinuityKind, RestoredFiles, RestoreReport
from holdfast.sdk.client import Host
from holdfast.wire.messages.checkpoints import Restore, Restored

SUMMARY = "restore a session that is asleep, or was lost, from a checkpoint"


def parser() -> Parser:
    parser = verb_parser(
        "restore",
        "Restore a session from a checkpoint, or from its latest one: the same id and processes, "
        "in the next epoch. Connections to programs outside of the session are reset and listed. "
        "If it fails, everything is as it was before. With --cold nothing is restored: the command "
        "is started again, as a new session that follows the old one, which cannot be restored "
        "any more. With --on it is restored on another host, of which you are an admin; all "
        "of it goes there over an encrypted link.",
        "  hold restore build\n  hold restore ck-0a1b2c3d4e5f\n  hold restore --cold build\n"
        "  hold restore build --on laptop",
    )
    parser.add_value(
        "--on",
        "HOST",
        "restore it there: a machine you have joined, or another host of this machine by the path "
        "of its socket or home",
    )
    parser.add_flag("--cold", help="start its command again instead, as a successor")
    parser.add_flag(
        "--i-know-the-host-is-dead",
        help="take it on your word that no other host has it; recorded",
    )
    parser.add_argument(
        "--files",
        choices=["keep", "restore"],
        default="ask",
        help="captured files that differ now: leave them, or put them back and keep beside what "
        "is there; default: put back what the session itself changed after the checkpoint, and "
        "refuse if others changed a file that it has open",
    )
    parser.add_json()
    parser.add_value("target", "CHECKPOINT|NAME", "a checkpoint, or a session's name or whole id")
    return parser


def run(options: Options) -> None:
    with progress_line() as told, Host(client="hold restore", on_progress=told) as host:
        dead, on = options.i_know_the_host_is_dead, options.on or ""
        request = Restore(0, options.target, options.cold, dead, RestoreFiles(options.files))
        if on:
            if options.cold:
                raise InvalidArgument("--cold starts a successor here; it does not go with --on")
            from holdfast.sdk.reach.tickets import ticket_for

            ticket = ticket_for(host, options.target, on)
            request = request.replace(ticket=ticket, on=on)
        restored = host.ask(request, Restored, once=True)
    info, report = restored.info, restored.report
    if options.json:
        print_json({**info.pack(), "restore": report.pack()})
        return
    if report.kind is ContinuityKind.COLD:
        print(f"{info.name} ({info.id[:8]}) was started again, as a successor")
        return
    took = sum(phase.ms for phase in report.phases)
    where = f" on {on}" if on else ""
    how = f", restored in {took:.0f} ms" if report.phases else ""
    print(f"{info.name} ({info.id[:8]}) runs{where} in epoch {info.epoch}{how}")
    _say_what_is_missing(report)


def _say_what_is_missing(report: RestoreReport) -> None:
    if report.inputs_lost:
        lost = counted(report.inputs_lost, "recorded input")
        print(f"  not part of it: {lost} that came after the checkpoint")
    if report.files is not None:
        _say_what_became_of_files(report.files)
    for each in report.reset:
        print(f"  reset: {each.local} to {each.peer}, of {sanitize(each.process)} ({each.pid})")


def _say_what_became_of_files(files: RestoredFiles) -> None:
    if files.put_back:
        print(f"  files put back: {files.put_back}")
    for path in files.kept_in:
        print(f"    what was there instead is in {sanitize(path)}")
    if files.left_count:
        print(f"  files that differ from the checkpoint, left as they are: {files.left_count}")
    for path in files.left:
        print(f"    {sanitize(path)}")
