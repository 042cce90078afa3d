"""Whether a session could be moved, for people."""

from __future__ import annotations

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import amount, counted
from holdfast.model.movability import Movability, MoveFinding, MoveVerdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.model.captured_files import CapturePlan

_WORDS = {
    MoveVerdict.BLOCKS: "in the way",
    MoveVerdict.RESETS: "lost by a move",
    MoveVerdict.MOVABLE: "",
}


def movability_lines(name: str, found: Movability) -> Iterator[str]:
    yield f"{sanitize(name)} {'can' if found.movable else 'cannot'} be moved"
    estimate = found.estimate
    yield (
        f"  a checkpoint would stop it for about {estimate.frozen_ms:.0f} ms "
        f"and save {amount(estimate.bytes)} of memory"
    )
    capture = found.capture
    if capture is not None:
        yield from _capture_lines(capture)
    for finding in found.findings:
        yield from _finding("  ", finding)
    for process in found.processes:
        if process.findings:
            yield f"  {process.pid} {sanitize(process.command)}"
            for finding in process.findings:
                yield from _finding("    ", finding)
    unhindered = sum(not process.findings for process in found.processes)
    others = "other " if unhindered < len(found.processes) else ""
    if unhindered:
        word = "process" if unhindered == 1 else "processes"
        yield f"  {unhindered} {others}{word} without findings"


def _capture_lines(capture: CapturePlan) -> Iterator[str]:
    if capture.files:
        yield f"  and capture {counted(capture.files, 'file')}, {amount(capture.bytes)}"
    for left in capture.left_out:
        yield f"  not captured: {sanitize(left.path)}"
        yield f"    {sanitize(left.why)}"
    if unnamed := capture.left_out_count - len(capture.left_out):
        yield f"  not captured: {unnamed} others"


def _finding(indent: str, finding: MoveFinding) -> Iterator[str]:
    yield f"{indent}{_WORDS[finding.verdict]}: {sanitize(finding.what)}"
    yield f"{indent}  {sanitize(finding.why)}"
    yield f"{indent}  to do: {sanitize(finding.remedy)}"
